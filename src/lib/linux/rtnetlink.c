/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/rtnetlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "lib/base/errors.h"

#define MAX_ITEMS    1024 /* links, addresses, routes: of each */
#define MAX_ATTEMPTS 10   /* to read a list without a change in between */
#define ANY          UINT16_MAX

/* --- the state */

ChNetState *
ch_net_state_new(void)
{
    ChNetState *state = g_new0(ChNetState, 1);

    state->links = g_array_new(FALSE, TRUE, sizeof(ChLink));
    state->addresses = g_array_new(FALSE, TRUE, sizeof(ChAddress));
    state->routes = g_array_new(FALSE, TRUE, sizeof(ChRoute));
    return state;
}

void
ch_net_state_free(ChNetState *state)
{
    if (state == NULL)
        return;
    g_array_unref(state->links);
    g_array_unref(state->addresses);
    g_array_unref(state->routes);
    g_free(state);
}

const ChLink *
ch_net_state_find_link(const ChNetState *state, const char *name)
{
    for (guint i = 0; i < state->links->len; i++) {
        const ChLink *link = &g_array_index(state->links, ChLink, i);

        if (g_str_equal(link->name, name))
            return link;
    }
    return NULL;
}

static bool
add(GArray *list, gconstpointer item, GError **error)
{
    if (list->len >= MAX_ITEMS)
        return ch_fail(error, CH_ERROR_LIMIT, "the pod has more than %d of a kind", MAX_ITEMS);
    g_array_append_vals(list, item, 1);
    return true;
}

/* --- links */

static const ChNetlinkRule link_policy[] = {
    /* clang-format off */
    [IFLA_IFNAME]   = {1, IFNAMSIZ},
    [IFLA_ADDRESS]  = {0, 32},
    [IFLA_MTU]      = {4, 4},
    [IFLA_MAX_MTU]  = {4, 4},
    [IFLA_MASTER]   = {4, 4},
    [IFLA_LINKINFO] = {0, ANY},
    [IFLA_AF_SPEC]  = {0, ANY},
    /* clang-format on */
};
static const ChNetlinkRule info_policy[] = {
    [IFLA_INFO_KIND] = {1, 64},
    [IFLA_INFO_DATA] = {0, ANY},
    [IFLA_INFO_SLAVE_KIND] = {1, 64},
    [IFLA_INFO_SLAVE_DATA] = {0, ANY},
};
static const ChNetlinkRule tun_policy[] = {[IFLA_TUN_TYPE] = {1, 1}, [IFLA_TUN_PERSIST] = {1, 1}};
static const ChNetlinkRule port_policy[] = {[IFLA_BRPORT_LEARNING] = {1, 1}};
static const ChNetlinkRule family_policy[] = {[AF_INET] = {0, ANY}};
static const ChNetlinkRule inet_policy[] = {
    [IFLA_INET_CONF] = {IPV4_DEVCONF_ROUTE_LOCALNET * sizeof(uint32_t), ANY}};

/* The payload may or may not end with a NUL. */
static void
copy_text(char *out, gsize size, const struct nlattr *attribute)
{
    if (attribute == NULL)
        return;
    g_strlcpy(out, "", size);
    strncat(out,
            mnl_attr_get_payload(attribute),
            MIN((gsize)mnl_attr_get_payload_len(attribute), size - 1));
}

