/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-network: a process that has a network namespace of its own, as a pod's has. For test
 * programs only; needs root.
 */

#pragma once

#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fd.h"

typedef struct {
    pid_t pid; /* 0: none; not root, or ended */
    int pidfd;
} FakeNetwork;

static inline void
fake_network_init(FakeNetwork *f, bool is_its_own)
{
    int ready[2];
    char byte;

    *f = (FakeNetwork){.pidfd = -EBADF};
    if (geteuid() != 0)
        return;
    g_assert_cmpint(pipe2(ready, O_CLOEXEC), ==, 0);
    f->pid = fork();
    if (f->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (is_its_own && unshare(CLONE_NEWNET) < 0)
            _exit(1);
        if (write(ready[1], "r", 1) != 1)
            _exit(2);
        for (;;)
            pause();
    }
    close(ready[1]);
    g_assert_cmpint((int)read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
    f->pidfd = (int)syscall(SYS_pidfd_open, f->pid, 0);
    g_assert_cmpint(f->pidfd, >=, 0);
}

static inline void
fake_network_end(FakeNetwork *f)
{
    if (f->pid > 0) {
        kill(f->pid, SIGKILL);
        waitpid(f->pid, NULL, 0);
    }
    f->pid = 0;
}

static inline void
fake_network_clear(FakeNetwork *f)
{
    fake_network_end(f);
    ch_close_fd(&f->pidfd);
}

static inline bool
fake_network_skip(void)
{
    if (geteuid() == 0)
        return false;
    g_test_skip("needs root: network namespaces");
    return true;
}

static inline bool
fake_network_skip_taps(void)
{
    if (fake_network_skip())
        return true;
    if (access("/dev/net/tun", W_OK) == 0)
        return false;
    g_test_skip("no /dev/net/tun here");
    return true;
}
