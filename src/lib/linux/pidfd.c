/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; the C library's headers are older */
#endif

static int
open_by_number(pid_t pid)
{
    const long pidfd = syscall(SYS_pidfd_open, pid, 0);

    return pidfd < 0 ? -errno : (int)pidfd;
}

int
ch_pidfd_open_peer(int socket_fd, pid_t *out_pid)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    int pidfd = -EBADF;

    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -errno;
    if (peer.pid <= 0)
        return -ESRCH;

    size = sizeof(pidfd);
    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
        if (errno != ENOPROTOOPT)
            return errno == EINVAL ? -ESRCH : -errno; /* EINVAL: the peer was reaped */
        pidfd = open_by_number(peer.pid);
    }
    if (pidfd >= 0)
        *out_pid = peer.pid;
    return pidfd;
}

bool
ch_pidfd_is_alive(int pidfd)
{
    struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
    int n;

    do
        n = poll(&poll_fd, 1, 0);
    while (n < 0 && errno == EINTR); /* a signal interrupts even a poll that does not wait */
    return n == 0;
}

int
ch_pidfd_kill(int pidfd, int signo)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0) < 0 ? -errno : 0;
}
