/* SPDX-License-Identifier: Apache-2.0 */

/* supervise: becomes the supervisor. Run by `up`, which waits at the other end of descriptor 3. */

#include "lib/base/log.h"
#include "local/cli/cli.h"
#include "local/cli/supervisor.h"

bool
ch_cmd_supervise(ChCli *cli, int argc, char **argv, GError **error)
{
    int port = CH_DEFAULT_PORT;
    gboolean is_emulated = FALSE;
    int ready_fd = -1;
    const GOptionEntry entries[] = {
        {"port", 0, 0, G_OPTION_ARG_INT, &port, NULL, NULL},
        {"emulated", 0, 0, G_OPTION_ARG_NONE, &is_emulated, NULL, NULL},
        {"ready-fd", 0, 0, G_OPTION_ARG_INT, &ready_fd, NULL, NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_auto(GStrv) arguments = NULL;

    if (!ch_cli_parse(cli, argc, argv, entries, 0, 0, &arguments, error))
        return false;
    ch_log_set_verbosity(2);
    return ch_supervisor_run(&(ChSupervisorSpec){cli, port, is_emulated, ready_fd}, error);
}
