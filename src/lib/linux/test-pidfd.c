/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/linux/test-no-peerpidfd.h"

static void
test_peer(void)
{
    ch_autofd int pidfd = -EBADF;
    int pair[2];
    pid_t pid = 0;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    pidfd = ch_pidfd_open_peer(pair[0], &pid);
    g_assert_cmpint(pidfd, >=, 0);
    g_assert_cmpint(pid, ==, getpid());
    g_assert_cmpint(fcntl(pidfd, F_GETFD) & FD_CLOEXEC, !=, 0);
    g_assert_true(ch_pidfd_is_alive(pidfd));
    close(pair[0]);
    close(pair[1]);
}

static void
test_no_socket(void)
{
    pid_t pid = 42;

    g_assert_cmpint(ch_pidfd_open_peer(-1, &pid), ==, -EBADF);
    g_assert_cmpint(pid, ==, 42);
}

static void
test_alive(void)
{
    ch_autofd int pidfd = -EBADF;
    const pid_t child = fork();

    if (child == 0)
        for (;;)
            pause();
    pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    g_assert_cmpint(pidfd, >=, 0);
    g_assert_true(ch_pidfd_is_alive(pidfd));
    g_assert_cmpint(ch_pidfd_kill(pidfd, SIGKILL), ==, 0);
    g_assert_cmpint(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), ==, 0);
    g_assert_false(ch_pidfd_is_alive(pidfd)); /* a zombie counts as gone */
    g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
    g_assert_false(ch_pidfd_is_alive(pidfd));
    g_assert_cmpint(ch_pidfd_kill(pidfd, SIGKILL), ==, -ESRCH);
}

static void
on_alarm(int signo)
{
}

/* Signals all the time, as a process has that reaps children. */
static void
test_alive_under_signals(void)
{
    const struct itimerval often = {{0, 20}, {0, 20}}, never = {0};
    ch_autofd int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    unsigned n_alive = 0;

    signal(SIGALRM, on_alarm);
    g_assert_cmpint(setitimer(ITIMER_REAL, &often, NULL), ==, 0);
    for (unsigned i = 0; i < 100000; i++)
        n_alive += ch_pidfd_is_alive(pidfd);
    g_assert_cmpint(setitimer(ITIMER_REAL, &never, NULL), ==, 0);
    g_assert_cmpuint(n_alive, ==, 100000);
}

/* As on a kernel before 6.5: in a child, as the filter cannot be taken off again. */
static void
test_fallback(void)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        int pair[2];
        pid_t pid = 0;
        int pidfd;

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || !test_deny_peerpidfd())
            _exit(2);
        if (getsockopt(pair[0], SOL_SOCKET, 77, &pidfd, &(socklen_t){sizeof(pidfd)}) == 0)
            _exit(3);
        pidfd = ch_pidfd_open_peer(pair[0], &pid);
        _exit(pidfd >= 0 && ch_pidfd_is_alive(pidfd) && pid == getpid() ? 0 : 4);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pidfd/peer-is-found", test_peer);
    g_test_add_func("/pidfd/no-socket", test_no_socket);
    g_test_add_func("/pidfd/alive-until-the-end", test_alive);
    g_test_add_func("/pidfd/alive-under-signals", test_alive_under_signals);
    g_test_add_func("/pidfd/without-so-peerpidfd", test_fallback);
    return g_test_run();
}
