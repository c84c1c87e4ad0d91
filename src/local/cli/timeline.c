/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/timeline.h"

#include "local/cli/stage-log.h"
#include "local/cli/waterfall.h"

static GArray *
load(const ChCli *cli, const char *namespace_, const char *name, const char *uid)
{
    g_autofree char *agent = ch_cli_path(cli, "log/virt-handler.log");
    g_autofree char *podrunner = ch_cli_path(cli, "log/chandler-podrunner.log");
    const char *const paths[] = {podrunner, agent, NULL};

    return ch_stage_log_load(paths, namespace_, name, uid);
}

char *
ch_timeline_text(const ChCli *cli, const char *namespace_, const char *name, const char *uid)
{
    g_autoptr(GArray) lines = load(cli, namespace_, name, uid);

    return ch_waterfall_render(lines);
}
