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
    for (int i = 0; i < MIN(n, MAX_KERNELS); i++) {
        (void)g_strlcpy(target->name, names[i], sizeof(target->name));
        if (!detach(target, reply))
            return false;
        if (removes && !remove_name(target->dir_fd, target->name, reply))
            return false;
    }
    return true;
}

static bool
remove_rest(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChHandsRequest disk = *request;
    ChTarget target = CH_TARGET_INIT;
    ChHandsReply failure = {0};
    char socket_name[CH_TARGET_NAME_SIZE];
    bool is_done;

    /* Of any kind of the same directory; without makes nothing is done to it. */
    if (request->mount == CH_HANDS_MOUNT_BOOT)
        disk.mount = CH_HANDS_MOUNT_DISK;
    if (!ch_target_open(&disk, "", false, &target, &failure)) {
        return !ch_reply_is_shortage(failure.errnum) ||
               ch_reply_fail_step(reply, failure.step, failure.errnum, "open what was mounted on");
    }
    is_done = remove_name(target.dir_fd,
                          request->mount == CH_HANDS_MOUNT_BOOT ? CH_TARGET_BOOT_NAME : target.name,
                          reply);
    if (is_done && ch_content_is_data(request->mount)) { /* hp.sock serves other volumes too */
        ch_target_socket_name(socket_name, request->mount, request->index);
        is_done = remove_name(target.dir_fd, socket_name, reply);
    }
    ch_target_clear(&target);
    return is_done;
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

/* Returns: false with the reply filled in, when it is still there. */
static bool
sweep_name(ChTarget *target, ChHandsReply *reply)
{
    const uint64_t n_before = reply->size;
    int is_ours;

    if (!detach(target, reply))
        return false;
    is_ours = reply->size > n_before || (target->fd >= 0 && S_ISBLK(target->facts.mode))
                  ? 1
                  : is_place(target);
    if (is_ours < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_TARGET, is_ours, "look at what may have been mounted on");
    return is_ours == 0 || remove_name(target->dir_fd, target->name, reply);
}

static bool
sweep_names(ChTarget *target, ChHandsReply *reply)
{
    static char names[MAX_VOLUMES][CH_DIR_NAME_SIZE];
    ch_autofd int list_fd =
        ch_safe_open(target->dir_fd, ".", O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    const int n = list_fd < 0 ? list_fd : ch_dir_list(list_fd, names, MAX_VOLUMES);
    ChHandsReply first = {0};

    if (n < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, n, "list the volumes");
    for (int i = 0; i < MIN(n, MAX_VOLUMES); i++) {
        (void)g_strlcpy(target->name, names[i], sizeof(target->name));
        if (!sweep_name(target, reply)) {
            if (first.errnum == 0)
                first = *reply;
            reply->errnum = 0;
        }
    }
    return first.errnum == 0 || ch_reply_take_failure(reply, &first);
}

/* What is mounted below a directory, however deep. */
typedef struct {
    char dir[PATH_MAX]; /* as the node names it */
    char rest[PATH_MAX];
} Below;

/* A ChMountListFunc. */
static bool
is_below(const char *mount_point, void *data)
{
    Below *below = data;
    const size_t length = strlen(below->dir);

    return strncmp(mount_point, below->dir, length) == 0 && mount_point[length] == '/' &&
           g_strlcpy(below->rest, mount_point + length + 1, sizeof(below->rest)) <
               sizeof(below->rest);
}

/* Returns 0, -ENOENT: nothing is mounted below it (any more), or another -errno. */
static int
find_below(Below *below)
{
    ch_autofd int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : ch_mount_list_find(fd, CH_MOUNT_LIST_NODE_BYTES, is_below, below);
}

/* Returns 0 or -errno: the pod may have renamed it again. */
static int
detach_below(int dir_fd, const char *rest)
{
    ch_autofd int fd = ch_safe_open(dir_fd, rest, O_PATH, 0, CH_RESOLVE_NO_LINKS);

    return fd < 0 ? fd : ch_mount_detach_root(fd);
}

/* What the pod has renamed, or a directory above it, is mounted under a name that nobody knows. */
static bool
sweep_below(int dir_fd, ChHandsReply *reply)
{
    static Below below;
    char path[CH_FD_PATH_SIZE];
    ssize_t length;
    int result = 0;

    ch_fd_path(path, dir_fd);
    length = readlinkat(AT_FDCWD, path, below.dir, sizeof(below.dir) - 1);
    if (length < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_DIR, errno, "find the pod's directory");
    below.dir[length] = '\0';
    for (int i = 0; i < MAX_VOLUMES && result == 0; i++) {
        result = find_below(&below);
        if (result == -ENOENT)
            return true;
        if (result == 0)
            result = detach_below(dir_fd, below.rest);
        if (result == 0)
            reply->size++;
        else if (result == -ENOENT) /* renamed meanwhile: looked for again */
            result = 0;
    }
    return ch_reply_fail_step(
        reply, CH_HANDS_STEP_UNMOUNT, result == 0 ? EBUSY : result, "umount what was renamed");
}

/* @sweeps_names: what is directly in it goes with what was mounted on */
static bool
sweep_dir(const ChHandsRequest *pod, ChHandsMount mount, bool sweeps_names, ChHandsReply *reply)
{
    ChHandsRequest request = *pod;
    ChTarget target = CH_TARGET_INIT;
    bool is_done;

    request.mount = mount;
    request.name[0] = '.'; /* only the directory is wanted */
    if (!ch_target_open(&request, "", false, &target, reply))
        return is_absent(reply);
    is_done = (!sweeps_names || sweep_names(&target, reply)) && sweep_below(target.dir_fd, reply);
    ch_target_clear(&target);
    return is_done;
}

bool
ch_inside_sweep(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChMountSpaces spaces = CH_MOUNT_SPACES_INIT;
    ChHandsReply disks = {0};
    bool is_done =
        ch_mount_spaces_open(&spaces, reply) && ch_mount_spaces_join(spaces.node_fd, reply);

    if (is_done) {
        const bool are_disks_done = sweep_dir(request, CH_HANDS_MOUNT_DISK, false, &disks);

        is_done = sweep_dir(request, CH_HANDS_MOUNT_HOTPLUG_DIR, true, reply);
        disks.size += reply->size;
        if (is_done && !are_disks_done)
            is_done = ch_reply_take_failure(reply, &disks);
        reply->size = disks.size;
    }
    ch_mount_spaces_clear(&spaces);
    return is_done;
}
