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

/* Room for the descriptors, aligned as the kernel wants it. */
typedef union {
    char bytes[CMSG_SPACE(CH_CHANNEL_MAX_FDS * sizeof(int))];
    struct cmsghdr align;
} Control;

int
ch_channel_pair(int out_fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out_fds) < 0 ? -errno : 0;
}

int
ch_channel_send_fds(
    int channel_fd, const void *record, size_t n_bytes, const int *pass_fds, size_t n_fds)
{
    struct iovec part = {.iov_base = (void *)record, .iov_len = n_bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    Control control;
    ssize_t n;

    if (n_fds > 0) {
        memset(&control, 0, sizeof(control));
        control.align.cmsg_level = SOL_SOCKET;
        control.align.cmsg_type = SCM_RIGHTS;
        control.align.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(&control.align), pass_fds, n_fds * sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    }
    do
        n = sendmsg(channel_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int
ch_channel_send(int channel_fd, const void *record, size_t n_bytes, int pass_fd)
{
    return ch_channel_send_fds(channel_fd, record, n_bytes, &pass_fd, pass_fd >= 0 ? 1 : 0);
}

static void
take_fds(struct msghdr *message, int fds[CH_CHANNEL_MAX_FDS])
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);

    for (size_t i = 0; i < CH_CHANNEL_MAX_FDS; i++)
        fds[i] = -EBADF;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
}

ssize_t
ch_channel_receive_fds(int channel_fd, void *buffer, size_t size, int *out_fds, size_t n_fds)
{
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int fds[CH_CHANNEL_MAX_FDS];
    Control control;
    ssize_t n;

    if (n_fds > 0) {
        message.msg_control = &control;
        message.msg_controllen =
            CMSG_LEN(n_fds * sizeof(int)); /* CMSG_SPACE may have room for more */
    }
    do
        n = recvmsg(channel_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;

    take_fds(&message, fds);
    if (message.msg_flags & MSG_TRUNC)
        n = -EMSGSIZE;
    else if (message.msg_flags & MSG_CTRUNC)
        n = -EPROTO;
    for (size_t i = 0; i < CH_CHANNEL_MAX_FDS; i++) {
        if (n >= 0 && i < n_fds)
            out_fds[i] = fds[i];
        else
            ch_close_fd(&fds[i]);
    }
    return n;
}

ssize_t
ch_channel_receive(int channel_fd, void *buffer, size_t size, int *out_fd)
{
    return ch_channel_receive_fds(channel_fd, buffer, size, out_fd, out_fd != NULL ? 1 : 0);
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
