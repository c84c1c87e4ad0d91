/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/channel.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/linux/clock.h"

/* Room for one descriptor, aligned as the kernel wants it. */
typedef union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
} Control;

int
ch_channel_pair(int out_fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out_fds) < 0 ? -errno : 0;
}

int
ch_channel_send(int channel_fd, const void *record, size_t n_bytes, int pass_fd)
{
    struct iovec part = {.iov_base = (void *)record, .iov_len = n_bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    Control control;
    ssize_t n;

    if (pass_fd >= 0) {
        memset(&control, 0, sizeof(control));
        control.align.cmsg_level = SOL_SOCKET;
        control.align.cmsg_type = SCM_RIGHTS;
        control.align.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.align), &pass_fd, sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    do
        n = sendmsg(channel_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

static int
take_fd(struct msghdr *message)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    int fd = -EBADF;

    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

ssize_t
ch_channel_receive(int channel_fd, void *buffer, size_t size, int *out_fd)
{
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ch_autofd int fd = -EBADF;
    Control control;
    ssize_t n;

    if (out_fd != NULL) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_LEN(sizeof(int)); /* CMSG_SPACE has room for two */
    }
    do
        n = recvmsg(channel_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;

    fd = take_fd(&message);
    if (message.msg_flags & MSG_TRUNC)
        return -EMSGSIZE;
    if (message.msg_flags & MSG_CTRUNC)
        return -EPROTO;
    if (out_fd != NULL)
        *out_fd = g_steal_fd(&fd);
    return n;
}

int
ch_channel_wait(int channel_fd, int64_t deadline_us)
{
    struct pollfd poll_fd = {.fd = channel_fd, .events = POLLIN};

    for (;;) {
        const int64_t left_ms = (deadline_us - ch_clock_us() + 999) / 1000;
        int n;

        if (left_ms <= 0)
            return -ETIMEDOUT;
        n = poll(&poll_fd, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}
