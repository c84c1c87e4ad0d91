/* SPDX-License-Identifier: Apache-2.0 */

/*
 * board: where children note that a step is done, for the hands to see when they next look.
 *
 * Theory of operation: a child that answers the brain itself need not wake the hands for it. It
 * writes one word that it shares with them, of its task's slot: which task, and whether it ends. A
 * word is written whole, so a child that is killed leaves no half of one; one that wrote nonsense
 * would have its own slot, or another's, taken for free early or late, and no more. One mapping,
 * made once.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CH_BOARD_MAX_TURN INT32_MAX

/* Before the system call filter, and before children. Returns 0 or a positive errno. */
int ch_board_init(void);

/* Without one, children answer the hands. */
bool ch_board_is_there(void);

/* In the child of @slot (below CH_TASK_MAX). @turn: of its task, 1 to CH_BOARD_MAX_TURN */
void ch_board_note(unsigned slot, uint32_t turn, bool child_ends);

/* Whether that task is done. */
bool ch_board_shows(unsigned slot, uint32_t turn, bool *out_child_ends);
