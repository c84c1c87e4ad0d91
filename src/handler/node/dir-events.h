/* SPDX-License-Identifier: Apache-2.0 */

/*
 * dir-events: what an inotify descriptor of a directory tells of one name in it.
 *
 * Thread: any. Never blocks: the descriptor is non-blocking. Spec: 05 §12.3, 07 §11.
 */

#pragma once

#include <stdbool.h>

typedef enum {
    CH_DIR_CHANGED = 1u << 0, /* the file came, went or is another one; or events were lost */
    CH_DIR_LOST = 1u << 1,    /* the directory itself was moved or is gone: no more events */
} ChDirEvents;

/**
 * ch_dir_events_read: takes all events that there are.
 * @fd: borrowed
 * @name: of the file
 *
 * Returns: bits of ChDirEvents. Both when the descriptor cannot be read
 */
unsigned ch_dir_events_read(int fd, const char *name);
