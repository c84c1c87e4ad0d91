/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-net.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/hands/test-fake-network.h"
#include "lib/base/fd.h"

/* What is done in it: in children, as the hands do it. */
static void
set_up(FakeNetwork *f, gconstpointer has_own_network)
{
    fake_network_init(f, has_own_network != NULL);
}

static void
tear_down(FakeNetwork *f, gconstpointer data)
{
    fake_network_clear(f);
}

typedef bool (*Step)(int pidfd, ChHandsReply *reply);

/* Returns the errno that @step reports, in a child. */
static int
run(const FakeNetwork *f, Step step)
{
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        ChHandsReply reply = {0};

        _exit(step(f->pidfd, &reply) ? 0 : reply.errnum);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool
open_route(int pidfd, ChHandsReply *reply)
{
    int fd = -EBADF;

    return ch_inside_open_net(pidfd, CH_HANDS_NET_ROUTE, 0, &fd, reply) && fd >= 0;
}

static bool
make_tap(int pidfd, ChHandsReply *reply)
{
    return ch_inside_make_tap(pidfd, "tap0", CH_HANDS_NON_ROOT, reply);
}

static bool
make_multi_queue_tap(int pidfd, ChHandsReply *reply)
{
    return ch_inside_make_tap(pidfd, "tap1", CH_HANDS_MULTI_QUEUE, reply);
}

static bool
make_named_lo(int pidfd, ChHandsReply *reply)
{
    return ch_inside_make_tap(pidfd, "lo", 0, reply);
}

static bool
set_all(int pidfd, ChHandsReply *reply)
{
    return ch_inside_set_sysctls(pidfd, CH_HANDS_SYSCTLS, reply);
}

static bool
open_and_set_all(int pidfd, ChHandsReply *reply)
{
    int fd = -EBADF;

    return ch_inside_open_net(pidfd, CH_HANDS_NET_ROUTE, CH_HANDS_SYSCTLS, &fd, reply) && fd >= 0;
}

/* As a child that does several steps, in two pods (the same twice). */
static bool
come_and_go(int pidfd, ChHandsReply *reply)
{
    struct stat home, pods, now;
    int fd = -EBADF;

    reply->errnum = EDOM;
    if (!ch_inside_leave_net() || stat("/proc/self/ns/net", &home) < 0)
        return false; /* it was at home */
    for (int i = 0; i < 2; i++) {
        if (!ch_inside_open_net(pidfd, CH_HANDS_NET_ROUTE, 0, &fd, reply) ||
            stat("/proc/self/ns/net", &pods) < 0 || !ch_inside_leave_net() ||
            stat("/proc/self/ns/net", &now) < 0)
            return false;
        if (pods.st_ino == home.st_ino || now.st_ino != home.st_ino)
            return false;
    }
    return true;
}

/* Its home is not to be had: it must not serve on. */
static bool
get_lost(int pidfd, ChHandsReply *reply)
{
    int fd = -EBADF;

    reply->errnum = EDOM;
    if (!ch_inside_open_net(pidfd, CH_HANDS_NET_ROUTE, 0, &fd, reply))
        return false;
    (void)close_range(STDERR_FILENO + 1, ~0u, 0);
    return !ch_inside_leave_net();
}

static bool
has_taps(int pidfd, ChHandsReply *reply)
{
    reply->errnum = EDOM;
    return setns(pidfd, CLONE_NEWNET) == 0 && if_nametoindex("tap0") != 0 &&
           if_nametoindex("tap1") != 0;
}

static bool
is_one(const char *path)
{
    ch_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char byte = '0';

    return fd >= 0 && read(fd, &byte, 1) == 1 && byte == '1';
}

static bool
has_text(const char *path, const char *text)
{
    ch_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char found[64] = "";

    return fd >= 0 && read(fd, found, sizeof(found) - 1) > 0 && g_str_equal(found, text);
}

static bool
has_sysctls(int pidfd, ChHandsReply *reply)
{
    reply->errnum = EDOM;
    return setns(pidfd, CLONE_NEWNET) == 0 && is_one("/proc/sys/net/ipv4/ip_forward") &&
           is_one("/proc/sys/net/ipv4/conf/all/arp_ignore") &&
           has_text("/proc/sys/net/ipv4/ping_group_range", "107\t107\n") &&
           has_text("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0\n") &&
           (access("/proc/sys/net/ipv6", F_OK) < 0 ||
            is_one("/proc/sys/net/ipv6/conf/all/forwarding"));
}

/* A new network has the first one's. */
static bool
clear_sysctls(int pidfd, ChHandsReply *reply)
{
    ch_autofd int forward = -EBADF, ignore = -EBADF;

    reply->errnum = EDOM;
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return false;
    forward = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);
    ignore = open("/proc/sys/net/ipv4/conf/all/arp_ignore", O_WRONLY | O_CLOEXEC);
    return write(forward, "0", 1) == 1 && write(ignore, "0", 1) == 1;
}

static void
test_taps(FakeNetwork *f, gconstpointer data)
{
    if (fake_network_skip_taps())
        return;
    g_assert_cmpint(run(f, make_tap), ==, 0);
    g_assert_cmpint(run(f, make_tap), ==, EBUSY); /* never another one's */
    g_assert_cmpint(run(f, make_multi_queue_tap), ==, 0);
    g_assert_cmpint(run(f, make_named_lo), ==, EBUSY);
    g_assert_cmpint(run(f, has_taps), ==, 0); /* they outlive who made them */
    g_assert_cmpuint(if_nametoindex("tap0"), ==, 0);
}

