/* SPDX-License-Identifier: Apache-2.0 */

/* apply: sends manifests to the API server. Thread: the command's. Blocks: for it. */

#pragma once

#include "local/cli/client.h"
#include "local/cli/manifest.h"

/* kubectl's -f, taken and not needed: what follows it is a file like every argument. */
#define CH_APPLY_FILE_OPTION(flag)                                                                 \
    {                                                                                              \
        "filename", 'f', 0, G_OPTION_ARG_NONE, (flag), NULL, NULL                                  \
    }

/* All files are read before anything is stored. (transfer full) (element-type ChManifest) */
GArray *ch_apply_load(char *const *paths, GError **error);

/* Stores them in order; prints a line for each. */
bool ch_apply_store(ChClient *client, const ChCli *cli, const GArray *manifests, GError **error);
