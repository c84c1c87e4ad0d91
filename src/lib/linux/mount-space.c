/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/mount-space.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HYBRID_CGROUP "/sys/fs/cgroup/unified"
#define MAX_BELOW     1024 /* mounts below one directory */

int
ch_mount_space_enter(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return -errno;
    return 0;
}

int
ch_mount_space_hide_hybrid_cgroup(void)
{
    if (umount2(HYBRID_CGROUP, MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT)
        return -errno;
    return 0;
}

int
ch_mount_space_pivot(const char *path)
{
    /* The old root lands on top of the new one, and is the one that goes. */
    if (chdir(path) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return -errno;
    return 0;
}

int
ch_mount_bind(const char *source, const char *target)
{
    return mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
}

int
ch_mount_tmpfs(const char *target, const char *size)
{
    char options[64];

    if (snprintf(options, sizeof(options), "mode=0755,size=%s", size) >= (int)sizeof(options))
        return -EINVAL;
    return mount("chandler", target, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
}

int
ch_mount_overlay(const char *lower, const char *upper, const char *work, const char *target)
{
    char options[PATH_MAX];
    const char *const paths[] = {lower, upper, work};

    for (int i = 0; i < 3; i++) {
        if (strpbrk(paths[i], ",:") != NULL)
            return -EINVAL;
    }
    if (snprintf(
            options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work) >=
        (int)sizeof(options))
        return -ENAMETOOLONG;
    return mount("overlay", target, "overlay", 0, options) < 0 ? -errno : 0;
}

int
ch_mount_detach(const char *target)
{
    return umount2(target, MNT_DETACH) < 0 ? -errno : 0;
}

/* --- a directory whose mounts are seen elsewhere ---------------------------------------------- */

/* Whether @path is the root of a mount: 1, 0 or -errno. */
static int
is_mount_root(const char *path)
{
    struct statx facts;

    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &facts) < 0)
        return -errno;
    return (facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

int
ch_mount_share(const char *path)
{
    const int is_root = is_mount_root(path);

    if (is_root < 0)
        return is_root;
    if (!is_root && mount(path, path, NULL, MS_BIND, NULL) < 0)
        return -errno;
    return mount(NULL, path, NULL, MS_SHARED, NULL) < 0 ? -errno : 0;
}

int
ch_mount_unshare(const char *path)
{
    const int is_root = is_mount_root(path);

    return is_root > 0 ? ch_mount_detach(path) : is_root;
}

/* The kernel writes some characters of a path as "\040". In place. */
static void
decode(char *path)
{
    char *out = path;

    for (const char *in = path; *in != '\0'; in++) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
            in[3] >= '0' && in[3] <= '7') {
            *out++ = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 3;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
}

/* The last mount below @path, which nothing lies on. Returns 1 with its mount point, 0: there is
 * none, or -errno. */
static int
find_last_below(const char *path, char mount_point[PATH_MAX])
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    const size_t length = strlen(path);
    char *line = NULL;
    size_t size = 0;
    int result = 0;

    if (file == NULL)
        return -errno;
    while (getline(&line, &size, file) > 0) {
        char found[PATH_MAX];

        /* Its fields: id, parent, device, root, mount point. */
        if (sscanf(line, "%*s %*s %*s %*s %4095s", found) != 1)
            continue;
        decode(found);
        if (strncmp(found, path, length) != 0 || found[length] != '/')
            continue;
        memcpy(mount_point, found, sizeof(found));
        result = 1;
    }
    free(line);
    (void)fclose(file);
    return result;
}

int
ch_mount_detach_below(const char *path)
{
    char resolved[PATH_MAX]; /* as the kernel tells mount points */
    char mount_point[PATH_MAX];
    int result = 0;

    if (realpath(path, resolved) == NULL)
        return errno == ENOENT ? 0 : -errno;
    for (int i = 0; i < MAX_BELOW; i++) {
        result = find_last_below(resolved, mount_point);
        if (result <= 0)
            return result;
        if (umount2(mount_point, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
            return -errno;
    }
    return -E2BIG;
}
