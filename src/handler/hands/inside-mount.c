/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/dir-list.h"
#include "handler/hands/reply.h"
#include "handler/hands/source.h"
#include "handler/hands/target.h"
#include "lib/base/crc32.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"
#include "lib/linux/pidfd.h"
#include "lib/linux/safe-path.h"

#define NON_ROOT_ID 107 /* user and group `qemu` of every launcher image */
#define IMAGE_DIR   "disk"
#define VOLUME_FILE "disk.img"
#define MAX_STACKED 16   /* mounts on one target */
#define MAX_KERNELS 64   /* names in kernel-boot that are looked at */
#define MAX_VOLUMES 1024 /* names in hotplug-disks that are looked at */

static pid_t node_pid = 1;

void
ch_inside_mount_set_node(pid_t pid)
{
    node_pid = pid;
}

typedef struct {
    int home_fd; /* owned; this process's mount namespace */
    int node_fd; /* owned; the node's */
} Spaces;
#define SPACES_INIT                                                                                \
    {                                                                                              \
        -EBADF, -EBADF                                                                             \
    }

static void
spaces_clear(Spaces *spaces)
{
    ch_close_fd(&spaces->home_fd);
    ch_close_fd(&spaces->node_fd);
}

static bool
fail(ChHandsReply *reply, ChHandsMountStep step, int errnum, const char *what)
{
    reply->step = step;
    return ch_reply_fail(reply, errnum, "%s", what);
}

static bool
spaces_open(Spaces *out_spaces, ChHandsReply *reply)
{
    char path[CH_FD_PATH_SIZE];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)node_pid);
    out_spaces->node_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (out_spaces->node_fd < 0)
        return fail(reply, CH_HANDS_STEP_NONE, errno, "failed to open mount namespace");
    out_spaces->home_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return out_spaces->home_fd >= 0 ||
           fail(reply, CH_HANDS_STEP_NONE, errno, "open the mount namespace");
}

static bool
join(int fd, ChHandsReply *reply)
{
    return setns(fd, CLONE_NEWNS) == 0 ||
           fail(reply, CH_HANDS_STEP_NONE, errno, "failed to join the mount namespace");
}

/* --- the source */

/* The one file in the image's directory /disk. Returns a descriptor or -errno; @out_step: which
 * rule it broke */
static int
open_only_image(int root_fd, ChHandsMountStep *out_step)
{
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, IMAGE_DIR, O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    char names[2][CH_DIR_NAME_SIZE];
    char path[sizeof(IMAGE_DIR "/") + CH_DIR_NAME_SIZE];
    int n;

    if (dir_fd < 0)
        return dir_fd;
    n = ch_dir_list(dir_fd, names, G_N_ELEMENTS(names));
    if (n != 1) {
        *out_step = n < 0    ? CH_HANDS_STEP_IMAGE
                    : n == 0 ? CH_HANDS_STEP_NO_IMAGE
                             : CH_HANDS_STEP_IMAGES;
        return n < 0 ? n : -ENOENT;
    }
    /* Again from the root, which a link is confined to. */
    (void)snprintf(path, sizeof(path), IMAGE_DIR "/%s", names[0]);
    return ch_safe_open(root_fd, path, O_PATH, 0, CH_RESOLVE_IN_ROOT);
}

static int
open_path(int root_fd, const char *path, gsize n_bytes)
{
    char text[CH_HANDS_PATH_SIZE];

    memcpy(text, path, n_bytes);
    text[n_bytes] = '\0';
    return ch_safe_open(root_fd, text, O_PATH, 0, CH_RESOLVE_IN_ROOT);
}

