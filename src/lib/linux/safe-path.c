/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/safe-path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"

/* A rename or mount anywhere in the system may make a confined lookup start over; only somebody who
 * renames without pause makes it fail this often. */
#define MAX_TRIES 128

static const uint64_t resolve_flags[] = {
    [CH_RESOLVE_NO_LINKS] = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    [CH_RESOLVE_IN_ROOT] = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
};

int
ch_safe_open(int dir_fd, const char *path, int flags, mode_t mode, ChResolve how)
{
    const struct open_how open_how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .mode = mode,
        .resolve = resolve_flags[how],
    };

    for (int try = 1;; try++) {
        const long fd = syscall(SYS_openat2, dir_fd, path, &open_how, sizeof(open_how));

        if (fd >= 0)
            return (int)fd;
        if (errno != EINTR && (errno != EAGAIN || try == MAX_TRIES))
            return -errno;
    }
}

int
ch_safe_lookup(int dir_fd, const char *path)
{
    ch_autofd int fd = ch_safe_open(dir_fd, path, O_PATH | O_NOFOLLOW, 0, CH_RESOLVE_NO_LINKS);
    mode_t mode = 0;
    int result;

    if (fd < 0)
        return fd;
    /* O_PATH | O_NOFOLLOW opens a link at the end of the path in spite of RESOLVE_NO_SYMLINKS. */
    result = ch_safe_identify(fd, NULL, &mode);
    return result == 0 && S_ISLNK(mode) ? -ELOOP : result;
}

int
ch_safe_identify(int fd, ChFileId *out_id, mode_t *out_mode)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (out_id != NULL)
        *out_id = (ChFileId){.dev = st.st_dev, .ino = st.st_ino};
    if (out_mode != NULL)
        *out_mode = st.st_mode;
    return 0;
}

int
ch_safe_remove(int dir_fd, const char *name)
{
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    /* What the name holds by now may be something else: unlinkat follows no link, and takes away
     * nothing but a name in this very directory. */
    if (unlinkat(dir_fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}

int
ch_safe_chown(int fd, uid_t uid, gid_t gid)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_uid == uid && st.st_gid == gid)
        return 0;
    return fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

int
ch_safe_chmod(int fd, mode_t mode)
{
    char path[CH_FD_PATH_SIZE];
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if ((st.st_mode & 07777) == mode)
        return 0;
    ch_fd_path(path, fd);
    return fchmodat(AT_FDCWD, path, mode, 0) < 0 ? -errno : 0;
}

void
ch_fd_path(char buffer[CH_FD_PATH_SIZE], int fd)
{
    (void)snprintf(buffer, CH_FD_PATH_SIZE, "/proc/self/fd/%d", fd);
}
