/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-daemons.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/mount-list.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"
#include "lib/linux/safe-path.h"
#include "lib/linux/selinux.h"

#define NON_ROOT_ID    107 /* user and group `qemu` of every launcher image */
#define DAEMONS        "daemons"
#define RESERVATION    "pr"
#define MULTIPATH_NAME "multipathd.socket"
#define HELPER_NAME    "pr-helper.sock"
#define LABEL          "system_u:object_r:container_file_t:s0"
#define MAX_STACKED    16 /* mounts on one target */
#define WATCHED                                                                                    \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |         \
     IN_ONLYDIR)

static ChDaemonPlaces places = {"/var/run/kubevirt", "/run", "/proc/1/root", 1};

void
ch_inside_daemons_set_places(const ChDaemonPlaces *new_places)
{
    places = *new_places;
}

/* --- directories */

/* Follows links, as both are root's. Returns a descriptor or -errno. */
static int
open_dir(const char *path)
{
    const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int
open_child(int dir_fd, const char *name, bool makes)
{
    if (makes && mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
        return -errno;
    return ch_safe_open(dir_fd, name, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
}

/* daemons/pr. Returns a descriptor or -errno. */
static int
open_reservation(int share_fd, bool makes)
{
    ch_autofd int daemons_fd = open_child(share_fd, DAEMONS, makes);

    return daemons_fd < 0 ? daemons_fd : open_child(daemons_fd, RESERVATION, makes);
}

/* --- watching */

static bool
watch(int dir_fd, int *out_fd, ChHandsReply *reply)
{
    ch_autofd int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    char path[CH_FD_PATH_SIZE];

    if (fd < 0)
        return ch_reply_fail(reply, errno, "make an inotify instance");
    ch_fd_path(path, dir_fd);
    if (inotify_add_watch(fd, path, WATCHED) < 0)
        return ch_reply_fail(reply, errno, "watch the directory");
    *out_fd = g_steal_fd(&fd);
    return true;
}

bool
ch_inside_watch_multipath(int *out_fd, ChHandsReply *reply)
{
    ch_autofd int root_fd = open_dir(places.node_root);
    ch_autofd int run_fd =
        root_fd < 0
            ? root_fd
            : ch_safe_open(root_fd, places.run_dir, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);

    if (run_fd < 0)
        return ch_reply_fail(reply, run_fd, "open the node's '%s'", places.run_dir);
    return watch(run_fd, out_fd, reply);
}

bool
ch_inside_watch_reservation(int *out_fd, ChHandsReply *reply)
{
    ch_autofd int share_fd = open_dir(places.share_dir);
    ch_autofd int dir_fd = share_fd < 0 ? share_fd : open_reservation(share_fd, false);

    if (dir_fd < 0)
        return ch_reply_fail(reply,
                             dir_fd,
                             "error opening the socket dir %s/" DAEMONS "/" RESERVATION,
                             places.share_dir);
    return watch(dir_fd, out_fd, reply);
}

/* --- multipathd's socket */

typedef struct {
    int dir_fd; /* owned */
    int fd;     /* owned; O_PATH; -EBADF: nothing has the name */
    ChFileId id;
    mode_t mode;
    bool is_mounted;
} Target;
#define TARGET_INIT                                                                                \
    {                                                                                              \
        .dir_fd = -EBADF, .fd = -EBADF                                                             \
    }

static void
target_clear(Target *target)
{
    ch_close_fd(&target->fd);
    ch_close_fd(&target->dir_fd);
}

/* Returns 0, also when nothing has the name, or -errno; -ELOOP: a link. */
static int
target_look(Target *target)
{
    int result;

    ch_close_fd(&target->fd);
    target->is_mounted = false;
    result = ch_safe_open(target->dir_fd, MULTIPATH_NAME, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    target->fd = result;
    result = ch_safe_identify(target->fd, &target->id, &target->mode);
    return result < 0 ? result : ch_mount_is_root(target->fd, &target->is_mounted);
}

/* An empty file to mount on; what a pod put there instead of it goes. Returns 0 or -errno. */
static int
target_make(Target *target)
{
    ch_autofd int fd = -EBADF;
    int result = target_look(target);

    if (result == 0 && target->fd >= 0 && (target->is_mounted || S_ISREG(target->mode)))
        return 0;
    if (result < 0 && result != -ELOOP)
        return result;
    if ((result == -ELOOP || target->fd >= 0) &&
        unlinkat(target->dir_fd,
                 MULTIPATH_NAME,
                 result == 0 && S_ISDIR(target->mode) ? AT_REMOVEDIR : 0) < 0 &&
        errno != ENOENT)
        return -errno;
    fd = ch_safe_open(target->dir_fd,
                      MULTIPATH_NAME,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                      0666,
                      CH_RESOLVE_NO_LINKS);
    if (fd < 0 && fd != -EEXIST)
        return fd;
    return target_look(target);
}

/* Joins the node's mount namespace. The share directory must be the same one there: in one that is
 * nobody else's no pod would see what is mounted. */
static bool
enter_node(int *out_share_fd, ChHandsReply *reply)
{
    ch_autofd int own_fd = open_dir(places.share_dir);
    ch_autofd int node_fd = -EBADF;
    char path[CH_FD_PATH_SIZE];
    ChFileId own = {0}, found = {0};
    int result = own_fd < 0 ? own_fd : ch_safe_identify(own_fd, &own, NULL);

    if (own_fd == -ENOENT)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_DIR, EXDEV, "there is no share directory");
    if (result < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_DIR, result, "open the share directory");
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)places.node_pid);
    node_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (node_fd < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_NONE, errno, "failed to open mount namespace");
    if (setns(node_fd, CLONE_NEWNS) < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_NONE, errno, "failed to join the mount namespace");
    *out_share_fd = open_dir(places.share_dir);
    result = *out_share_fd < 0 ? *out_share_fd : ch_safe_identify(*out_share_fd, &found, NULL);
    if (ch_reply_is_unknown(result))
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_DIR, result, "open the node's share directory");
    if (result >= 0 && found.dev == own.dev && found.ino == own.ino)
        return true;
    return ch_reply_fail_step(
        reply, CH_HANDS_STEP_DIR, EXDEV, "the share directory is not the node's");
}

