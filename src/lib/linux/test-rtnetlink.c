/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/rtnetlink.h"

#include <libmnl/libmnl.h>
#include <linux/if_bridge.h>
#include <linux/if_tun.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "lib/base/errors.h"

static const uint8_t mac[CH_MAC_BYTES] = {2, 0, 0, 0, 0, 7};

/* (transfer full): the message as hex, its sequence and port left out */
static char *
hex(const ChNetlinkMessage *message)
{
    GString *text = g_string_new(NULL);

    for (uint32_t i = 0; i < message->header.nlmsg_len; i++)
        if (i < 8 || i >= 16)
            g_string_append_printf(text, "%02x", (guint8)message->bytes[i]);
    return g_string_free(text, FALSE);
}

#define assert_hex(message, expected)                                                              \
    G_STMT_START                                                                                   \
    {                                                                                              \
        g_autofree char *got_hex = hex(message);                                                   \
        g_assert_cmpstr(got_hex, ==, expected);                                                    \
    }                                                                                              \
    G_STMT_END

#if G_BYTE_ORDER == G_LITTLE_ENDIAN
static void
test_bytes(void)
{
    ChAddress address = {.index = 3, .prefix = 24};
    ChNetlinkMessage message;

    ch_rtnl_compose_link(&message,
                         &(ChLinkChange){.kind = "bridge", .name = "br", .mac = mac, .mtu = 1450});
    /* RTM_NEWLINK 0x10, REQUEST|ACK|EXCL|CREATE 0x605; IFNAME 3, ADDRESS 1, MTU 4, LINKINFO 0x12 */
    assert_hex(&message,
               "4c00000010000506"
               "00000000000000000000000000000000"
               "0700030062720000"
               "0a000100020000000007"
               "0000"
               "08000400aa050000"
               "10001280"
               "0a00010062726964"
               "67650000");
    ch_rtnl_compose_link(&message, &(ChLinkChange){.index = 3, .master = 5, .sets_up = true});
    assert_hex(&message,
               "2800000013000500"
               "00000000030000000100000001000000"
               "08000a0005000000");
    ch_rtnl_compose_link(&message, &(ChLinkChange){.index = 3, .sets_down = true});
    assert_hex(&message,
               "2000000013000500"
               "00000000030000000000000001000000");
    ch_rtnl_compose_link(&message, &(ChLinkChange){.index = 3, .sets_route_localnet = true});
    assert_hex(&message,
               "3400000013000500"
               "00000000030000000000000000000000"
               "14001a80"
               "10000280"
               "0c000180"
               "08001a0001000000");
    ch_rtnl_compose_learning_off(&message, 4);
    assert_hex(&message,
               "2c00000013000500"
               "07000000040000000000000000000000"
               "0c000c80"
               "0500080000000000");
    ch_rtnl_compose_delete_link(&message, 4);
    assert_hex(&message,
               "2000000011000500"
               "00000000040000000000000000000000");
    g_assert_true(ch_ip_parse("10.0.2.1", &address.ip));
    ch_rtnl_compose_add_address(&message, &address);
    assert_hex(&message,
               "3000000014000506"
               "0218000003000000"
               "080002000a000201"
               "080001000a000201"
               "080004000a0002ff");
    ch_rtnl_compose_delete_address(&message, &address);
    assert_hex(&message,
               "2000000015000500"
               "0218000003000000"
               "080002000a000201");
    address.prefix = 31;
    ch_rtnl_compose_add_address(&message, &address);
    g_assert_cmpuint(message.header.nlmsg_len, ==, 0x28); /* no broadcast address */
}
#endif

/* --- reading */

static gpointer
begin(ChNetlinkMessage *message, uint16_t type, gsize header_bytes)
{
    memset(message, 0, sizeof(*message));
    (void)mnl_nlmsg_put_header(message);
    message->header.nlmsg_type = type;
    return mnl_nlmsg_put_extra_header(&message->header, header_bytes);
}

