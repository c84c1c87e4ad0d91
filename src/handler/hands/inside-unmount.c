/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-unmount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/content.h"
#include "handler/hands/dir-list.h"
#include "handler/hands/mount-list.h"
#include "handler/hands/mount-spaces.h"
#include "handler/hands/reply.h"
#include "handler/hands/target.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"
#include "lib/linux/safe-path.h"

#define MAX_STACKED 16   /* mounts on one target */
#define MAX_KERNELS 64   /* names in kernel-boot that are looked at */
#define MAX_VOLUMES 1024 /* names in hotplug-disks that are looked at, mounts that were renamed */
#define MAX_VAIN    64   /* tries in a row at mounts that are elsewhere by then, or fail */

/* To the answer about all, that about one. Of several failures the first is told, but one that may
 * pass before one that may not: then it is all tried again. */
static void
add(ChHandsReply *all, const ChHandsReply *one)
{
    all->size += one->size;
    if (one->errnum != 0 && (all->errnum == 0 || (ch_reply_is_shortage(one->errnum) &&
                                                  !ch_reply_is_shortage(all->errnum))))
        (void)ch_reply_take_failure(all, one);
}

/* Also what earlier versions stacked. */
static bool
detach(ChTarget *target, ChHandsReply *reply)
{
    for (int i = 0; i < MAX_STACKED; i++) {
        int result;

        if (!ch_target_reopen(target, reply)) {
            if (reply->errnum != ELOOP) /* a link of the pod's: nothing is mounted on one */
                return false;
            reply->errnum = 0;
            reply->step = CH_HANDS_STEP_NONE;
            return true;
        }
        if (target->fd < 0 || !target->facts.is_mounted)
            return true;
        result = ch_mount_detach_root(target->fd);
        if (result < 0)
            return ch_reply_fail_step(reply, CH_HANDS_STEP_UNMOUNT, result, "umount failed");
        reply->size++;
    }
    return ch_reply_fail_step(reply, CH_HANDS_STEP_UNMOUNT, EBUSY, "umount failed");
}

/* The pod has all rights in the directory: what cannot be removed stays until kubelet takes it.
 * Only what may succeed later is a failure. */
static bool
remove_name(int dir_fd, const char *name, ChHandsReply *reply)
{
    const int result = ch_safe_remove(dir_fd, name);

    return !ch_reply_is_shortage(result) ||
           ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, result, "remove what was mounted on");
}

