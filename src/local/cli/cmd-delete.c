/* SPDX-License-Identifier: Apache-2.0 */

/* delete: VMs shut down first; the command waits until they are gone. */

#include <stdio.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/cli/cli.h"
#include "local/cli/resource.h"
#include "local/cli/vms.h"

#define LIMIT_US (180 * CH_SECOND_US)

bool
ch_cmd_delete(ChCli *cli, int argc, char **argv, GError **error)
{
    gboolean no_wait = FALSE;
    const GOptionEntry entries[] = {{"no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait, NULL, NULL},
                                    G_OPTION_ENTRY_NULL};
    g_auto(GStrv) arguments = NULL;
    g_autoptr(ChClient) client = NULL;
    const ChCliResource *resource = ch_cli_vmis;
    gsize i = 0;

    if (!ch_cli_parse(cli, argc, argv, entries, 1, -1, &arguments, error))
        return false;
    if (arguments[1] != NULL && ch_cli_resource_by_name(arguments[0]) != NULL)
        resource = ch_cli_resource_by_name(arguments[i++]);
    client = ch_client_new(cli, error);
    for (; client != NULL && arguments[i] != NULL; i++) {
        g_autofree char *path = ch_cli_resource_path(resource, cli->namespace_, arguments[i]);

        if (!ch_vm_delete(client, path, arguments[i], no_wait ? 0 : LIMIT_US, error))
            return false;
        printf("%s \"%s\" %s\n", resource->names[1], arguments[i], no_wait ? "ends" : "deleted");
        fflush(stdout);
    }
    return client != NULL;
}
