/* SPDX-License-Identifier: Apache-2.0 */

/* timeline: a VM's start out of this state directory's logs. Thread: the command's. Blocks: reads.
 */

#pragma once

#include "local/cli/cli.h"

/* (transfer full): the waterfall; "": nothing is known. @uid: (nullable) of this very VMI */
char *ch_timeline_text(const ChCli *cli, const char *namespace_, const char *name, const char *uid);
