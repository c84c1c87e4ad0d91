/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/pidfd.h"

#define BINARY_DIR     "containers/container-disk-binary"
#define MARKER_NAME    "launcher-unresponsive"
#define SOCKET_IN_POD  "var/run/kubevirt/sockets/" CH_HANDS_SOCKET_NAME
#define ISOLATION_TEXT "failed to detect isolation for launcher pod: "
/* When it is connected to, which ends with a notify pipe in the pod. */
#define PIPE_TEXT "failed to detect isolation for launcher pod when setting up notify pipe: "

static const char *pods_dir = "/pods";

void
ch_launcher_set_pods_dir(const char *new_pods_dir)
{
    pods_dir = new_pods_dir;
}

int
ch_launcher_open_dir(const char *uid, const char *below)
{
    /* Opened anew each time: kubelet's directory may be mounted over while we run. */
    ch_autofd int pods_fd = open(pods_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[256];

    if (pods_fd < 0)
        return -errno;
    if (snprintf(path, sizeof(path), "%s/%s", uid, below) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    return ch_safe_open(pods_fd, path, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
}

/* Returns a descriptor of the pod's directory `sockets`, or -errno. */
static int
open_sockets_dir(const char *uid)
{
    return ch_launcher_open_dir(uid, CH_HANDS_SOCKETS_DIR);
}

static void
look(int dir_fd, const char *uid, ChHandsReply *reply)
{
    ch_autofd int binary_fd = ch_launcher_open_dir(uid, BINARY_DIR);

    reply->look.binary_errno = binary_fd < 0 ? -binary_fd : 0;
    if (dir_fd < 0) {
        reply->look.dir_errno = reply->look.socket_errno = reply->look.marker_errno = -dir_fd;
        return;
    }
    reply->look.socket_errno = -ch_safe_lookup(dir_fd, CH_HANDS_SOCKET_NAME);
    reply->look.marker_errno = -ch_safe_lookup(dir_fd, MARKER_NAME);
}

bool
ch_launcher_look(const char *uid, ChHandsReply *reply)
{
    ch_autofd int dir_fd = open_sockets_dir(uid);
    const ChHandsLook *seen = &reply->look;

    look(dir_fd, uid, reply);
    if (ch_reply_is_shortage(seen->dir_errno) || ch_reply_is_shortage(seen->socket_errno) ||
        ch_reply_is_shortage(seen->marker_errno) || ch_reply_is_shortage(seen->binary_errno))
        return ch_reply_fail(reply, EAGAIN, "look at the sockets of pod '%s'", uid);
    return true;
}

bool
ch_launcher_mark(const char *uid, ChHandsReply *reply)
{
    ch_autofd int dir_fd = open_sockets_dir(uid);
    ch_autofd int marker_fd = -EBADF;

    if (dir_fd < 0)
        return ch_reply_fail(reply, dir_fd, "open the socket directory of pod '%s'", uid);
    marker_fd = ch_safe_open(
        dir_fd, MARKER_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666, CH_RESOLVE_NO_LINKS);
    if (marker_fd < 0 && marker_fd != -EEXIST)
        return ch_reply_fail(reply, marker_fd, "create '%s' of pod '%s'", MARKER_NAME, uid);
    return true;
}

static bool
connect_inode(int socket_fd, int inode_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    G_STATIC_ASSERT(sizeof(address.sun_path) >= CH_FD_PATH_SIZE);
    ch_fd_path(address.sun_path, inode_fd);
    return connect(socket_fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

int
ch_launcher_connect_at(int dir_fd, const char *name, ChFileId *out_inode)
{
    /* No O_NOFOLLOW: a link at the end is then refused by the lookup itself. */
    ch_autofd int inode_fd = ch_safe_open(dir_fd, name, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    ch_autofd int socket_fd = -EBADF;
    ChFileId inode;
    int result = inode_fd < 0 ? inode_fd : ch_safe_identify(inode_fd, &inode, NULL);

    if (result < 0)
        return result;
    socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_fd < 0 || !connect_inode(socket_fd, inode_fd))
        return -errno;
    *out_inode = inode;
    return g_steal_fd(&socket_fd);
}

bool
ch_launcher_connect(const char *uid, ChLauncherConnection *out_connection, ChHandsReply *reply)
{
    ch_autofd int dir_fd = open_sockets_dir(uid);
    ChFileId inode = {0};
    int socket_fd;

    if (dir_fd < 0)
        return ch_reply_fail(reply, dir_fd, "open the socket directory of pod '%s'", uid);
    socket_fd = ch_launcher_connect_at(dir_fd, CH_HANDS_SOCKET_NAME, &inode);
    if (socket_fd < 0)
        return ch_reply_fail(reply, socket_fd, "connect to the launcher socket of pod '%s'", uid);
    *out_connection = (ChLauncherConnection){socket_fd, inode};
    return true;
}

bool
ch_launcher_identify(const char *uid,
                     const ChLauncherConnection *connection,
                     ChPodEntry *out_entry,
                     ChHandsReply *reply)
{
    pid_t pid = 0;
    ch_autofd int pidfd = ch_pidfd_open_peer(connection->socket_fd, &pid);

    if (pidfd < 0)
        return ch_reply_fail(reply, pidfd, PIPE_TEXT "the process that listens");
    /* New kernels give a pidfd even of a process that was reaped. */
    if (!ch_pidfd_is_alive(pidfd))
        return ch_reply_fail(reply, ESRCH, PIPE_TEXT "process %d", (int)pid);
    *out_entry = (ChPodEntry){
        .pid = pid, .socket = connection->inode, .pidfd = g_steal_fd(&pidfd), .root_fd = -EBADF};
    (void)snprintf(out_entry->uid, sizeof(out_entry->uid), "%s", uid);
    return true;
}

bool
ch_launcher_reconnect(const ChPodEntry *entry, int *out_socket_fd, ChHandsReply *reply)
{
    ChLauncherConnection connection = {.socket_fd = -EBADF};
    ch_autofd int socket_fd = -EBADF;
    ch_autofd int pidfd = -EBADF;
    pid_t pid = 0;

    if (!ch_launcher_connect(entry->uid, &connection, reply))
        return false;
    socket_fd = connection.socket_fd;
    pidfd = ch_pidfd_open_peer(socket_fd, &pid);
    if (pidfd < 0)
        return ch_reply_fail(reply, pidfd, ISOLATION_TEXT "the process that listens");
    if (!ch_pidfd_is_alive(entry->pidfd))
        return ch_reply_fail(reply, ESTALE, ISOLATION_TEXT "process %d ended", (int)entry->pid);
    if (pid != entry->pid || connection.inode.dev != entry->socket.dev ||
        connection.inode.ino != entry->socket.ino)
        return ch_reply_fail(
            reply, ESTALE, ISOLATION_TEXT "process %d listens no more", (int)entry->pid);
    *out_socket_fd = g_steal_fd(&socket_fd);
    return true;
}

/* A pod has a mount namespace of its own. The brain has ours: taken over, it could listen at a
 * place like a launcher's, and hand us its own root, or whatever it finds there, as a pod's.
 * Returns 0 or -errno: -EPERM: it is ours. */
static int
check_mounts(pid_t pid)
{
    char path[CH_FD_PATH_SIZE];
    struct stat ours, theirs;

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    if (stat("/proc/self/ns/mnt", &ours) < 0 || stat(path, &theirs) < 0)
        return ch_reply_is_unknown(-errno) ? -errno : -EPERM;
    return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino ? -EPERM : 0;
}

bool
ch_launcher_open_root(const ChPodEntry *entry,
                      const ChFileId *socket_inode,
                      int *out_root_fd,
                      ChHandsReply *reply)
{
    ch_autofd int root_fd = -EBADF;
    ch_autofd int inode_fd = -EBADF;
    char path[CH_FD_PATH_SIZE];
    ChFileId inode;
    int result;

    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)entry->pid);
    root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return ch_reply_fail(reply, errno, PIPE_TEXT "open '%s'", path);
    result = check_mounts(entry->pid);
    if (result == -EPERM)
        return ch_reply_fail(reply, result, PIPE_TEXT "process %d is in no pod", (int)entry->pid);
    if (result < 0)
        return ch_reply_fail(reply, result, PIPE_TEXT "look at its mount namespace");
    if (!ch_pidfd_is_alive(entry->pidfd))
        return ch_reply_fail(reply, ESRCH, PIPE_TEXT "process %d", (int)entry->pid);

    inode_fd = ch_safe_open(root_fd, SOCKET_IN_POD, O_PATH, 0, CH_RESOLVE_IN_ROOT);
    if (inode_fd < 0)
        return ch_reply_fail(reply, inode_fd, PIPE_TEXT "open '/" SOCKET_IN_POD "' in '%s'", path);
    result = ch_safe_identify(inode_fd, &inode, NULL);
    if (result < 0)
        return ch_reply_fail(reply, result, PIPE_TEXT "stat the socket in '%s'", path);
    if (inode.dev != socket_inode->dev || inode.ino != socket_inode->ino)
        return ch_reply_fail(reply, EXDEV, PIPE_TEXT "'%s' holds another launcher socket", path);
    *out_root_fd = g_steal_fd(&root_fd);
    return true;
}

bool
ch_launcher_hold(pid_t pid, int root_fd, int *out_pidfd, ChHandsReply *reply)
{
    ch_autofd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    char path[CH_FD_PATH_SIZE];
    struct stat held, found;

    if (pidfd < 0)
        return ch_reply_fail(reply, errno, ISOLATION_TEXT "process %d", (int)pid);
    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    if (fstat(root_fd, &held) < 0 || stat(path, &found) < 0)
        return ch_reply_fail(reply, errno, ISOLATION_TEXT "stat '%s'", path);
    if (!ch_pidfd_is_alive(pidfd))
        return ch_reply_fail(reply, ESRCH, ISOLATION_TEXT "process %d", (int)pid);
    if (held.st_dev != found.st_dev || held.st_ino != found.st_ino)
        return ch_reply_fail(reply, ESTALE, ISOLATION_TEXT "'%s' is another root", path);
    *out_pidfd = g_steal_fd(&pidfd);
    return true;
}
