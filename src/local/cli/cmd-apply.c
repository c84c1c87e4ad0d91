/* SPDX-License-Identifier: Apache-2.0 */

/* apply: creates what is new, merges into what is there. */

#include "local/cli/apply.h"
#include "local/cli/cli.h"

bool
ch_cmd_apply(ChCli *cli, int argc, char **argv, GError **error)
{
    gboolean ignored = FALSE;
    const GOptionEntry entries[] = {CH_APPLY_FILE_OPTION(&ignored), G_OPTION_ENTRY_NULL};
    g_auto(GStrv) paths = NULL;
    g_autoptr(GArray) manifests = NULL;
    g_autoptr(ChClient) client = NULL;

    if (!ch_cli_parse(cli, argc, argv, entries, 1, -1, &paths, error))
        return false;
    manifests = ch_apply_load(paths, error);
    client = manifests != NULL ? ch_client_new(cli, error) : NULL;
    return client != NULL && ch_apply_store(client, cli, manifests, error);
}
