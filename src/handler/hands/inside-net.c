/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "handler/hands/tap.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

/* The namespace that this process comes from, once it has left it. */
static struct {
    int fd; /* 0: not known yet */
    ChFileId id;
    bool is_left;
} home;

/* Returns a descriptor of the network namespace that this process is in, or -errno. */
static int
open_network(ChFileId *out_id)
{
    ch_autofd int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    const int result = fd < 0 ? -errno : ch_safe_identify(fd, out_id, NULL);

    return result < 0 ? result : g_steal_fd(&fd);
}

static int
find_home(void)
{
    int fd;

    if (home.fd > 0)
        return 0;
    fd = open_network(&home.id);
    if (fd < 0)
        return fd;
    home.fd = fd;
    return 0;
}

/* By pidfd: the number may be somebody else's by now. A pod that uses the node's own network is
 * none that a VM gets: nothing of what follows is done to the node. */
bool
ch_inside_join_net(int pidfd, ChHandsReply *reply)
{
    ch_autofd int fd = -EBADF;
    ChFileId pods = {0};
    int result = find_home();

    home.is_left = true;
    if (result == 0 && setns(pidfd, CLONE_NEWNET) < 0)
        result = -errno;
    if (result == 0)
        result = fd = open_network(&pods);
    if (result >= 0 && home.id.dev == pods.dev && home.id.ino == pods.ino)
        result = -EPERM;
    return result >= 0 || ch_reply_fail(reply, result, "failed to fetch network namespace object");
}

int
ch_inside_check_away(int network_fd)
{
    ChFileId id = {0};
    int result = find_home();

    if (result == 0)
        result = ch_safe_identify(network_fd, &id, NULL);
    if (result == 0 && id.dev == home.id.dev && id.ino == home.id.ino)
        result = -EXDEV;
    return result;
}

bool
ch_inside_leave_net(void)
{
    if (home.is_left && home.fd > 0 && setns(home.fd, CLONE_NEWNET) == 0)
        home.is_left = false;
    return !home.is_left;
}

static const struct {
    uint32_t bit;
    const char *path;
    const char *value;
} sysctls[] = {
    {CH_HANDS_SYSCTL_IPV4_FORWARD, "/proc/sys/net/ipv4/ip_forward", "1"},
    {CH_HANDS_SYSCTL_IPV6_FORWARD, "/proc/sys/net/ipv6/conf/all/forwarding", "1"},
    {CH_HANDS_SYSCTL_ARP_IGNORE, "/proc/sys/net/ipv4/conf/all/arp_ignore", "1"},
    {CH_HANDS_SYSCTL_PING_GROUPS, "/proc/sys/net/ipv4/ping_group_range", "107 107"},
    {CH_HANDS_SYSCTL_ALL_PORTS, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"},
};

/* Of the network that this process is in. */
static bool
write_sysctls(uint32_t mask, ChHandsReply *reply)
{
    for (gsize i = 0; i < G_N_ELEMENTS(sysctls); i++) {
        ch_autofd int fd = -EBADF;

        if (!(mask & sysctls[i].bit))
            continue;
        fd = open(sysctls[i].path, O_WRONLY | O_CLOEXEC); /* shows the opener's namespace */
        if (fd < 0)
            return ch_reply_fail(reply, errno, "open '%s'", sysctls[i].path);
        if (write(fd, sysctls[i].value, strlen(sysctls[i].value)) < 0)
            return ch_reply_fail(reply, errno, "write '%s'", sysctls[i].path);
    }
    return true;
}

bool
ch_inside_open_net(int pidfd, ChHandsNet net, uint32_t mask, int *out_fd, ChHandsReply *reply)
{
    static const int protocols[] = {
        [CH_HANDS_NET_ROUTE] = NETLINK_ROUTE,
        [CH_HANDS_NET_NETFILTER] = NETLINK_NETFILTER,
    };
    int fd;

    if (!ch_inside_join_net(pidfd, reply) || !write_sysctls(mask, reply))
        return false;
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocols[net]);
    if (fd < 0)
        return ch_reply_fail(reply, errno, "make a netlink socket in the pod");
    *out_fd = fd;
    return true;
}

bool
ch_inside_make_tap(int pidfd, const char *name, uint32_t flags, ChHandsReply *reply)
{
    int result;

    if (!ch_inside_join_net(pidfd, reply))
        return false;
    result = ch_tap_make(name, flags);
    return result == 0 ||
           ch_reply_fail(reply, result, "failed to create tap device named %s. Reason: [0]", name);
}

bool
ch_inside_set_sysctls(int pidfd, uint32_t mask, ChHandsReply *reply)
{
    return ch_inside_join_net(pidfd, reply) && write_sysctls(mask, reply);
}
