/* SPDX-License-Identifier: Apache-2.0 */

/* get: lists; VMs unless another type is named. */

#include <stdio.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/cli/cli.h"
#include "local/cli/client.h"
#include "local/cli/resource.h"
#include "local/cli/table.h"

/* Tables come with the objects, by which events are sorted. */
static bool
print(ChClient *client, const char *path, bool as_json, GError **error)
{
    g_autofree char *query = g_strconcat(path, "?includeObject=Object", NULL);
    g_autoptr(ChJson) answer =
        ch_client_request(client,
                          &(ChClientRequest){.method = "GET",
                                             .path = as_json ? path : query,
                                             .accept = as_json ? NULL : CH_TABLE_ACCEPT},
                          error);
    g_autofree char *text = NULL;

    if (answer == NULL)
        return false;
    if (!as_json && ch_json_length(ch_json_at(answer, "rows")) == 0) {
        fputs("nothing there\n", stderr);
        return true;
    }
    if (!as_json)
        ch_table_sort_events(answer);
    text = as_json ? ch_json_print_pretty(answer) : ch_table_render(answer, ch_time_wall_us());
    fputs(text, stdout);
    if (as_json)
        putchar('\n');
    return true;
}

static bool
fail_no_type(const char *name, GError **error)
{
    g_autofree char *list = ch_cli_resource_list();

    return ch_fail(error,
                   CH_ERROR_INVALID,
                   "there is no type '%s', only %s (one VM: 'chandler get vmi NAME')",
                   name,
                   list);
}

bool
ch_cmd_get(ChCli *cli, int argc, char **argv, GError **error)
{
    g_autofree char *output = NULL;
    gboolean is_everywhere = FALSE;
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_STRING, &output, NULL, NULL},
        {"all-namespaces", 'A', 0, G_OPTION_ARG_NONE, &is_everywhere, NULL, NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_auto(GStrv) arguments = NULL;
    g_autoptr(ChClient) client = NULL;
    g_autofree char *path = NULL;
    const ChCliResource *resource = ch_cli_vmis;

    if (!ch_cli_parse(cli, argc, argv, entries, 0, 2, &arguments, error))
        return false;
    if (output != NULL && !g_str_equal(output, "json"))
        return ch_fail(error, CH_ERROR_INVALID, "-o knows 'json' only, not '%s'", output);
    if (arguments[0] != NULL)
        resource = ch_cli_resource_by_name(arguments[0]);
    if (resource == NULL)
        return fail_no_type(arguments[0], error);
    path = ch_cli_resource_path(resource,
                                is_everywhere ? NULL : cli->namespace_,
                                arguments[0] != NULL ? arguments[1] : NULL);
    client = ch_client_new(cli, error);
    return client != NULL && print(client, path, output != NULL, error);
}