static bool
parse_link_info(const struct nlattr *nest, ChLink *link, GError **error)
{
    const struct nlattr *info[G_N_ELEMENTS(info_policy)];
    const struct nlattr *tun[G_N_ELEMENTS(tun_policy)];
    const struct nlattr *port[G_N_ELEMENTS(port_policy)];
    char slave_kind[IFNAMSIZ] = "";

    if (!ch_netlink_parse_nested(nest, info_policy, G_N_ELEMENTS(info_policy), info, error))
        return false;
    copy_text(link->kind, sizeof(link->kind), info[IFLA_INFO_KIND]);
    copy_text(slave_kind, sizeof(slave_kind), info[IFLA_INFO_SLAVE_KIND]);
    if (g_str_equal(link->kind, "tun") && info[IFLA_INFO_DATA] != NULL) {
        if (!ch_netlink_parse_nested(
                info[IFLA_INFO_DATA], tun_policy, G_N_ELEMENTS(tun_policy), tun, error))
            return false;
        if (tun[IFLA_TUN_TYPE] != NULL && mnl_attr_get_u8(tun[IFLA_TUN_TYPE]) == IFF_TAP)
            g_strlcpy(link->kind, "tap", sizeof(link->kind));
        link->is_transient =
            tun[IFLA_TUN_PERSIST] != NULL && mnl_attr_get_u8(tun[IFLA_TUN_PERSIST]) == 0;
    }
    if (g_str_equal(slave_kind, "bridge") && info[IFLA_INFO_SLAVE_DATA] != NULL) {
        if (!ch_netlink_parse_nested(
                info[IFLA_INFO_SLAVE_DATA], port_policy, G_N_ELEMENTS(port_policy), port, error))
            return false;
        link->is_learning =
            port[IFLA_BRPORT_LEARNING] != NULL && mnl_attr_get_u8(port[IFLA_BRPORT_LEARNING]) != 0;
    }
    return true;
}

/* The array of net.ipv4.conf, whose first element has number 1. */
static bool
parse_family(const struct nlattr *nest, ChLink *link, GError **error)
{
    const struct nlattr *families[G_N_ELEMENTS(family_policy)];
    const struct nlattr *inet[G_N_ELEMENTS(inet_policy)];
    const uint32_t *values;

    if (!ch_netlink_parse_nested(nest, family_policy, G_N_ELEMENTS(family_policy), families, error))
        return false;
    if (families[AF_INET] == NULL)
        return true;
    if (!ch_netlink_parse_nested(
            families[AF_INET], inet_policy, G_N_ELEMENTS(inet_policy), inet, error))
        return false;
    if (inet[IFLA_INET_CONF] == NULL)
        return true;
    values = mnl_attr_get_payload(inet[IFLA_INET_CONF]);
    link->route_localnet = values[IPV4_DEVCONF_ROUTE_LOCALNET - 1] != 0;
    return true;
}

static bool
take_link(ChNetState *state, const struct nlmsghdr *message, GError **error)
{
    const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *found[G_N_ELEMENTS(link_policy)];
    ChLink link = {0};

    if (mnl_nlmsg_get_payload_len(message) < sizeof(*header))
        return ch_fail(error, CH_ERROR_INVALID, "netlink link is cut off");
    if (!ch_netlink_parse(header + 1,
                          mnl_nlmsg_get_payload_len(message) - sizeof(*header),
                          link_policy,
                          G_N_ELEMENTS(link_policy),
                          found,
                          error))
        return false;
    link.index = header->ifi_index;
    link.flags = header->ifi_flags;
    copy_text(link.name, sizeof(link.name), found[IFLA_IFNAME]);
    if (link.index <= 0 || link.name[0] == '\0')
        return ch_fail(error, CH_ERROR_INVALID, "netlink link has no name");
    if (found[IFLA_MTU] != NULL)
        link.mtu = mnl_attr_get_u32(found[IFLA_MTU]);
    if (found[IFLA_MAX_MTU] != NULL)
        link.max_mtu = mnl_attr_get_u32(found[IFLA_MAX_MTU]);
    if (found[IFLA_MASTER] != NULL)
        link.master = (int)mnl_attr_get_u32(found[IFLA_MASTER]);
    link.has_mac = found[IFLA_ADDRESS] != NULL &&
                   mnl_attr_get_payload_len(found[IFLA_ADDRESS]) == CH_MAC_BYTES;
    if (link.has_mac)
        memcpy(link.mac, mnl_attr_get_payload(found[IFLA_ADDRESS]), CH_MAC_BYTES);
    if (found[IFLA_LINKINFO] != NULL && !parse_link_info(found[IFLA_LINKINFO], &link, error))
        return false;
    if (found[IFLA_AF_SPEC] != NULL && !parse_family(found[IFLA_AF_SPEC], &link, error))
        return false;
    return add(state->links, &link, error);
}

