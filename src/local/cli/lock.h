/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lock: at most one chandler per state directory.
 *
 * <state>/lock is locked (flock) by the supervisor for as long as it lives, and holds its pid.
 * Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* Returns: a descriptor to keep open; negative: CH_ERROR_EXISTS (another one runs), CH_ERRNO */
int ch_lock_take(const char *state_dir, GError **error);

/* Whether one runs; its pid. */
bool ch_lock_is_held(const char *state_dir, pid_t *out_pid);
