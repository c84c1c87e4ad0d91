/* SPDX-License-Identifier: Apache-2.0 */

/*
 * stage-log: the stages of a VM's start, out of the logs of agent and pod runner.
 *
 * Both write a line with `stage`, the VMI's namespace, name and uid, and a timestamp; the agent's
 * also has `elapsedMs` since it first saw the VMI. Pure, but load. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_STAGE_LOG_MAX_LINE 65536

typedef struct {
    char *stage;        /* "seen", ... */
    char *uid;          /* of the VMI */
    int64_t wall_us;    /* when the line was written */
    int64_t elapsed_ms; /* negative: not told */
} ChStageLine;

/* Returns: false: another line. @out_line: members are owned by the caller (ch_stage_line_clear) */
bool ch_stage_line_parse(const char *text,
                         gsize length,
                         const char *namespace_,
                         const char *name,
                         ChStageLine *out_line);
void ch_stage_line_clear(gpointer line);

/**
 * ch_stage_log_load: the stages of the last VMI of this name, in the order of time.
 * @paths: NULL-terminated; a file that is missing counts as empty
 * @uid: (nullable): of this very VMI
 *
 * Returns: (transfer full) (element-type ChStageLine): may be empty. Blocks: reads the files
 */
GArray *ch_stage_log_load(const char *const *paths,
                          const char *namespace_,
                          const char *name,
                          const char *uid);
