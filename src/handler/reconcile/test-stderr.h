/* SPDX-License-Identifier: Apache-2.0 */

/* test-stderr: what is logged between begin and end. */

#pragma once

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fd.h"

/* Returns: the stream that was there before, for the end */
static inline int
test_stderr_begin(void)
{
    ch_autofd int fd = memfd_create("stderr", MFD_CLOEXEC);
    const int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(before, >=, 0);
    g_assert_cmpint(dup2(fd, STDERR_FILENO), ==, STDERR_FILENO);
    return before;
}

/* (transfer full): the text. */
static inline char *
test_stderr_end(int before)
{
    const off_t size = lseek(STDERR_FILENO, 0, SEEK_END);
    char *text = g_malloc0((gsize)size + 1);

    g_assert_cmpint(pread(STDERR_FILENO, text, (gsize)size, 0), ==, size);
    g_assert_cmpint(dup2(before, STDERR_FILENO), ==, STDERR_FILENO);
    close(before);
    return text;
}
