/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <sys/file.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"

static pid_t
read_pid(int fd)
{
    char text[32] = "";
    guint64 pid = 0;

    if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
        return 0;
    return g_ascii_string_to_unsigned(g_strstrip(text), 10, 2, G_MAXINT, &pid, NULL) ? (pid_t)pid
                                                                                     : 0;
}

int
ch_lock_take(const char *state_dir, GError **error)
{
    g_autofree char *path = g_build_filename(state_dir, "lock", NULL);
    ch_autofd int fd = g_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    char text[32];
    int n_bytes;

    if (fd < 0) {
        ch_fail_errno(error, errno, "open '%s'", path);
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        ch_fail(error,
                CH_ERROR_EXISTS,
                "chandler is already up (process %d, state %s): 'chandler down' stops it",
                (int)read_pid(fd),
                state_dir);
        return -1;
    }
    n_bytes = g_snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (gsize)n_bytes, 0) != n_bytes) {
        ch_fail_errno(error, errno, "write '%s'", path);
        return -1;
    }
    return g_steal_fd(&fd);
}

bool
ch_lock_is_held(const char *state_dir, pid_t *out_pid)
{
    g_autofree char *path = g_build_filename(state_dir, "lock", NULL);
    ch_autofd int fd = g_open(path, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0)
        return false;
    if (out_pid != NULL)
        *out_pid = read_pid(fd);
    return true;
}