static void
make_link(ChNetlinkMessage *message, int index, const char *name)
{
    struct ifinfomsg *header = begin(message, RTM_NEWLINK, sizeof(*header));

    header->ifi_index = index;
    header->ifi_flags = IFF_UP;
    mnl_attr_put_strz(&message->header, IFLA_IFNAME, name);
}

static void
make_tap(ChNetlinkMessage *message)
{
    struct nlattr *info, *nest;

    make_link(message, 4, "tap0");
    mnl_attr_put(&message->header, IFLA_ADDRESS, sizeof(mac), mac);
    mnl_attr_put_u32(&message->header, IFLA_MTU, 1450);
    mnl_attr_put_u32(&message->header, IFLA_MAX_MTU, 65521);
    mnl_attr_put_u32(&message->header, IFLA_MASTER, 3);
    info = mnl_attr_nest_start(&message->header, IFLA_LINKINFO);
    mnl_attr_put_strz(&message->header, IFLA_INFO_KIND, "tun");
    nest = mnl_attr_nest_start(&message->header, IFLA_INFO_DATA);
    mnl_attr_put_u8(&message->header, IFLA_TUN_TYPE, IFF_TAP);
    mnl_attr_nest_end(&message->header, nest);
    mnl_attr_put_str(&message->header, IFLA_INFO_SLAVE_KIND, "bridge");
    nest = mnl_attr_nest_start(&message->header, IFLA_INFO_SLAVE_DATA);
    mnl_attr_put_u8(&message->header, IFLA_BRPORT_LEARNING, 1);
    mnl_attr_nest_end(&message->header, nest);
    mnl_attr_nest_end(&message->header, info);
}

/* spec:04-23.5#6 */
static void
test_link(void)
{
    g_autoptr(ChNetState) state = ch_net_state_new();
    ChNetlinkMessage message;
    const ChLink *tap;

    make_tap(&message);
    g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    tap = ch_net_state_find_link(state, "tap0");
    g_assert_nonnull(tap);
    g_assert_cmpint(tap->index, ==, 4);
    g_assert_cmpstr(tap->kind, ==, "tap");
    g_assert_true(tap->flags & IFF_UP);
    g_assert_cmpuint(tap->mtu, ==, 1450);
    g_assert_cmpuint(tap->max_mtu, ==, 65521);
    g_assert_cmpint(tap->master, ==, 3);
    g_assert_true(tap->has_mac && tap->is_learning);
    g_assert_false(tap->route_localnet);
    g_assert_null(ch_net_state_find_link(state, "tap"));
}

/* spec:04-23.5#6 */
static void
test_route_localnet(void)
{
    uint32_t values[IPV4_DEVCONF_ROUTE_LOCALNET + 3] = {0};
    g_autoptr(ChNetState) state = ch_net_state_new();
    struct nlattr *spec, *inet;
    ChNetlinkMessage message;

    values[IPV4_DEVCONF_ROUTE_LOCALNET - 1] = 1;
    make_link(&message, 3, "k6t-eth0");
    spec = mnl_attr_nest_start(&message.header, IFLA_AF_SPEC);
    inet = mnl_attr_nest_start(&message.header, AF_INET);
    mnl_attr_put(&message.header, IFLA_INET_CONF, sizeof(values), values);
    mnl_attr_nest_end(&message.header, inet);
    mnl_attr_nest_end(&message.header, spec);
    g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    g_assert_true(g_array_index(state->links, ChLink, 0).route_localnet);
}

static void
make_route(ChNetlinkMessage *message, uint8_t table, uint8_t prefix)
{
    struct rtmsg *header = begin(message, RTM_NEWROUTE, sizeof(*header));

    header->rtm_family = AF_INET;
    header->rtm_table = table;
    header->rtm_dst_len = prefix;
}

/* spec:04-23.5#6 spec:04-23.9#1: routes that lead nowhere, to several links, over IPv6 or stand in
 * other tables are no news. */
