/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-passt: passt's side of a migration: sockets that are to be repaired, and who asks for
 * it. Needs root. For test programs only.
 */

#pragma once

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/linux/test-tree.h"

#define FAKE_PASST_DIR     "run/libvirt/qemu/run/passt"
#define FAKE_PASST_WAIT_MS 60000

/* --- descriptors over a socket */

static inline void
fake_passt_send(int fd, int8_t mode, const int fds[], unsigned n_fds)
{
    char control[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8))) = {0};
    struct iovec body = {&mode, sizeof(mode)};
    struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};
    struct cmsghdr *header = (struct cmsghdr *)(gpointer)control;

    g_assert_cmpuint(n_fds, <=, 16);
    if (n_fds > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        *header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
        };
        memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
    }
    g_assert_cmpint((int)sendmsg(fd, &message, MSG_NOSIGNAL), ==, 1);
}

static inline int
fake_passt_take(int fd)
{
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
    char byte;
    struct iovec body = {&byte, 1};
    struct msghdr message = {.msg_iov = &body,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    int taken = -1;

    g_assert_cmpint((int)recvmsg(fd, &message, MSG_CMSG_CLOEXEC), ==, 1);
    memcpy(&taken, CMSG_DATA((struct cmsghdr *)(gpointer)control), sizeof(taken));
    return taken;
}

/* --- sockets */

/* A TCP socket, of this network or of one of its own, as a pod's is. */
static inline int
fake_passt_tcp(bool is_of_pod)
{
    int pair[2];
    int fd;
    pid_t child;

    if (!is_of_pod)
        return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNET) < 0)
            _exit(1);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        fake_passt_send(pair[1], 0, &fd, 1);
        _exit(0);
    }
    close(pair[1]);
    fd = fake_passt_take(pair[0]);
    close(pair[0]);
    g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
    return fd;
}

/* Whether the socket is in repair mode. */
static inline int
fake_passt_mode(int tcp_fd)
{
    int mode = -7;
    socklen_t size = sizeof(mode);

    g_assert_cmpint(getsockopt(tcp_fd, IPPROTO_TCP, TCP_REPAIR, &mode, &size), ==, 0);
    return mode;
}

/* --- who asks */

/* @root: of the pod. Returns the listening socket */
static inline int
fake_passt_listen(const char *root, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_autofree char *dir = g_build_filename(root, FAKE_PASST_DIR, NULL);
    const int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)g_snprintf(
        address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
    g_assert_cmpint(bind(fd, (const struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(fd, 1), ==, 0);
    close(dir_fd);
    return fd;
}

static inline void
fake_passt_await(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    g_assert_cmpint(poll(&poll_fd, 1, FAKE_PASST_WAIT_MS), ==, 1);
}

static inline int
fake_passt_accept(int listen_fd)
{
    int fd;

    fake_passt_await(listen_fd);
    fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

/* The byte that comes back; -100: the connection was closed instead. */
static inline int
fake_passt_echo(int fd)
{
    int8_t mode = 0;
    ssize_t n;

    fake_passt_await(fd);
    n = read(fd, &mode, 1);
    return n == 1 ? mode : -100;
}
