/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/launcher.h"
#include "handler/hands/mount-list.h"
#include "handler/hands/reply.h"
#include "handler/hands/target.h"
#include "lib/base/fd.h"
#include "lib/linux/pidfd.h"
#include "lib/linux/safe-path.h"

/* More mounts than a container has; each costs a lookup. */
#define MAX_TRIED 256

/* Below the directory that the mount's target lies in, too. */
static void
print_socket_name(char name[CH_TARGET_NAME_SIZE], const ChSourceName *source)
{
    ch_target_socket_name(name, source->mount, source->index);
}

static bool
fail_look(const ChSourceName *name, ChHandsReply *reply)
{
    return ch_reply_fail(reply, EAGAIN, "look for a source in pod '%s'", name->pod_uid);
}

/* Of its process. That its socket has no room for a connection now is a fact. */
static bool
is_fact(int errnum)
{
    return errnum == EAGAIN || !ch_reply_is_shortage(errnum);
}

bool
ch_source_look(const ChSourceName *name, ChHandsReply *reply)
{
    ch_autofd int dir_fd = ch_launcher_open_dir(name->pod_uid, ch_target_dir(name->mount));
    ch_autofd int socket_fd = -EBADF;
    ch_autofd int pidfd = -EBADF;
    char socket_name[CH_TARGET_NAME_SIZE];
    ChFileId inode;
    pid_t pid;
    int result;

    if (dir_fd < 0) {
        if (ch_reply_is_shortage(dir_fd))
            return fail_look(name, reply);
        reply->look.dir_errno = reply->look.socket_errno = reply->look.process_errno = -dir_fd;
        return true;
    }
    print_socket_name(socket_name, name);
    result = ch_safe_lookup(dir_fd, socket_name);
    if (result < 0) {
        if (ch_reply_is_shortage(result))
            return fail_look(name, reply);
        reply->look.socket_errno = reply->look.process_errno = -result;
        return true;
    }
    socket_fd = ch_launcher_connect_at(dir_fd, socket_name, &inode);
    if (socket_fd >= 0)
        pidfd = ch_pidfd_open_peer(socket_fd, &pid);
    if (socket_fd < 0)
        reply->look.process_errno = -socket_fd;
    else if (pidfd < 0)
        reply->look.process_errno = -pidfd;
    else if (!ch_pidfd_is_alive(pidfd))
        reply->look.process_errno = ESRCH;
    return is_fact(reply->look.process_errno) || fail_look(name, reply);
}

/* Returns 1, 0 or -errno. */
static int
same_file(int fd, int other_fd)
{
    ChFileId id = {0}, other = {0};
    int result = ch_safe_identify(fd, &id, NULL);

    if (result == 0)
        result = ch_safe_identify(other_fd, &other, NULL);
    return result < 0 ? result : id.dev == other.dev && id.ino == other.ino;
}

static int
open_mounts(pid_t pid)
{
    char path[CH_FD_PATH_SIZE];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Whether the process is in a container: the brain, taken over, could listen in a pod's directory,
 * and so could somebody on the node; their roots are no images. Returns 0 or -errno: -EPERM: it is
 * in none. */
static int
check_container(pid_t pid, int node_fd)
{
    ch_autofd int fd = open_mounts(pid);
    ch_autofd int own_fd = fd < 0 ? fd : open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    int is_own, is_node;

    if (fd < 0)
        return ch_reply_is_unknown(fd) ? fd : -EPERM;
    if (own_fd < 0)
        return -errno;
    is_own = same_file(fd, own_fd);
    is_node = same_file(fd, node_fd);
    if (is_own < 0 || is_node < 0)
        return MIN(is_own, is_node);
    return is_own || is_node ? -EPERM : 0;
}

typedef struct {
    int root_fd;
    const char *socket_name;
    const ChFileId *inode;
    unsigned n_tried;
    int trouble; /* -errno of a place that could not be looked at; 0: none */
} Search;

/* A ChMountListFunc: whether the socket lies directly in what is mounted here. */
static bool
holds_socket(const char *mount_point, void *data)
{
    Search *search = data;
    ch_autofd int dir_fd = -EBADF;
    ch_autofd int fd = -EBADF;
    ChFileId found;
    int result;

    if (g_str_has_prefix(mount_point, "/proc") || g_str_has_prefix(mount_point, "/sys") ||
        g_str_has_prefix(mount_point, "/dev") || search->n_tried++ == MAX_TRIED)
        return false;
    dir_fd =
        ch_safe_open(search->root_fd, mount_point, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    result = dir_fd;
    if (result >= 0)
        result = fd = ch_safe_open(dir_fd, search->socket_name, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    if (result >= 0)
        result = ch_safe_identify(fd, &found, NULL);
    if (ch_reply_is_unknown(result) && search->trouble == 0)
        search->trouble = result;
    return result >= 0 && found.dev == search->inode->dev && found.ino == search->inode->ino;
}

/* The emptyDir is mounted where the pod's template says, which is not for us to know. Returns 0 or
 * -errno. */
static int
find_socket(pid_t pid, Search *search)
{
    char path[CH_FD_PATH_SIZE];
    ch_autofd int fd = -EBADF;
    int result;

    (void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    result =
        fd < 0 ? -errno : ch_mount_list_find(fd, CH_MOUNT_LIST_MAX_BYTES, holds_socket, search);
    return result == -ENOENT && search->trouble != 0 ? search->trouble : result;
}

static bool
open_root(pid_t pid, int pidfd, int node_fd, Search *search, ChHandsReply *reply)
{
    char path[CH_FD_PATH_SIZE];
    int result;

    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    search->root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (search->root_fd < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_ROOT, errno, "open the process's root");
    result = check_container(pid, node_fd);
    if (result == -EPERM)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_ROOT, result, "the process is in no container");
    if (result < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_ROOT, result, "look at the process's mount namespace");
    result = find_socket(pid, search);
    if (!ch_pidfd_is_alive(pidfd))
        return ch_reply_fail_step(reply, CH_HANDS_STEP_PROCESS, ESRCH, "the process that listens");
    if (result < 0)
        return ch_reply_fail_step(reply,
                                  CH_HANDS_STEP_ROOT,
                                  result == -ENOENT ? EXDEV : result,
                                  "find the socket below the process's root");
    return true;
}

bool
ch_source_open(const ChSourceName *name, int node_fd, ChSource *out_source, ChHandsReply *reply)
{
    ch_autofd int dir_fd = ch_launcher_open_dir(name->pod_uid, ch_target_dir(name->mount));
    ch_autofd int socket_fd = -EBADF;
    ch_autofd int pidfd = -EBADF;
    char socket_name[CH_TARGET_NAME_SIZE];
    ChFileId inode;
    Search search = {.root_fd = -EBADF, .socket_name = socket_name, .inode = &inode};
    pid_t pid = 0;

    if (dir_fd < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_SOCKET, dir_fd, "open the socket's directory");
    print_socket_name(socket_name, name);
    socket_fd = ch_launcher_connect_at(dir_fd, socket_name, &inode);
    if (socket_fd < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_SOCKET, socket_fd, "connect to the socket");
    pidfd = ch_pidfd_open_peer(socket_fd, &pid);
    if (pidfd < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_PROCESS, pidfd, "the process that listens");
    if (!open_root(pid, pidfd, node_fd, &search, reply)) {
        ch_close_fd(&search.root_fd);
        return false;
    }
    *out_source = (ChSource){g_steal_fd(&pidfd), search.root_fd};
    return true;
}

void
ch_source_clear(ChSource *source)
{
    ch_close_fd(&source->pidfd);
    ch_close_fd(&source->root_fd);
}
