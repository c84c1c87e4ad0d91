/* SPDX-License-Identifier: Apache-2.0 */

/* timeline: the waterfall of a VM's last start, also after the VM is gone. */

#include <stdio.h>

#include "lib/base/errors.h"
#include "local/cli/cli.h"
#include "local/cli/timeline.h"

bool
ch_cmd_timeline(ChCli *cli, int argc, char **argv, GError **error)
{
    g_auto(GStrv) arguments = NULL;
    g_autofree char *text = NULL;

    if (!ch_cli_parse(cli, argc, argv, NULL, 1, 1, &arguments, error))
        return false;
    text = ch_timeline_text(cli, cli->namespace_, arguments[0], NULL);
    if (*text == '\0')
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "no start of a VM '%s' in namespace '%s' is in the logs (%s/log)",
                       arguments[0],
                       cli->namespace_,
                       cli->state_dir);
    fputs(text, stdout);
    return true;
}
