/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "handler/hands/inside-own.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"

#define SHARE_DIR "var/run/kubevirt"
#define PIPE_NAME "domain-notify-pipe.sock"
#define PIPE_TEXT "failed to create unix socket for proxy service: "

static int
open_share_dir(int root_fd)
{
    return ch_safe_open(root_fd, SHARE_DIR, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
}

/* Binds by descriptor: neither the 108 bytes of sun_path nor a renamed parent matter then. bind(2)
 * itself refuses a name that exists, links included. */
static int
bind_below(int socket_fd, int dir_fd, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char dir_path[CH_FD_PATH_SIZE];
    int n;

    ch_fd_path(dir_path, dir_fd);
    n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir_path, name);
    if (n < 0 || (size_t)n >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    return bind(socket_fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

/* Opens what bind made. The pod may have put something else there meanwhile; a socket that root
 * owns cannot be one of its own, nor one that it linked in from elsewhere. */
static int
reopen_pipe(int dir_fd, ChFileId *out_id)
{
    ch_autofd int fd = ch_safe_open(dir_fd, PIPE_NAME, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
        return -ESTALE;
    *out_id = (ChFileId){st.st_dev, st.st_ino};
    return g_steal_fd(&fd);
}

bool
ch_inside_open_pipe(int root_fd, bool is_non_root, int *out_listen_fd, ChHandsReply *reply)
{
    ch_autofd int dir_fd = open_share_dir(root_fd);
    ch_autofd int socket_fd = -EBADF;
    ch_autofd int inode_fd = -EBADF;
    ChFileId id = {0};
    int result;

    if (dir_fd < 0)
        return ch_reply_fail(reply, dir_fd, PIPE_TEXT "open '/" SHARE_DIR "'");
    result = ch_safe_remove(dir_fd, PIPE_NAME);
    if (result == -ELOOP)
        return ch_reply_fail(reply, result, PIPE_TEXT "'" PIPE_NAME "': the pathname is symlink");
    if (result < 0)
        return ch_reply_fail(reply, result, PIPE_TEXT "failed unlinking socket");

    socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_fd < 0)
        return ch_reply_fail(reply, errno, PIPE_TEXT "make a socket");
    result = bind_below(socket_fd, dir_fd, PIPE_NAME);
    if (result < 0)
        return ch_reply_fail(reply, result, PIPE_TEXT "bind");
    if (listen(socket_fd, SOMAXCONN) < 0)
        return ch_reply_fail(reply, errno, PIPE_TEXT "listen");
    inode_fd = reopen_pipe(dir_fd, &id);
    if (inode_fd < 0)
        return ch_reply_fail(reply, inode_fd, PIPE_TEXT "check '" PIPE_NAME "'");

    if (is_non_root) {
        result = ch_safe_chown(inode_fd, CH_INSIDE_UID, CH_INSIDE_GID);
        if (result < 0)
            return ch_reply_fail(reply, result, "unable to change ownership for domain notify");
    }
    reply->dev = id.dev;
    reply->ino = id.ino;
    *out_listen_fd = g_steal_fd(&socket_fd);
    return true;
}

bool
ch_inside_close_pipe(int root_fd, const ChFileId *pipe, ChHandsReply *reply)
{
    ch_autofd int dir_fd = open_share_dir(root_fd);
    ch_autofd int fd = -EBADF;
    ChFileId found;
    int result;

    if (dir_fd < 0)
        return ch_reply_fail(reply, dir_fd, "open '/" SHARE_DIR "'");
    fd = ch_safe_open(dir_fd, PIPE_NAME, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    if (fd < 0)
        return ch_reply_fail(reply, fd, "open '" PIPE_NAME "'");
    result = ch_safe_identify(fd, &found, NULL);
    if (result < 0 || found.dev != pipe->dev || found.ino != pipe->ino)
        return ch_reply_fail(reply, ESTALE, "'" PIPE_NAME "'");
    /* A successor that binds between check and unlink would have to be a second agent that removed
     * this very inode within these microseconds. */
    if (unlinkat(dir_fd, PIPE_NAME, 0) < 0)
        return ch_reply_fail(reply, errno, "unlink '" PIPE_NAME "'");
    return true;
}

#define RUN_DIR      "var/run"
#define PRIVATE_NAME "kubevirt-private"
#define PRIVATE_DIR  RUN_DIR "/" PRIVATE_NAME
#define DHCP_TEXT    "failed to save DHCP configuration: "

/* Returns a descriptor of the directory, which is made when there is none, or -errno. */
static int
open_private_dir(int root_fd)
{
    int fd = ch_safe_open(root_fd, PRIVATE_DIR, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);

    if (fd == -ENOENT) {
        ch_autofd int run_fd =
            ch_safe_open(root_fd, RUN_DIR, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);

        if (run_fd < 0)
            return run_fd;
        if (mkdirat(run_fd, PRIVATE_NAME, 0750) < 0 && errno != EEXIST)
            return -errno;
        fd = ch_safe_open(run_fd, PRIVATE_NAME, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    }
    return fd;
}

static int
write_all(int fd, const char *bytes, gsize n_bytes)
{
    while (n_bytes > 0) {
        const ssize_t n = write(fd, bytes, n_bytes);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            bytes += n;
            n_bytes -= (gsize)n;
        }
    }
    return 0;
}

bool
ch_inside_store_dhcp(
    int root_fd, const char *link, const void *bytes, gsize n_bytes, ChHandsReply *reply)
{
    ch_autofd int dir_fd = open_private_dir(root_fd);
    ch_autofd int fd = -EBADF;
    char name[64];
    char temporary[64];
    int result;

    if (dir_fd < 0)
        return ch_reply_fail(reply, dir_fd, DHCP_TEXT "open '/" PRIVATE_DIR "'");
    (void)snprintf(name, sizeof(name), "vif-cache-%s.json", link);
    (void)snprintf(temporary, sizeof(temporary), ".vif-cache-%s.new", link);
    result = ch_safe_remove(dir_fd, temporary); /* of one that was interrupted */
    if (result < 0)
        return ch_reply_fail(reply, result, DHCP_TEXT "remove '%s'", temporary);
    fd = ch_safe_open(
        dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0604, CH_RESOLVE_NO_LINKS);
    if (fd < 0)
        return ch_reply_fail(reply, fd, DHCP_TEXT "create '%s'", temporary);
    result = write_all(fd, bytes, n_bytes);
    if (result == 0)
        result = ch_safe_chown(fd, CH_INSIDE_UID, CH_INSIDE_GID);
    if (result == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
        result = -errno;
    return result == 0 || ch_reply_fail(reply, result, DHCP_TEXT "write '%s'", name);
}

bool
ch_inside_remove_dhcp(int root_fd, const char *link, ChHandsReply *reply)
{
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, PRIVATE_DIR, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    char name[64];

    if (dir_fd == -ENOENT)
        return true;
    if (dir_fd < 0)
        return ch_reply_fail(reply, dir_fd, "open '/" PRIVATE_DIR "'");
    (void)snprintf(name, sizeof(name), "vif-cache-%s.json", link);
    if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
        return ch_reply_fail(reply, errno, "remove '%s'", name);
    return true;
}