/* In the node's namespace. Returns a descriptor of multipathd's socket or -errno. */
static int
open_source(ChFileId *out_id)
{
    ch_autofd int run_fd = open_dir(places.run_dir);
    ch_autofd int fd =
        run_fd < 0 ? run_fd : ch_safe_open(run_fd, MULTIPATH_NAME, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    mode_t mode = 0;
    int result = fd < 0 ? fd : ch_safe_identify(fd, out_id, &mode);

    if (result < 0)
        return result;
    return S_ISSOCK(mode) ? g_steal_fd(&fd) : -ENOTSOCK;
}

static bool
is_same(const Target *target, const ChFileId *id)
{
    return target->fd >= 0 && target->is_mounted && target->id.dev == id->dev &&
           target->id.ino == id->ino;
}

typedef struct {
    char path[PATH_MAX];
    unsigned n;
} Stack;

static bool
count(const char *mount_point, void *data)
{
    Stack *stack = data;

    stack->n += g_str_equal(mount_point, stack->path);
    return false;
}

/* A socket below another mount of it cannot be removed any more, not by its daemon either. Returns
 * 1, 0 or -errno. */
static int
is_stacked(const Target *target)
{
    static Stack stack;
    ch_autofd int list_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    char path[CH_FD_PATH_SIZE];
    ssize_t n;
    int result;

    if (list_fd < 0)
        return -errno;
    ch_fd_path(path, target->fd);
    n = readlinkat(AT_FDCWD, path, stack.path, sizeof(stack.path) - 1);
    if (n < 0)
        return -errno;
    stack.path[n] = '\0';
    stack.n = 0;
    result = ch_mount_list_find(list_fd, CH_MOUNT_LIST_NODE_BYTES, count, &stack);
    return result == -ENOENT ? stack.n > 1 : result;
}

/* Also what was stacked. @kept: (nullable): stays, when it is the only one */
static bool
detach(Target *target, const ChFileId *kept, ChHandsReply *reply)
{
    for (int i = 0; i < MAX_STACKED; i++) {
        int result = target_look(target);

        if (result == -ELOOP) /* nothing is mounted on a link */
            return true;
        if (result < 0)
            return ch_reply_fail_step(
                reply, CH_HANDS_STEP_IS_ROOT, result, "look at the multipath socket");
        if (target->fd < 0 || !target->is_mounted)
            return true;
        result = kept != NULL && is_same(target, kept) ? is_stacked(target) : 1;
        if (result < 0)
            return ch_reply_fail_step(
                reply, CH_HANDS_STEP_IS_ROOT, result, "count the mounts of the multipath socket");
        if (result == 0)
            return true;
        result = ch_mount_detach_root(target->fd);
        if (result < 0)
            return ch_reply_fail_step(reply,
                                      CH_HANDS_STEP_UNMOUNT,
                                      result,
                                      "failed to umount persistent reservation directory");
        reply->size++;
    }
    return ch_reply_fail_step(
        reply, CH_HANDS_STEP_UNMOUNT, EBUSY, "failed to umount persistent reservation directory");
}

static bool
attach(Target *target, int source_fd, const ChFileId *id, ChHandsReply *reply)
{
    ch_autofd int tree_fd = ch_mount_tree_clone(source_fd);
    int result = target->fd < 0 ? -ESTALE : tree_fd; /* a pod removed what was just made */
    bool is_attached;

    if (result >= 0)
        result = ch_mount_tree_restrict(tree_fd, false);
    if (result >= 0 || result == -ENOSYS)
        result = ch_mount_tree_attach(tree_fd, target->fd);
    is_attached = result >= 0;
    if (is_attached)
        result = target_look(target);
    if (result >= 0 && !is_same(target, id))
        result = -ESTALE; /* a pod renamed what it lies on */
    if (is_attached && result < 0)
        (void)ch_mount_detach_root(tree_fd);
    reply->size += result >= 0;
    return result >= 0 || ch_reply_fail_step(reply,
                                             CH_HANDS_STEP_MOUNT,
                                             result,
                                             "failed to create the multipath socket bind mount");
}

static bool
set_multipath(Target *target, bool is_wanted, ChHandsReply *reply)
{
    ChFileId id = {0};
    ch_autofd int source_fd = is_wanted ? open_source(&id) : -ENOENT;
    int result;

    reply->look.socket_errno = source_fd < 0 ? -source_fd : 0;
    if (ch_reply_is_unknown(source_fd)) /* what is mounted may be what it should be */
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_SOCKET, source_fd, "open the multipath socket");
    if (!detach(target, source_fd >= 0 ? &id : NULL, reply))
        return false;
    if (!is_wanted)
        return true;
    result = target_make(target);
    if (result < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_TARGET, result, "create the multipath socket's place");
    if (source_fd == -ENOENT || is_same(target, &id))
        return true;
    if (source_fd < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_SOCKET, source_fd, "open the multipath socket");
    return attach(target, source_fd, &id, reply);
}