/* --- addresses */

static const ChNetlinkRule address_policy[] = {
    /* clang-format off */
    [IFA_ADDRESS]   = {4, 16},
    [IFA_LOCAL]     = {4, 16},
    /* clang-format on */
};

static bool
copy_ip(ChIp *out, uint8_t family, const struct nlattr *attribute, GError **error)
{
    const ChIp ip = {.family = family};

    if (mnl_attr_get_payload_len(attribute) != ch_ip_n_bytes(&ip))
        return ch_fail(error, CH_ERROR_INVALID, "netlink address of another family's size");
    *out = ip;
    memcpy(out->bytes, mnl_attr_get_payload(attribute), ch_ip_n_bytes(&ip));
    return true;
}

static bool
take_address(ChNetState *state, const struct nlmsghdr *message, GError **error)
{
    const struct ifaddrmsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *found[G_N_ELEMENTS(address_policy)];
    const struct nlattr *local;
    ChAddress address = {0};

    if (mnl_nlmsg_get_payload_len(message) < sizeof(*header))
        return ch_fail(error, CH_ERROR_INVALID, "netlink address is cut off");
    if (header->ifa_family != AF_INET && header->ifa_family != AF_INET6)
        return true;
    if (!ch_netlink_parse(header + 1,
                          mnl_nlmsg_get_payload_len(message) - sizeof(*header),
                          address_policy,
                          G_N_ELEMENTS(address_policy),
                          found,
                          error))
        return false;
    address.index = (int)header->ifa_index;
    address.prefix = header->ifa_prefixlen;
    local = found[IFA_LOCAL] != NULL ? found[IFA_LOCAL] : found[IFA_ADDRESS];
    if (local == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "netlink address has no address");
    if (!copy_ip(&address.ip, header->ifa_family, local, error))
        return false;
    if (address.prefix > ch_ip_n_bytes(&address.ip) * 8)
        return ch_fail(error, CH_ERROR_INVALID, "netlink address has prefix %u", address.prefix);
    return add(state->addresses, &address, error);
}

/* --- routes */

static const ChNetlinkRule route_policy[] = {
    /* clang-format off */
    [RTA_DST]       = {4, 4},
    [RTA_OIF]       = {4, 4},
    [RTA_GATEWAY]   = {4, 4},
    [RTA_TABLE]     = {4, 4},
    [RTA_MULTIPATH] = {0, ANY},
    [RTA_VIA]       = {0, ANY},
    /* clang-format on */
};

static bool
take_route(ChNetState *state, const struct nlmsghdr *message, GError **error)
{
    const struct rtmsg *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *found[G_N_ELEMENTS(route_policy)];
    ChRoute route = {.destination = {.family = AF_INET}};
    uint32_t table;

    if (mnl_nlmsg_get_payload_len(message) < sizeof(*header))
        return ch_fail(error, CH_ERROR_INVALID, "netlink route is cut off");
    if (header->rtm_family != AF_INET || header->rtm_flags & RTM_F_CLONED)
        return true;
    if (!ch_netlink_parse(header + 1,
                          mnl_nlmsg_get_payload_len(message) - sizeof(*header),
                          route_policy,
                          G_N_ELEMENTS(route_policy),
                          found,
                          error))
        return false;
    table = found[RTA_TABLE] != NULL ? mnl_attr_get_u32(found[RTA_TABLE]) : header->rtm_table;
    if (table != RT_TABLE_MAIN || found[RTA_OIF] == NULL || found[RTA_MULTIPATH] != NULL ||
        found[RTA_VIA] != NULL)
        return true;
    route.index = (int)mnl_attr_get_u32(found[RTA_OIF]);
    route.prefix = header->rtm_dst_len;
    if (route.prefix > 32)
        return ch_fail(error, CH_ERROR_INVALID, "netlink route has prefix %u", route.prefix);
    if (found[RTA_DST] != NULL && !copy_ip(&route.destination, AF_INET, found[RTA_DST], error))
        return false;
    if (found[RTA_GATEWAY] != NULL && !copy_ip(&route.gateway, AF_INET, found[RTA_GATEWAY], error))
        return false;
    return add(state->routes, &route, error);
}