/* A volume is mounted at a directory of its name. */
static int
open_volume(int root_fd, const char *name)
{
    ch_autofd int fd = ch_safe_open(root_fd, name, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    bool is_root = false;
    int result;

    if (fd < 0)
        return fd;
    result = ch_mount_is_root(fd, &is_root);
    if (result == 0 && !is_root)
        result = -ENOENT;
    return result < 0 ? result : g_steal_fd(&fd);
}

static int
open_volume_file(int root_fd, const char *name, ChHandsMountStep *out_step)
{
    ch_autofd int dir_fd = open_volume(root_fd, name);

    if (dir_fd < 0) {
        *out_step = CH_HANDS_STEP_NO_IMAGE;
        return dir_fd;
    }
    return ch_safe_open(dir_fd, VOLUME_FILE, O_PATH, 0, CH_RESOLVE_IN_ROOT);
}

/* Returns a descriptor of what is to be mounted, O_PATH, or -EBADF with the reply filled in. */
static int
open_content(const ChHandsRequest *request, const char *path, int root_fd, ChHandsReply *reply)
{
    ChHandsMountStep step = CH_HANDS_STEP_IMAGE;
    ch_autofd int fd = -EBADF;
    bool is_dir = false;
    mode_t mode = 0;
    int result;

    switch ((ChHandsMount)request->mount) {
    case CH_HANDS_MOUNT_DISK:
        fd = request->n_bytes == 0 ? open_only_image(root_fd, &step)
                                   : open_path(root_fd, path, request->n_bytes);
        break;
    case CH_HANDS_MOUNT_BOOT:
        fd = open_path(root_fd, path, request->n_bytes);
        break;
    case CH_HANDS_MOUNT_HOTPLUG_FILE:
        fd = open_volume_file(root_fd, request->name, &step);
        break;
    case CH_HANDS_MOUNT_HOTPLUG_DIR:
        step = CH_HANDS_STEP_NO_IMAGE;
        fd = open_volume(root_fd, request->name);
        is_dir = true;
        break;
    case CH_HANDS_MOUNT_NONE:
    case CH_HANDS_MOUNT_N:
        break;
    }
    result = fd < 0 ? fd : ch_safe_identify(fd, NULL, &mode);
    if (result < 0)
        (void)fail(reply, step, result, "find what is to be mounted");
    else if (is_dir ? !S_ISDIR(mode) : !S_ISREG(mode))
        (void)fail(reply, CH_HANDS_STEP_IMAGE, EINVAL, "what is to be mounted is no regular file");
    else
        return g_steal_fd(&fd);
    return -EBADF;
}

static bool
is_data(ChHandsMount mount)
{
    return mount == CH_HANDS_MOUNT_DISK || mount == CH_HANDS_MOUNT_BOOT;
}

/* In the mount namespace of the source. Returns a detached clone, or -EBADF with the reply filled
 * in; @out_content: what is its root */
static int
clone_content(const ChHandsRequest *request,
              const char *path,
              const ChSource *source,
              ChFileId *out_content,
              bool *out_is_restricted,
              ChHandsReply *reply)
{
    ch_autofd int content_fd = open_content(request, path, source->root_fd, reply);
    ch_autofd int tree_fd = -EBADF;
    int result;

    if (content_fd < 0)
        return -EBADF;
    tree_fd = ch_mount_tree_clone(content_fd);
    result = tree_fd < 0 ? tree_fd : ch_safe_identify(content_fd, out_content, NULL);
    if (result == 0)
        result = ch_mount_tree_restrict(tree_fd, is_data(request->mount));
    *out_is_restricted = result == 0 || !is_data(request->mount);
    if (result < 0 && result != -ENOSYS)
        (void)fail(reply, CH_HANDS_STEP_MOUNT, result, "take a copy of the mount");
    else if (!ch_pidfd_is_alive(source->pidfd))
        (void)fail(reply, CH_HANDS_STEP_PROCESS, ESRCH, "the process that serves it");
    else
        return g_steal_fd(&tree_fd);
    return -EBADF;
}

/* Goes home, to the source, and back to the node. Returns as clone_content(). */
static int
fetch_tree(const ChHandsRequest *request,
           const char *path,
           const Spaces *spaces,
           ChFileId *out_content,
           bool *out_is_restricted,
           ChHandsReply *reply)
{
    const ChSourceName name = {request->source_uid, request->mount, request->index};
    ChSource source = {-EBADF, -EBADF};
    ch_autofd int tree_fd = -EBADF;

    if (!join(spaces->home_fd, reply) || !ch_source_open(&name, spaces->node_fd, &source, reply))
        return -EBADF;
    if (join(source.pidfd, reply))
        tree_fd = clone_content(request, path, &source, out_content, out_is_restricted, reply);
    ch_source_clear(&source);
    if (tree_fd >= 0 && !join(spaces->node_fd, reply))
        return -EBADF;
    return g_steal_fd(&tree_fd);
}

/* --- the target */

/* In the node's namespace. */
static bool
attach(
    int tree_fd, const ChFileId *content, bool is_restricted, ChTarget *target, ChHandsReply *reply)
{
    int result = ch_mount_tree_attach(tree_fd, target->fd);

    if (result < 0)
        return fail(reply, CH_HANDS_STEP_MOUNT, result, "mount it");
    if (!is_restricted)
        result = ch_mount_tree_restrict_attached(tree_fd);
    if (result < 0)
        (void)fail(reply, CH_HANDS_STEP_MOUNT, result, "make it read-only");
    else if (ch_target_reopen(target, reply)) {
        if (target->facts.is_mounted && target->facts.dev == content->dev &&
            target->facts.ino == content->ino)
            return true;
        (void)fail(reply, CH_HANDS_STEP_MOUNT, ESTALE, "the target is another file by now");
    }
    (void)ch_mount_detach_root(tree_fd); /* whatever name it has now */
    return false;
}

static bool
own(const ChTarget *target, ChHandsReply *reply)
{
    const int result = ch_safe_chown(target->fd, NON_ROOT_ID, NON_ROOT_ID);

    return result == 0 ||
           fail(reply, CH_HANDS_STEP_OWN, result, "change the ownership of what is mounted");
}

static bool
mount_target(const ChHandsRequest *request,
             const char *path,
             const Spaces *spaces,
             ChTarget *target,
             ChHandsReply *reply)
{
    ch_autofd int tree_fd = -EBADF;
    ChFileId content = {0};
    bool is_restricted = false;

    if (!target->facts.is_mounted) {
        tree_fd = fetch_tree(request, path, spaces, &content, &is_restricted, reply);
        if (tree_fd < 0 || !attach(tree_fd, &content, is_restricted, target, reply))
            return false;
        reply->size = 1;
    }
    reply->target = target->facts;
    return !(request->flags & CH_HANDS_OWN) || own(target, reply);
}

bool
ch_inside_mount(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    Spaces spaces = SPACES_INIT;
    ChTarget target = CH_TARGET_INIT;
    const bool is_done = spaces_open(&spaces, reply) && join(spaces.node_fd, reply) &&
                         ch_target_open(request, path, true, &target, reply) &&
                         mount_target(request, path, &spaces, &target, reply);

    ch_target_clear(&target);
    spaces_clear(&spaces);
    return is_done;
}

bool
ch_inside_look_at_target(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    Spaces spaces = SPACES_INIT;
    ChTarget target = CH_TARGET_INIT;
    const bool is_done = spaces_open(&spaces, reply) && join(spaces.node_fd, reply) &&
                         ch_target_open(request, path, false, &target, reply);

    reply->target = target.facts;
    ch_target_clear(&target);
    spaces_clear(&spaces);
    return is_done;
}

/* --- checksums */

/* @path_fd: O_PATH. Returns a descriptor to read from, or -errno. */
static int
reopen_to_read(int path_fd)
{
    char path[CH_FD_PATH_SIZE];
    int fd;

    ch_fd_path(path, path_fd);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* a regular file */
    return fd < 0 ? -errno : fd;
}

/* Returns 0 or -errno. */
static int
sum_part(int fd, uint64_t offset, ChHandsReply *reply)
{
    static uint8_t buffer[256 * 1024];
    const uint64_t end = MIN(reply->size, offset + CH_HANDS_SUM_BYTES);

    while (offset < end) {
        const ssize_t n = pread(fd, buffer, MIN(sizeof(buffer), end - offset), (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ESTALE; /* shorter than it was */
        reply->crc = ch_crc32(reply->crc, buffer, (size_t)n);
        offset += (uint64_t)n;
    }
    reply->end = offset;
    return 0;
}

static bool
sum_content(const ChHandsRequest *request, int content_fd, ChHandsReply *reply)
{
    ch_autofd int fd = reopen_to_read(content_fd);
    struct stat st;
    int result = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

    if (result < 0)
        return fail(reply, CH_HANDS_STEP_IMAGE, result, "open the image");
    if (request->offset > 0 && (st.st_dev != request->dev || st.st_ino != request->ino ||
                                request->offset > (uint64_t)st.st_size))
        return fail(reply, CH_HANDS_STEP_IMAGE, ESTALE, "read the image");
    reply->target = (ChHandsTarget){.dev = st.st_dev, .ino = st.st_ino, .mode = st.st_mode};
    reply->size = (uint64_t)st.st_size;
    reply->crc = request->crc;
    result = sum_part(fd, request->offset, reply);
    return result == 0 || fail(reply, CH_HANDS_STEP_IMAGE, result, "read the image");
}

bool
ch_inside_sum_image(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    const ChSourceName name = {request->uid, request->mount, request->index};
    ChSource source = {-EBADF, -EBADF};
    Spaces spaces = SPACES_INIT;
    ch_autofd int content_fd = -EBADF;
    bool is_done = false;

    if (spaces_open(&spaces, reply) && ch_source_open(&name, spaces.node_fd, &source, reply)) {
        content_fd = open_content(request, path, source.root_fd, reply);
        is_done = content_fd >= 0 && sum_content(request, content_fd, reply);
    }
    ch_source_clear(&source);
    spaces_clear(&spaces);
    return is_done;
}

/* --- unmounting */

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
            return fail(reply, CH_HANDS_STEP_UNMOUNT, result, "umount failed");
        reply->size++;
    }
    return fail(reply, CH_HANDS_STEP_UNMOUNT, EBUSY, "umount failed");
}

/* The pod has all rights in the directory: what cannot be removed stays until kubelet takes it.
 * Only what may succeed later is a failure. */
static bool
remove_name(int dir_fd, const char *name, ChHandsReply *reply)
{
    const int result = ch_safe_remove(dir_fd, name);

    return !ch_reply_is_shortage(result) ||
           fail(reply, CH_HANDS_STEP_TARGET, result, "remove what was mounted on");
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
        return fail(reply, CH_HANDS_STEP_TARGET, n, "list kernel-boot");
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
               fail(reply, failure.step, failure.errnum, "open what was mounted on");
    }
    is_done = remove_name(target.dir_fd,
                          request->mount == CH_HANDS_MOUNT_BOOT ? CH_TARGET_BOOT_NAME : target.name,
                          reply);
    if (is_done && is_data(request->mount)) { /* hp.sock serves other volumes too */
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
    Spaces spaces = SPACES_INIT;
    ChTarget target = CH_TARGET_INIT;
    const bool is_done = spaces_open(&spaces, reply) && join(spaces.node_fd, reply) &&
                         unmount_target(request, &target, reply) &&
                         (!(request->flags & CH_HANDS_REMOVE) || remove_rest(request, reply));

    ch_target_clear(&target);
    spaces_clear(&spaces);
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
        return fail(reply, CH_HANDS_STEP_TARGET, is_ours, "look at what may have been mounted on");
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
        return fail(reply, CH_HANDS_STEP_TARGET, n, "list the volumes");
    for (int i = 0; i < MIN(n, MAX_VOLUMES); i++) {
        (void)g_strlcpy(target->name, names[i], sizeof(target->name));
        if (!sweep_name(target, reply)) {
            if (first.errnum == 0)
                first = *reply;
            reply->errnum = 0;
        }
    }
    if (first.errnum != 0)
        *reply = first;
    return first.errnum == 0;
}

bool
ch_inside_sweep_hotplug(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChHandsRequest volumes = *request;
    Spaces spaces = SPACES_INIT;
    ChTarget target = CH_TARGET_INIT;
    bool is_done = spaces_open(&spaces, reply) && join(spaces.node_fd, reply);

    volumes.mount = CH_HANDS_MOUNT_HOTPLUG_DIR;
    volumes.name[0] = '.'; /* only the directory is wanted */
    if (is_done && ch_target_open(&volumes, "", false, &target, reply))
        is_done = sweep_names(&target, reply);
    else if (is_done)
        is_done = is_absent(reply);
    ch_target_clear(&target);
    spaces_clear(&spaces);
    return is_done;
}
