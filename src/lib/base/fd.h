/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fd: one owner per descriptor. Locals are declared `ch_autofd int fd = -EBADF;`, ownership leaves
 * by g_steal_fd(). (GLib has the same as g_autofd from 2.76 on; delete this when the baseline gets
 * there.)
 */

#pragma once

#include <errno.h>
#include <glib-unix.h>
#include <unistd.h>

/* Closes *fd if it is open, marks it closed, preserves errno. Idempotent. */
static inline void
ch_close_fd(int *fd)
{
    const int saved_errno = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -EBADF;
    errno = saved_errno;
}

#define ch_autofd __attribute__((cleanup(ch_close_fd)))
