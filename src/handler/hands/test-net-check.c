/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/net-check.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Messages put together by hand: what passes must not depend on the composer that is passed. */
typedef struct {
    char bytes[1024] __attribute__((aligned(8)));
    gsize n_bytes;
    struct nlmsghdr *last;
} Buffer;

static gpointer
add_message(Buffer *buffer, uint16_t type, gsize n_header_bytes)
{
    buffer->last = (struct nlmsghdr *)(gpointer)(buffer->bytes + buffer->n_bytes);
    *buffer->last = (struct nlmsghdr){
        .nlmsg_len = (uint32_t)(sizeof(struct nlmsghdr) + n_header_bytes), .nlmsg_type = type};
    buffer->n_bytes += buffer->last->nlmsg_len;
    return buffer->last + 1;
}

static void
add_attribute(Buffer *buffer, uint16_t type, const void *data, uint16_t n_bytes)
{
    struct nlattr *attribute = (struct nlattr *)(gpointer)(buffer->bytes + buffer->n_bytes);
    const uint32_t step = (sizeof(*attribute) + n_bytes + 3u) & ~3u;

    *attribute = (struct nlattr){(uint16_t)(sizeof(*attribute) + n_bytes), type};
    memcpy(attribute + 1, data, n_bytes);
    buffer->n_bytes += step;
    buffer->last->nlmsg_len += step;
}

static int
check_attribute(uint16_t message, gsize n_header_bytes, uint16_t type, const void *data, uint16_t n)
{
    Buffer buffer = {0};

    (void)add_message(&buffer, message, n_header_bytes);
    add_attribute(&buffer, type, data, n);
    return ch_net_check(CH_HANDS_NET_ROUTE, buffer.bytes, buffer.n_bytes);
}

#define LINK_BYTES    sizeof(struct ifinfomsg)
#define ADDRESS_BYTES sizeof(struct ifaddrmsg)

static void
test_links(void)
{
    static const uint16_t good[] = {
        IFLA_IFNAME, IFLA_ADDRESS, IFLA_MTU, IFLA_MASTER, IFLA_AF_SPEC, IFLA_PROTINFO};
    const uint32_t number = 1;

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_assert_cmpint(
            check_attribute(RTM_NEWLINK, LINK_BYTES, good[i], &number, sizeof(number)), ==, 0);
        g_assert_cmpint(
            check_attribute(
                RTM_SETLINK, LINK_BYTES, good[i] | NLA_F_NESTED, &number, sizeof(number)),
            ==,
            0);
        g_assert_cmpint(
            check_attribute(RTM_DELLINK, LINK_BYTES, good[i], &number, sizeof(number)), ==, EPERM);
    }
    for (uint16_t type = 0; type < 128; type++) {
        bool is_good = type == IFLA_LINKINFO;

        for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
            is_good = is_good || good[i] == type;
        if (!is_good) /* other namespaces, other devices below, XDP programs, ... */
            g_assert_cmpint(
                check_attribute(RTM_SETLINK, LINK_BYTES, type, &number, sizeof(number)), ==, EPERM);
    }
    g_assert_cmpint(/* the brain asks by itself */
                    check_attribute(
                        RTM_GETLINK, LINK_BYTES, IFLA_EXT_MASK, &number, sizeof(number)),
                    ==,
                    EPERM);
}

static int
check_kind(const char *kind, uint16_t n_bytes, uint16_t inner_type)
{
    char nest[64] = {0};
    const struct nlattr inner = {(uint16_t)(sizeof(inner) + n_bytes), inner_type};

    memcpy(nest, &inner, sizeof(inner));
    memcpy(nest + sizeof(inner), kind, n_bytes);
    return check_attribute(
        RTM_NEWLINK, LINK_BYTES, IFLA_LINKINFO, nest, (uint16_t)(sizeof(inner) + n_bytes));
}

static void
test_kinds(void)
{
    static const char *const bad[] = {
        "veth", "macvlan", "bridge2", "bridg", "dummy ", "ipvlan", "xfrm"};

    g_assert_cmpint(check_kind("bridge", 6, IFLA_INFO_KIND), ==, 0);
    g_assert_cmpint(check_kind("dummy\0", 6, IFLA_INFO_KIND), ==, 0);
    g_assert_cmpint(check_kind("", 0, IFLA_INFO_KIND), ==, EPERM);
    g_assert_cmpint(check_kind("bridge", 6, IFLA_INFO_DATA), ==, EPERM);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_cmpint(check_kind(bad[i], (uint16_t)strlen(bad[i]), IFLA_INFO_KIND), ==, EPERM);
}

static void
test_addresses(void)
{
    static const uint16_t good[] = {IFA_LOCAL, IFA_ADDRESS, IFA_BROADCAST};

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_assert_cmpint(check_attribute(RTM_NEWADDR, ADDRESS_BYTES, good[i], "abcd", 4), ==, 0);
        g_assert_cmpint(check_attribute(RTM_DELADDR, ADDRESS_BYTES, good[i], "abcd", 4), ==, 0);
    }
    g_assert_cmpint(
        check_attribute(RTM_NEWADDR, ADDRESS_BYTES, IFA_TARGET_NETNSID, "abcd", 4), ==, EPERM);
}