static void
test_routes(void)
{
    g_autoptr(ChNetState) state = ch_net_state_new();
    ChNetlinkMessage message;

    make_route(&message, RT_TABLE_MAIN, 0); /* blackhole default */
    g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    make_route(&message, RT_TABLE_LOCAL, 0);
    mnl_attr_put_u32(&message.header, RTA_OIF, 2);
    g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    make_route(&message, RT_TABLE_MAIN, 0);
    mnl_attr_put_u32(&message.header, RTA_OIF, 2);
    mnl_attr_put(&message.header, RTA_VIA, 2, "\x0a\x00");
    g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    g_assert_cmpuint(state->routes->len, ==, 0);

    make_route(&message, RT_TABLE_MAIN, 16);
    mnl_attr_put_u32(&message.header, RTA_OIF, 2);
    mnl_attr_put(&message.header, RTA_DST, 4, "\x0a\x01\x00\x00");
    mnl_attr_put(&message.header, RTA_GATEWAY, 4, "\x0a\x00\x00\x01");
    g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    g_assert_cmpuint(state->routes->len, ==, 1);
    g_assert_cmpuint(g_array_index(state->routes, ChRoute, 0).gateway.bytes[3], ==, 1);
    make_route(&message, RT_TABLE_MAIN, 33);
    mnl_attr_put_u32(&message.header, RTA_OIF, 2);
    g_assert_false(ch_rtnl_take(state, &message.header, NULL));
}

/* spec:04-23.5#1 spec:04-23.5#6 */
static void
test_addresses(void)
{
    g_autoptr(ChNetState) state = ch_net_state_new();
    ChNetlinkMessage message;
    struct ifaddrmsg *header = begin(&message, RTM_NEWADDR, sizeof(*header));

    header->ifa_family = AF_INET;
    header->ifa_prefixlen = 32;
    header->ifa_index = 2;
    mnl_attr_put(&message.header, IFA_ADDRESS, 4, "\x0a\x00\x00\x02"); /* the peer */
    mnl_attr_put(&message.header, IFA_LOCAL, 4, "\x0a\x00\x00\x01");
    g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    g_assert_cmpuint(g_array_index(state->addresses, ChAddress, 0).ip.bytes[3], ==, 1);
    header->ifa_family = AF_INET6; /* of another size */
    g_assert_false(ch_rtnl_take(state, &message.header, NULL));
    header->ifa_family = AF_UNIX;
    g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    g_assert_cmpuint(state->addresses->len, ==, 1);
}

/* Each message cut anywhere, and each byte of it changed: no crash, and never a half link. */
static void
test_hostile(void)
{
    ChNetlinkMessage good;

    make_tap(&good);
    for (uint32_t i = sizeof(struct nlmsghdr); i < good.header.nlmsg_len; i++) {
        g_autoptr(ChNetState) state = ch_net_state_new();
        ChNetlinkMessage bad = good;

        bad.header.nlmsg_len = i;
        if (ch_rtnl_take(state, &bad.header, NULL))
            g_assert_cmpint(g_array_index(state->links, ChLink, 0).index, ==, 4);
        for (int value = 0; value < 256; value += 5) {
            bad = good;
            bad.bytes[i] = (char)value;
            (void)ch_rtnl_take(state, &bad.header, NULL);
        }
    }
}

static void
test_limit(void)
{
    g_autoptr(ChNetState) state = ch_net_state_new();
    g_autoptr(GError) error = NULL;
    ChNetlinkMessage message;

    make_link(&message, 7, "many");
    for (int i = 0; i < 1024; i++)
        g_assert_true(ch_rtnl_take(state, &message.header, NULL));
    g_assert_false(ch_rtnl_take(state, &message.header, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
    g_test_add_func("/rtnetlink/messages-byte-by-byte", test_bytes);
#endif
    g_test_add_func("/rtnetlink/reads-links", test_link);
    g_test_add_func("/rtnetlink/reads-route-localnet", test_route_localnet);
    g_test_add_func("/rtnetlink/reads-routes", test_routes);
    g_test_add_func("/rtnetlink/reads-addresses", test_addresses);
    g_test_add_func("/rtnetlink/survives-hostile-messages", test_hostile);
    g_test_add_func("/rtnetlink/lists-have-an-end", test_limit);
    return g_test_run();
}