/* Everything in kernel-boot that something is mounted on; a pod's own files stay. */
static bool
detach_kernels(ChTarget *target, bool removes, ChHandsReply *reply)
{
    ch_autofd int list_fd =
        ch_safe_open(target->dir_fd, ".", O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    static char names[MAX_KERNELS][CH_DIR_NAME_SIZE];
    const int n = list_fd < 0 ? list_fd : ch_dir_list(list_fd, names, MAX_KERNELS);

    if (n < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, n, "list kernel-boot");
    for (int i = 0; i < n; i++) {
        ChHandsReply one = {0};

        (void)g_strlcpy(target->name, names[i], sizeof(target->name));
        if (detach(target, &one) && removes)
            (void)remove_name(target->dir_fd, target->name, &one);
        add(reply, &one);
    }
    return reply->errnum == 0;
}

/* What the pod has at the names does not keep the others from being removed. */
static bool
remove_rest(const ChHandsRequest *request, ChHandsReply *reply)
{
    ch_autofd int dir_fd = ch_target_open_dir(request->uid, request->mount);
    char name[CH_TARGET_NAME_SIZE] = CH_TARGET_BOOT_NAME;

    if (dir_fd < 0)
        return !ch_reply_is_shortage(dir_fd) ||
               ch_reply_fail_step(
                   reply, CH_HANDS_STEP_DIR, dir_fd, "open where something was mounted");
    if (request->mount != CH_HANDS_MOUNT_BOOT)
        ch_target_name(name, request, "");
    if (!remove_name(dir_fd, name, reply))
        return false;
    if (!ch_content_is_data(request->mount)) /* hp.sock serves other volumes too */
        return true;
    ch_target_socket_name(name, request->mount, request->index);
    return remove_name(dir_fd, name, reply);
}

/* Whether nothing can be mounted where the target could not be opened; it is no failure then. */
static bool
is_absent(ChHandsReply *reply)
{
    const bool has_no_dir =
        reply->step == CH_HANDS_STEP_DIR && (reply->errnum == ENOENT || reply->errnum == ENOTDIR);

    if (!has_no_dir && reply->errnum != ELOOP)
        return false;
    reply->errnum = 0;
    reply->step = CH_HANDS_STEP_NONE;
    return true;
}

static bool
unmount_target(const ChHandsRequest *request, ChTarget *target, ChHandsReply *reply)
{
    if (!ch_target_open(request, "", false, target, reply))
        return is_absent(reply);
    return request->mount == CH_HANDS_MOUNT_BOOT
               ? detach_kernels(target, request->flags & CH_HANDS_REMOVE, reply)
               : detach(target, reply);
}

bool
ch_inside_unmount(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChMountSpaces spaces = CH_MOUNT_SPACES_INIT;
    ChTarget target = CH_TARGET_INIT;
    const bool is_done = ch_mount_spaces_open(&spaces, reply) &&
                         ch_mount_spaces_join(spaces.node_fd, reply) &&
                         unmount_target(request, &target, reply) &&
                         (!(request->flags & CH_HANDS_REMOVE) || remove_rest(request, reply));

    ch_target_clear(&target);
    ch_mount_spaces_clear(&spaces);
    return is_done;
}

/* Whether it is what was made to be mounted on: root's, and empty, which a directory must be to be
 * removed. An earlier sweep may not have got further than to unmount. Returns 1, 0 or -errno. */
static int
is_place(const ChTarget *target)
{
    struct stat st;

    if (target->fd < 0)
        return 0;
    if (fstat(target->fd, &st) < 0)
        return -errno;
    return st.st_uid == 0 && (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size == 0));
}

/* @reply: of this name only. Returns: false with it filled in, when it is still there. */
static bool
sweep_name(ChTarget *target, ChHandsReply *reply)
{
    int is_ours;

    if (!detach(target, reply))
        return false;
    is_ours =
        reply->size > 0 || (target->fd >= 0 && S_ISBLK(target->facts.mode)) ? 1 : is_place(target);
    if (is_ours < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_TARGET, is_ours, "look at what may have been mounted on");
    return is_ours == 0 || remove_name(target->dir_fd, target->name, reply);
}

static void
sweep_names(int dir_fd, ChHandsReply *reply)
{
    static char names[MAX_VOLUMES][CH_DIR_NAME_SIZE];
    ch_autofd int list_fd =
        ch_safe_open(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    const int n = list_fd < 0 ? list_fd : ch_dir_list(list_fd, names, MAX_VOLUMES);
    ChTarget target = {.dir_fd = dir_fd, .fd = -EBADF};

    if (n < 0)
        (void)ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, n, "list the volumes");
    for (int i = 0; i < n; i++) {
        ChHandsReply one = {0};

        (void)g_strlcpy(target.name, names[i], sizeof(target.name));
        (void)sweep_name(&target, &one);
        add(reply, &one);
    }
    ch_close_fd(&target.fd);
}

/* What is mounted below a directory, however deep. */
typedef struct {
    char dir[PATH_MAX]; /* as the node names it */
    unsigned n_skipped; /* of these mounts, which come first */
    char rest[PATH_MAX];
} Below;