bool
ch_inside_set_multipath(const ChHandsRequest *request, ChHandsReply *reply)
{
    const bool is_wanted = !(request->flags & CH_HANDS_REMOVE);
    ch_autofd int share_fd = -EBADF;
    Target target = TARGET_INIT;
    bool is_done;

    if (!enter_node(&share_fd, reply))
        return false;
    target.dir_fd = open_reservation(share_fd, is_wanted);
    if (target.dir_fd == -ENOENT && !is_wanted)
        return true;
    is_done = target.dir_fd < 0 ? ch_reply_fail_step(reply,
                                                     CH_HANDS_STEP_DIR,
                                                     target.dir_fd,
                                                     "open the persistent reservation directory")
                                : set_multipath(&target, is_wanted, reply);
    if (target.fd >= 0)
        reply->target = (ChHandsTarget){
            .dev = target.id.dev,
            .ino = target.id.ino,
            .mode = target.mode,
            .is_mounted = target.is_mounted,
        };
    target_clear(&target);
    return is_done;
}

/* --- pr-helper's socket */

static bool
label(int fd, ChHandsReply *reply)
{
    const ChSelinuxMode mode = ch_selinux_mode(places.node_root, CH_SELINUX_OWN_LABEL);
    const int result = mode == CH_SELINUX_ABSENT    ? 0
                       : mode == CH_SELINUX_UNKNOWN ? -EAGAIN
                                                    : ch_selinux_label_fd(fd, LABEL);

    return result == 0 || mode == CH_SELINUX_PERMISSIVE ||
           ch_reply_fail_step(reply, CH_HANDS_STEP_OWN, result, "error relabeling required files");
}

/* @what: "dir ..." or ... for the texts; @fd: of it, or the -errno of its lookup */
static bool
give(int fd, ChHandsMountStep step, const char *what, const char *path, ChHandsReply *reply)
{
    int result;

    if (fd < 0) {
        reply->step = step;
        return ch_reply_fail(
            reply, fd, "error opening the socket%s %s/%s", what, places.share_dir, path);
    }
    result = ch_safe_chown(fd, NON_ROOT_ID, NON_ROOT_ID);
    if (result < 0) {
        reply->step = CH_HANDS_STEP_OWN;
        return ch_reply_fail(reply,
                             result,
                             "error setting the permission the socket%s %s/%s",
                             what,
                             places.share_dir,
                             path);
    }
    return label(fd, reply);
}

bool
ch_inside_own_reservation(ChHandsReply *reply)
{
    ch_autofd int share_fd = open_dir(places.share_dir);
    ch_autofd int dir_fd = share_fd < 0 ? share_fd : open_reservation(share_fd, false);
    ch_autofd int fd = -EBADF;
    mode_t mode = 0;
    int result;

    if (!give(dir_fd, CH_HANDS_STEP_DIR, " dir", DAEMONS "/" RESERVATION, reply))
        return false;
    fd = ch_safe_open(dir_fd, HELPER_NAME, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    result = fd < 0 ? fd : ch_safe_identify(fd, NULL, &mode);
    if (result >= 0 && !S_ISSOCK(mode))
        result = -ENOTSOCK;
    return give(result < 0 ? result : fd,
                CH_HANDS_STEP_SOCKET,
                "",
                DAEMONS "/" RESERVATION "/" HELPER_NAME,
                reply);
}