bool
ch_rtnl_take(gpointer state, const struct nlmsghdr *message, GError **error)
{
    switch (message->nlmsg_type) {
    case RTM_NEWLINK:
        return take_link(state, message, error);
    case RTM_NEWADDR:
        return take_address(state, message, error);
    case RTM_NEWROUTE:
        return take_route(state, message, error);
    default:
        return true;
    }
}

/* --- composing */

/* Returns: the header of the family, zeroed */
static gpointer
start(ChNetlinkMessage *message, uint16_t type, uint16_t flags, gsize header_bytes)
{
    memset(message, 0, sizeof(*message));
    (void)mnl_nlmsg_put_header(message);
    message->header.nlmsg_type = type;
    message->header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    return mnl_nlmsg_put_extra_header(&message->header, header_bytes);
}

static void
compose_dump_of_links(ChNetlinkMessage *message)
{
    (void)start(message, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
    mnl_attr_put_u32(&message->header, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
}

static void
compose_dump_of_addresses(ChNetlinkMessage *message)
{
    (void)start(message, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));
}

static void
compose_dump_of_routes(ChNetlinkMessage *message)
{
    struct rtmsg *header = start(message, RTM_GETROUTE, NLM_F_DUMP, sizeof(*header));

    header->rtm_family = AF_INET;
}

static ChNetState *
read_once(ChNetlink *netlink, bool with_routes, GError **error)
{
    /* The routes come last: they may be left out. */
    static void (*const composers[])(ChNetlinkMessage * message) = {
        compose_dump_of_links, compose_dump_of_addresses, compose_dump_of_routes};
    const gsize n = with_routes ? G_N_ELEMENTS(composers) : G_N_ELEMENTS(composers) - 1;
    g_autoptr(ChNetState) state = ch_net_state_new();

    for (gsize i = 0; i < n; i++) {
        ChNetlinkMessage request;

        composers[i](&request);
        if (!ch_netlink_dump(netlink, &request, ch_rtnl_take, state, error))
            return NULL;
    }
    return g_steal_pointer(&state);
}

ChNetState *
ch_rtnl_read(ChNetlink *netlink, bool with_routes, GError **error)
{
    for (int attempt = 1;; attempt++) {
        g_autoptr(GError) reason = NULL;
        ChNetState *state = read_once(netlink, with_routes, &reason);

        if (state != NULL)
            return state;
        if (!g_error_matches(reason, CH_ERRNO, EINTR) || attempt == MAX_ATTEMPTS) {
            g_propagate_prefixed_error(
                error, g_steal_pointer(&reason), "read the pod's links, addresses and routes: ");
            return NULL;
        }
    }
}

static void
put_kind(struct nlmsghdr *message, const char *kind)
{
    struct nlattr *nest = mnl_attr_nest_start(message, IFLA_LINKINFO);

    mnl_attr_put_str(message, IFLA_INFO_KIND, kind);
    mnl_attr_nest_end(message, nest);
}

static void
put_route_localnet(struct nlmsghdr *message)
{
    struct nlattr *spec = mnl_attr_nest_start(message, IFLA_AF_SPEC);
    struct nlattr *inet = mnl_attr_nest_start(message, AF_INET);
    struct nlattr *conf = mnl_attr_nest_start(message, IFLA_INET_CONF);

    mnl_attr_put_u32(message, IPV4_DEVCONF_ROUTE_LOCALNET, 1);
    mnl_attr_nest_end(message, conf);
    mnl_attr_nest_end(message, inet);
    mnl_attr_nest_end(message, spec);
}

void
ch_rtnl_compose_link(ChNetlinkMessage *message, const ChLinkChange *change)
{
    const bool is_new = change->index == 0;
    struct ifinfomsg *header = start(message,
                                     is_new ? RTM_NEWLINK : RTM_SETLINK,
                                     is_new ? NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL : NLM_F_ACK,
                                     sizeof(*header));
    struct nlmsghdr *to = &message->header;

    header->ifi_index = change->index;
    if (change->sets_up || change->sets_down)
        header->ifi_change = IFF_UP;
    if (change->sets_up)
        header->ifi_flags = IFF_UP;
    if (change->name != NULL)
        mnl_attr_put_strz(to, IFLA_IFNAME, change->name);
    if (change->mac != NULL)
        mnl_attr_put(to, IFLA_ADDRESS, CH_MAC_BYTES, change->mac);
    if (change->mtu != 0)
        mnl_attr_put_u32(to, IFLA_MTU, change->mtu);
    if (change->master != 0)
        mnl_attr_put_u32(to, IFLA_MASTER, (uint32_t)change->master);
    if (is_new)
        put_kind(to, change->kind);
    if (change->sets_route_localnet)
        put_route_localnet(to);
}

void
ch_rtnl_compose_learning_off(ChNetlinkMessage *message, int index)
{
    struct ifinfomsg *header = start(message, RTM_SETLINK, NLM_F_ACK, sizeof(*header));
    struct nlattr *nest;

    header->ifi_family = AF_BRIDGE;
    header->ifi_index = index;
    nest = mnl_attr_nest_start(&message->header, IFLA_PROTINFO);
    mnl_attr_put_u8(&message->header, IFLA_BRPORT_LEARNING, 0);
    mnl_attr_nest_end(&message->header, nest);
}

void
ch_rtnl_compose_delete_link(ChNetlinkMessage *message, int index)
{
    struct ifinfomsg *header = start(message, RTM_DELLINK, NLM_F_ACK, sizeof(*header));

    header->ifi_index = index;
}

static void
start_address(ChNetlinkMessage *message, uint16_t type, uint16_t flags, const ChAddress *address)
{
    struct ifaddrmsg *header = start(message, type, flags, sizeof(*header));

    header->ifa_family = address->ip.family;
    header->ifa_prefixlen = address->prefix;
    header->ifa_index = (uint32_t)address->index;
    mnl_attr_put(&message->header, IFA_LOCAL, ch_ip_n_bytes(&address->ip), address->ip.bytes);
}

void
ch_rtnl_compose_add_address(ChNetlinkMessage *message, const ChAddress *address)
{
    uint8_t broadcast[4];

    start_address(message, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, address);
    mnl_attr_put(&message->header, IFA_ADDRESS, ch_ip_n_bytes(&address->ip), address->ip.bytes);
    if (address->ip.family != AF_INET || address->prefix >= 31)
        return;
    for (unsigned i = 0; i < sizeof(broadcast); i++) {
        const unsigned kept = address->prefix > i * 8 ? MIN(address->prefix - i * 8, 8u) : 0;

        broadcast[i] = (uint8_t)(address->ip.bytes[i] | 0xffu >> kept);
    }
    mnl_attr_put(&message->header, IFA_BROADCAST, sizeof(broadcast), broadcast);
}

void
ch_rtnl_compose_delete_address(ChNetlinkMessage *message, const ChAddress *address)
{
    start_address(message, RTM_DELADDR, NLM_F_ACK, address);
}
