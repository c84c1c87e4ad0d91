/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/net-check.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#define BIT(n) (UINT64_C(1) << (n))

#define LINK_ATTRIBUTES                                                                            \
    (BIT(IFLA_IFNAME) | BIT(IFLA_ADDRESS) | BIT(IFLA_MTU) | BIT(IFLA_MASTER) |                     \
     BIT(IFLA_LINKINFO) | BIT(IFLA_AF_SPEC) | BIT(IFLA_PROTINFO))
#define ADDRESS_ATTRIBUTES (BIT(IFA_ADDRESS) | BIT(IFA_LOCAL) | BIT(IFA_LABEL) | BIT(IFA_BROADCAST))

static const struct {
    uint16_t type;
    gsize n_header_bytes;
    uint64_t attributes; /* that it may have: a bit a type */
} route_messages[] = {
    {RTM_NEWLINK, sizeof(struct ifinfomsg), LINK_ATTRIBUTES},
    {RTM_SETLINK, sizeof(struct ifinfomsg), LINK_ATTRIBUTES},
    {RTM_DELLINK, sizeof(struct ifinfomsg), 0},
    {RTM_NEWADDR, sizeof(struct ifaddrmsg), ADDRESS_ATTRIBUTES},
    {RTM_DELADDR, sizeof(struct ifaddrmsg), ADDRESS_ATTRIBUTES},
};

#define NFT(type) (NFNL_SUBSYS_NFTABLES << 8 | (type))

static const uint16_t netfilter_messages[] = {
    NFNL_MSG_BATCH_BEGIN,
    NFNL_MSG_BATCH_END,
    NFT(NFT_MSG_NEWTABLE),
    NFT(NFT_MSG_NEWCHAIN),
    NFT(NFT_MSG_NEWSET),
    NFT(NFT_MSG_NEWSETELEM),
    NFT(NFT_MSG_NEWRULE),
    NFT(NFT_MSG_DELRULE),
    NFT(NFT_MSG_GETRULE),
};

static const char *const link_kinds[] = {"bridge", "dummy"};

/* --- attributes */

/* Calls @check for each; 0, EBADMSG when they are none, or what it says. */
static int
for_each_attribute(const char *bytes,
                   gsize n_bytes,
                   int (*check)(const struct nlattr *attribute, uint64_t allowed),
                   uint64_t allowed)
{
    while (n_bytes > 0) {
        const struct nlattr *attribute = (const struct nlattr *)(const void *)bytes;
        gsize step;
        int result;

        if (n_bytes < sizeof(*attribute) || attribute->nla_len < sizeof(*attribute) ||
            attribute->nla_len > n_bytes)
            return EBADMSG;
        result = check(attribute, allowed);
        if (result != 0)
            return result;
        step = ((gsize)attribute->nla_len + 3) & ~(gsize)3;
        step = step < n_bytes ? step : n_bytes;
        bytes += step;
        n_bytes -= step;
    }
    return 0;
}

/* Of IFLA_LINKINFO: a kind that is made, and nothing about it. */
static int
check_link_info(const struct nlattr *attribute, uint64_t unused)
{
    const char *kind = (const char *)(attribute + 1);
    gsize length = attribute->nla_len - sizeof(*attribute);

    if (attribute->nla_type != IFLA_INFO_KIND)
        return EPERM;
    if (length > 0 && kind[length - 1] == '\0')
        length--;
    for (gsize i = 0; i < G_N_ELEMENTS(link_kinds); i++)
        if (strlen(link_kinds[i]) == length && memcmp(link_kinds[i], kind, length) == 0)
            return 0;
    return EPERM;
}

static int
check_route_attribute(const struct nlattr *attribute, uint64_t allowed)
{
    const unsigned type =
        attribute->nla_type & 0x3fffu; /* without the flags of nesting and order */

    if (type >= 64 || !(allowed & BIT(type)))
        return EPERM;
    if (allowed == LINK_ATTRIBUTES && type == IFLA_LINKINFO)
        return for_each_attribute((const char *)(attribute + 1),
                                  attribute->nla_len - sizeof(*attribute),
                                  check_link_info,
                                  0);
    return 0;
}

/* --- messages */

static int
check_route(const struct nlmsghdr *message)
{
    const char *payload = (const char *)(message + 1);
    const gsize n_bytes = message->nlmsg_len - sizeof(*message);

    for (gsize i = 0; i < G_N_ELEMENTS(route_messages); i++) {
        const gsize n_header_bytes = route_messages[i].n_header_bytes;

        if (route_messages[i].type != message->nlmsg_type)
            continue;
        if (n_bytes < n_header_bytes)
            return EBADMSG;
        return for_each_attribute(payload + n_header_bytes,
                                  n_bytes - n_header_bytes,
                                  check_route_attribute,
                                  route_messages[i].attributes);
    }
    return EPERM;
}

static int
check_netfilter(const struct nlmsghdr *message)
{
    const struct nfgenmsg *header = (const struct nfgenmsg *)(message + 1);
    const bool is_border =
        message->nlmsg_type == NFNL_MSG_BATCH_BEGIN || message->nlmsg_type == NFNL_MSG_BATCH_END;

    if (message->nlmsg_len < sizeof(*message) + sizeof(*header))
        return EBADMSG;
    /* A batch says here whose messages follow. */
    if (is_border ? header->res_id != GUINT16_TO_BE(NFNL_SUBSYS_NFTABLES)
                  : header->nfgen_family != AF_INET && header->nfgen_family != AF_INET6)
        return EPERM;
    for (gsize i = 0; i < G_N_ELEMENTS(netfilter_messages); i++)
        if (netfilter_messages[i] == message->nlmsg_type)
            return 0;
    return EPERM;
}

int
ch_net_check(ChHandsNet net, const void *bytes, gsize n_bytes)
{
    const char *next = bytes;

    while (n_bytes > 0) {
        const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)next;
        gsize step;
        int result;

        if (n_bytes < sizeof(*message) || message->nlmsg_len < sizeof(*message) ||
            message->nlmsg_len > n_bytes)
            return EBADMSG;
        result = net == CH_HANDS_NET_ROUTE ? check_route(message) : check_netfilter(message);
        if (result != 0)
            return result;
        step = ((gsize)message->nlmsg_len + 3) & ~(gsize)3;
        step = step < n_bytes ? step : n_bytes;
        next += step;
        n_bytes -= step;
    }
    return 0;
}

int
ch_net_send(int fd, const void *bytes, gsize n_bytes)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct iovec part = {(void *)(uintptr_t)bytes, n_bytes};
    const struct msghdr header = {
        .msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;

    do
        n = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? errno : 0;
}