/* spec:04-23.5#5 */
static void
test_sysctls(FakeNetwork *f, gconstpointer data)
{
    if (fake_network_skip())
        return;
    g_assert_cmpint(run(f, set_all), ==, 0);
    g_assert_cmpint(run(f, set_all), ==, 0);
    g_assert_cmpint(run(f, has_sysctls), ==, 0);
}

/* --- each sysctl alone */

static const struct {
    uint32_t bit;
    const char *path, *wanted;
} one_by_one[] = {
    {CH_HANDS_SYSCTL_IPV4_FORWARD, "/proc/sys/net/ipv4/ip_forward", "1\n"},
    {CH_HANDS_SYSCTL_IPV6_FORWARD, "/proc/sys/net/ipv6/conf/all/forwarding", "1\n"},
    {CH_HANDS_SYSCTL_ARP_IGNORE, "/proc/sys/net/ipv4/conf/all/arp_ignore", "1\n"},
    {CH_HANDS_SYSCTL_PING_GROUPS, "/proc/sys/net/ipv4/ping_group_range", "107\t107\n"},
    {CH_HANDS_SYSCTL_ALL_PORTS, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0\n"},
};
G_STATIC_ASSERT(CH_HANDS_SYSCTLS == (1u << G_N_ELEMENTS(one_by_one)) - 1);

typedef char Values[G_N_ELEMENTS(one_by_one)][64];

static Values *seen;      /* shared with the children */
static uint32_t only_bit; /* for the next child */

static bool
set_only(int pidfd, ChHandsReply *reply)
{
    return ch_inside_set_sysctls(pidfd, only_bit, reply);
}

static bool
look(int pidfd, ChHandsReply *reply)
{
    reply->errnum = EDOM;
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return false;
    memset(*seen, 0, sizeof(*seen));
    for (gsize i = 0; i < G_N_ELEMENTS(one_by_one); i++) {
        ch_autofd int fd = open(one_by_one[i].path, O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && read(fd, (*seen)[i], sizeof((*seen)[i]) - 1) < 0)
            return false;
    }
    return true;
}

/* spec:04-23.5#5: the others stay as they were. */
static void
test_each_sysctl(FakeNetwork *f, gconstpointer data)
{
    Values before;

    if (fake_network_skip())
        return;
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(seen != MAP_FAILED);
    for (gsize i = 0; i < G_N_ELEMENTS(one_by_one); i++) {
        g_assert_cmpint(run(f, look), ==, 0);
        memcpy(before, *seen, sizeof(before));
        if (before[i][0] == '\0') /* a kernel without IPv6 */
            continue;
        only_bit = one_by_one[i].bit;
        g_assert_cmpint(run(f, set_only), ==, 0);
        g_assert_cmpint(run(f, look), ==, 0);
        for (gsize j = 0; j < G_N_ELEMENTS(one_by_one); j++)
            g_assert_cmpstr((*seen)[j], ==, i == j ? one_by_one[j].wanted : before[j]);
    }
    munmap(seen, sizeof(*seen));
}

static void
test_sysctls_with_socket(FakeNetwork *f, gconstpointer data)
{
    if (fake_network_skip())
        return;
    g_assert_cmpint(run(f, clear_sysctls), ==, 0);
    g_assert_cmpint(run(f, open_route), ==, 0);
    g_assert_cmpint(run(f, has_sysctls), !=, 0);
    g_assert_cmpint(run(f, open_and_set_all), ==, 0);
    g_assert_cmpint(run(f, has_sysctls), ==, 0);
}

static void
test_leave(FakeNetwork *f, gconstpointer data)
{
    if (fake_network_skip())
        return;
    g_assert_cmpint(run(f, come_and_go), ==, 0);
    g_assert_cmpint(run(f, get_lost), ==, 0);
}

static void
test_socket(FakeNetwork *f, gconstpointer data)
{
    if (fake_network_skip())
        return;
    g_assert_cmpint(run(f, open_route), ==, 0);
    fake_network_end(f);
    g_assert_cmpint(run(f, open_route), ==, ESRCH);
}

/* Who shares our network is no pod. */
static void
test_own_network(FakeNetwork *f, gconstpointer data)
{
    if (fake_network_skip())
        return;
    g_assert_cmpint(run(f, open_route), ==, EPERM);
    g_assert_cmpint(run(f, make_tap), ==, EPERM);
    g_assert_cmpint(run(f, set_all), ==, EPERM);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/inside-net/taps", FakeNetwork, "own", set_up, test_taps, tear_down);
    g_test_add("/inside-net/sysctls", FakeNetwork, "own", set_up, test_sysctls, tear_down);
    g_test_add("/inside-net/each-sysctl", FakeNetwork, "own", set_up, test_each_sysctl, tear_down);
    g_test_add("/inside-net/sysctls-with-socket",
               FakeNetwork,
               "own",
               set_up,
               test_sysctls_with_socket,
               tear_down);
    g_test_add("/inside-net/socket", FakeNetwork, "own", set_up, test_socket, tear_down);
    g_test_add("/inside-net/leaves-again", FakeNetwork, "own", set_up, test_leave, tear_down);
    g_test_add(
        "/inside-net/refuses-its-own", FakeNetwork, NULL, set_up, test_own_network, tear_down);
    return g_test_run();
}