static int
check_type(ChHandsNet net, uint16_t type)
{
    Buffer buffer = {0};
    struct nfgenmsg *header = add_message(&buffer, type, 32);

    header->nfgen_family = AF_INET;
    if (type == NFNL_MSG_BATCH_BEGIN || type == NFNL_MSG_BATCH_END)
        header->res_id = GUINT16_TO_BE(NFNL_SUBSYS_NFTABLES);
    buffer.last->nlmsg_len = sizeof(struct nlmsghdr) + sizeof(*header); /* no attributes */
    if (net == CH_HANDS_NET_ROUTE)
        buffer.last->nlmsg_len = sizeof(struct nlmsghdr) + 16;
    return ch_net_check(net, buffer.bytes, buffer.last->nlmsg_len);
}

static void
test_types(void)
{
    guint n_route = 0;
    guint n_netfilter = 0;

    for (guint type = 0; type <= UINT16_MAX; type++) {
        n_route += check_type(CH_HANDS_NET_ROUTE, (uint16_t)type) != EPERM;
        n_netfilter += check_type(CH_HANDS_NET_NETFILTER, (uint16_t)type) == 0;
    }
    g_assert_cmpuint(n_route, ==, 5);
    g_assert_cmpuint(n_netfilter, ==, 9);
    g_assert_cmpint(check_type(CH_HANDS_NET_ROUTE, RTM_NEWROUTE), ==, EPERM);
    g_assert_cmpint(check_type(CH_HANDS_NET_ROUTE, RTM_NEWNSID), ==, EPERM);
    g_assert_cmpint(
        check_type(CH_HANDS_NET_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWFLOWTABLE),
        ==,
        EPERM);
    g_assert_cmpint(check_type(CH_HANDS_NET_NETFILTER, NFNL_SUBSYS_CTNETLINK << 8), ==, EPERM);
}

static void
test_netfilter_headers(void)
{
    Buffer buffer = {0};
    struct nfgenmsg *header = add_message(&buffer, NFNL_MSG_BATCH_BEGIN, sizeof(*header));

    header->res_id = GUINT16_TO_BE(NFNL_SUBSYS_IPSET); /* a batch of another subsystem */
    g_assert_cmpint(ch_net_check(CH_HANDS_NET_NETFILTER, buffer.bytes, buffer.n_bytes), ==, EPERM);
    buffer = (Buffer){0};
    header = add_message(&buffer, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, sizeof(*header));
    header->nfgen_family = AF_BRIDGE;
    g_assert_cmpint(ch_net_check(CH_HANDS_NET_NETFILTER, buffer.bytes, buffer.n_bytes), ==, EPERM);
}

/* The second message is looked at too, and lengths that lie are no way around. */
static void
test_lengths(void)
{
    Buffer buffer = {0};

    (void)add_message(&buffer, RTM_NEWADDR, ADDRESS_BYTES);
    (void)add_message(&buffer, RTM_NEWROUTE, sizeof(struct rtmsg));
    g_assert_cmpint(ch_net_check(CH_HANDS_NET_ROUTE, buffer.bytes, buffer.n_bytes), ==, EPERM);
    buffer = (Buffer){0};
    (void)add_message(&buffer, RTM_SETLINK, LINK_BYTES);
    for (uint32_t length = 0; length < LINK_BYTES + sizeof(struct nlmsghdr); length++) {
        buffer.last->nlmsg_len = length;
        g_assert_cmpint(
            ch_net_check(CH_HANDS_NET_ROUTE, buffer.bytes, buffer.n_bytes), ==, EBADMSG);
    }
    buffer.last->nlmsg_len = (uint32_t)buffer.n_bytes + 1;
    g_assert_cmpint(ch_net_check(CH_HANDS_NET_ROUTE, buffer.bytes, buffer.n_bytes), ==, EBADMSG);
    buffer.last->nlmsg_len = UINT32_MAX;
    g_assert_cmpint(ch_net_check(CH_HANDS_NET_ROUTE, buffer.bytes, buffer.n_bytes), ==, EBADMSG);
    g_assert_cmpint(ch_net_check(CH_HANDS_NET_ROUTE, buffer.bytes, 3), ==, EBADMSG);
}

static void
test_send(void)
{
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    Buffer buffer = {0};
    char answer[64];

    (void)add_message(&buffer, RTM_GETLINK, LINK_BYTES);
    buffer.last->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    g_assert_cmpint(ch_net_send(fd, buffer.bytes, buffer.n_bytes), ==, 0);
    g_assert_cmpint((int)recv(fd, answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC), >, 0);
    close(fd);
    g_assert_cmpint(ch_net_send(fd, buffer.bytes, buffer.n_bytes), ==, EBADF);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net-check/links", test_links);
    g_test_add_func("/net-check/kinds", test_kinds);
    g_test_add_func("/net-check/addresses", test_addresses);
    g_test_add_func("/net-check/types", test_types);
    g_test_add_func("/net-check/netfilter-headers", test_netfilter_headers);
    g_test_add_func("/net-check/lengths", test_lengths);
    g_test_add_func("/net-check/sends", test_send);
    return g_test_run();
}
