/* SPDX-License-Identifier: Apache-2.0 */

/*
 * last-lines: what the log said last of each VM, so that a pass that finds nothing new can keep it
 * to itself. FR-A10
 *
 * Thread: the owner serializes the calls.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct ChLastLines ChLastLines;

ChLastLines *ch_last_lines_new(void);
void ch_last_lines_free(ChLastLines *lines);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLastLines, ch_last_lines_free)

/* Notes that VMI @uid has this line now. Returns: whether it had another, or none */
bool ch_last_lines_is_news(ChLastLines *lines, const char *uid, const char *line);
void ch_last_lines_forget(ChLastLines *lines, const char *uid);
