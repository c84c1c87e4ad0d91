/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

#define MAX_DEPTH   6    /* /dev/bus/usb/001 has three */
#define MAX_ENTRIES 8192 /* of all directories together */

/* A walk through /dev. */
typedef struct {
    dev_t file_system; /* of /dev */
    unsigned n_entries;
    ChDeviceRules *rules;
    char path[256]; /* of the directory that failed, or is being read; below the root */
} Walk;

/* What is no device adds nothing. Returns 0 or -errno. */
static int
add_device(int fd, const struct stat *st, ChDeviceRules *rules)
{
    struct statfs fs;

    if (!S_ISBLK(st->st_mode) && !S_ISCHR(st->st_mode))
        return 0;
    if (fstatfs(fd, &fs) < 0)
        return -errno;
    if (fs.f_type != TMPFS_MAGIC)
        return 0;
    return ch_device_rules_add(rules,
                               &CH_DEVICE_RULE(S_ISBLK(st->st_mode) ? 'b' : 'c',
                                               major(st->st_rdev),
                                               minor(st->st_rdev),
                                               CH_DEVICE_ALL,
                                               1));
}

static int walk_directory(Walk *walk, int dir_fd, unsigned depth);

/* Returns 0 or -errno. */
static int
visit(Walk *walk, int dir_fd, const char *name, unsigned depth)
{
    ch_autofd int fd = ch_safe_open(dir_fd, name, O_PATH | O_NOFOLLOW, 0, CH_RESOLVE_NO_LINKS);
    const size_t length = strlen(walk->path);
    struct stat st;
    int result;

    if (fd == -ENOENT || fd == -ELOOP) /* gone meanwhile; a link */
        return 0;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return add_device(fd, &st, walk->rules);
    if (st.st_dev != walk->file_system || depth >= MAX_DEPTH)
        return 0;
    (void)snprintf(walk->path + length, sizeof(walk->path) - length, "/%s", name);
    ch_close_fd(&fd);
    fd = ch_safe_open(dir_fd, name, O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    result = fd < 0 ? fd : walk_directory(walk, fd, depth + 1);
    if (result == 0)
        walk->path[length] = '\0';
    return result;
}

/* What the system call gives: GLIBC's readdir() would want heap. */
typedef struct {
    uint64_t ino;
    int64_t off;
    uint16_t size;
    uint8_t type;
    char name[];
} Entry;

static int
walk_directory(Walk *walk, int dir_fd, unsigned depth)
{
    char buffer[2048] __attribute__((aligned(8)));
    int result = 0;

    for (;;) {
        const long n = syscall(SYS_getdents64, dir_fd, buffer, sizeof(buffer));

        if (n <= 0)
            return n < 0 ? -errno : 0;
        for (long at = 0; at < n && result == 0;) {
            const Entry *entry = (const Entry *)(const void *)(buffer + at);

            at += entry->size;
            if (g_str_equal(entry->name, ".") || g_str_equal(entry->name, ".."))
                continue;
            result =
                walk->n_entries++ < MAX_ENTRIES ? visit(walk, dir_fd, entry->name, depth) : -ENOSPC;
        }
        if (result != 0)
            return result;
    }
}

static bool
is_there(int root_fd, const char *path, ChHandsReply *reply)
{
    ch_autofd int fd = ch_safe_open(root_fd, path, O_PATH, 0, CH_RESOLVE_NO_LINKS);

    return fd >= 0 || ch_reply_fail(reply, fd, "failed opening /%s", path);
}

bool
ch_inside_has_devices(int root_fd, uint32_t flags, ChHandsReply *reply)
{
    return (!(flags & CH_HANDS_RNG) || is_there(root_fd, "dev/urandom", reply)) &&
           (!(flags & CH_HANDS_VSOCK) || is_there(root_fd, "dev/vhost-vsock", reply));
}

bool
ch_inside_list_devices(int root_fd, uint32_t flags, ChDeviceRules *out_rules, ChHandsReply *reply)
{
    ch_autofd int dev_fd =
        ch_safe_open(root_fd, "dev", O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    Walk walk = {.rules = out_rules, .path = "dev"};
    struct stat st;
    int result;

    out_rules->n_rules = 0;
    if (!ch_inside_has_devices(root_fd, flags, reply))
        return false;
    if (dev_fd == -ENOENT)
        return true;
    if (dev_fd < 0)
        return ch_reply_fail(reply, dev_fd, "failed opening /dev");
    if (fstat(dev_fd, &st) < 0)
        return ch_reply_fail(reply, errno, "failed opening /dev");
    walk.file_system = st.st_dev;
    result = walk_directory(&walk, dev_fd, 0);
    return result == 0 ||
           ch_reply_fail(reply, result, "failed to discover device rules in /%s", walk.path);
}