/* A ChMountListFunc. */
static bool
is_below(const char *mount_point, void *data)
{
    Below *below = data;
    const size_t length = strlen(below->dir);

    if (strncmp(mount_point, below->dir, length) != 0 || mount_point[length] != '/')
        return false;
    if (below->n_skipped > 0) {
        below->n_skipped--;
        return false;
    }
    /* Of a path that does not fit nothing is found: that is told. */
    (void)g_strlcpy(below->rest, mount_point + length + 1, sizeof(below->rest));
    return true;
}

/* Returns 0, -ENOENT: no more than @n_skipped are mounted below it, or another -errno. */
static int
find_below(Below *below, unsigned n_skipped)
{
    ch_autofd int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

    below->n_skipped = n_skipped;
    return fd < 0 ? -errno : ch_mount_list_find(fd, CH_MOUNT_LIST_NODE_BYTES, is_below, below);
}

/* Returns 0 or -errno. */
static int
detach_below(int dir_fd, const char *rest)
{
    ch_autofd int fd = ch_safe_open(dir_fd, rest, O_PATH, 0, CH_RESOLVE_NO_LINKS);

    return fd < 0 ? fd : ch_mount_detach_root(fd);
}

/* Whether no mount is where it was listed: the pod has renamed it since, and may have put a link or
 * a directory there, or another mount hides it. */
static bool
is_elsewhere(int result)
{
    return result == -ENOENT || result == -ENOTDIR || result == -ELOOP || result == -EINVAL;
}

/* What the pod has renamed, or a directory above it, is mounted under a name that nobody knows. */
static bool
sweep_below(int dir_fd, ChHandsReply *reply)
{
    static Below below;
    char path[CH_FD_PATH_SIZE];
    ssize_t length;
    unsigned n_skipped = 0;
    int n_vain = 0;
    int trouble = EBUSY;

    ch_fd_path(path, dir_fd);
    length = readlinkat(AT_FDCWD, path, below.dir, sizeof(below.dir) - 1);
    if (length < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_DIR, errno, "find the pod's directory");
    below.dir[length] = '\0';
    while (n_vain < MAX_VAIN && reply->size < MAX_VOLUMES) {
        const int found = find_below(&below, n_skipped);
        const int result = found == 0 ? detach_below(dir_fd, below.rest) : found;

        if (found == -ENOENT && n_skipped == 0)
            return true;
        if (result < 0 && !is_elsewhere(result))
            trouble = result;
        reply->size += result == 0;
        n_vain = result == 0 ? 0 : n_vain + 1;
        n_skipped = found == 0 && result < 0 ? n_skipped + 1 : 0; /* the next; else all again */
    }
    return ch_reply_fail_step(reply, CH_HANDS_STEP_UNMOUNT, trouble, "umount what was renamed");
}

/* @sweeps_names: what is directly in it goes with what was mounted on */
static void
sweep_dir(const char *uid, ChHandsMount mount, bool sweeps_names, ChHandsReply *reply)
{
    ch_autofd int dir_fd = ch_target_open_dir(uid, mount);
    ChHandsReply below = {0};

    if (dir_fd == -ENOENT || dir_fd == -ENOTDIR)
        return;
    if (dir_fd < 0) {
        (void)ch_reply_fail_step(&below, CH_HANDS_STEP_DIR, dir_fd, "open the pod's directory");
    } else {
        if (sweeps_names)
            sweep_names(dir_fd, reply);
        (void)sweep_below(dir_fd, &below);
    }
    add(reply, &below);
}

bool
ch_inside_sweep(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChMountSpaces spaces = CH_MOUNT_SPACES_INIT;

    if (ch_mount_spaces_open(&spaces, reply) && ch_mount_spaces_join(spaces.node_fd, reply)) {
        sweep_dir(request->uid, CH_HANDS_MOUNT_DISK, false, reply);
        sweep_dir(request->uid, CH_HANDS_MOUNT_HOTPLUG_DIR, true, reply);
    }
    ch_mount_spaces_clear(&spaces);
    return reply->errnum == 0;
}
