/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-dhcp.h"

#include <string.h>

#include "handler/pod/network-plan.h"
#include "lib/base/errors.h"

/* What Go prints for a member that has its type's zero value. */
typedef enum { ZERO_NUMBER, ZERO_FALSE, ZERO_TEXT, ZERO_NULL } Zero;

typedef struct {
    const char *name;
    Zero zero;
} Member;

static const Member address_members[] = {
    {"Label", ZERO_TEXT},
    {"Flags", ZERO_NUMBER},
    {"Scope", ZERO_NUMBER},
    {"Peer", ZERO_NULL},
    {"Broadcast", ZERO_TEXT},
    {"PreferedLft", ZERO_NUMBER},
    {"ValidLft", ZERO_NUMBER},
    {"LinkIndex", ZERO_NUMBER},
};

static const Member route_members[] = {
    {"LinkIndex", ZERO_NUMBER},
    {"ILinkIndex", ZERO_NUMBER},
    {"Scope", ZERO_NUMBER},
    {"Dst", ZERO_NULL},
    {"Src", ZERO_TEXT},
    {"Gw", ZERO_TEXT},
    {"MultiPath", ZERO_NULL},
    {"Protocol", ZERO_NUMBER},
    {"Priority", ZERO_NUMBER},
    {"Family", ZERO_NUMBER},
    {"Table", ZERO_NUMBER},
    {"Type", ZERO_NUMBER},
    {"Tos", ZERO_NUMBER},
    {"Flags", ZERO_NUMBER},
    {"MPLSDst", ZERO_NULL},
    {"NewDst", ZERO_NULL},
    {"Encap", ZERO_NULL},
    {"Via", ZERO_NULL},
    {"Realm", ZERO_NUMBER},
    {"MTU", ZERO_NUMBER},
    {"MTULock", ZERO_FALSE},
    {"Window", ZERO_NUMBER},
    {"Rtt", ZERO_NUMBER},
    {"RttVar", ZERO_NUMBER},
    {"Ssthresh", ZERO_NUMBER},
    {"Cwnd", ZERO_NUMBER},
    {"AdvMSS", ZERO_NUMBER},
    {"Reordering", ZERO_NUMBER},
    {"Hoplimit", ZERO_NUMBER},
    {"InitCwnd", ZERO_NUMBER},
    {"Features", ZERO_NUMBER},
    {"RtoMin", ZERO_NUMBER},
    {"RtoMinLock", ZERO_FALSE},
    {"InitRwnd", ZERO_NUMBER},
    {"QuickACK", ZERO_NUMBER},
    {"Congctl", ZERO_TEXT},
    {"FastOpenNoCookie", ZERO_NUMBER},
};

static void
set_zeros(ChJson *object, const Member members[], gsize n)
{
    for (gsize i = 0; i < n; i++)
        switch (members[i].zero) {
        case ZERO_NUMBER:
            ch_json_set_int(object, members[i].name, 0);
            break;
        case ZERO_FALSE:
            ch_json_set_bool(object, members[i].name, false);
            break;
        case ZERO_TEXT:
            ch_json_set_string(object, members[i].name, "");
            break;
        case ZERO_NULL:
            ch_json_set(object, members[i].name, NULL);
            break;
        }
}

static void
set_base64(ChJson *object, const char *name, const uint8_t *bytes, gsize n_bytes)
{
    g_autofree char *text = g_base64_encode(bytes, n_bytes);

    ch_json_set_string(object, name, text);
}

static void
set_network(ChJson *object, const ChIp *ip, uint8_t prefix)
{
    const guint32 mask = GUINT32_TO_BE(prefix == 0 ? 0 : UINT32_MAX << (32 - prefix));
    char text[CH_IP_TEXT_SIZE];

    ch_json_set_string(object, "IP", ch_ip_print(ip, text));
    set_base64(object, "Mask", (const uint8_t *)&mask, sizeof(mask));
}

/* @address: (nullable) */
static ChJson *
print_address(const ChAddress *address)
{
    ChJson *object = ch_json_new_object();

    if (address != NULL)
        set_network(object, &address->ip, address->prefix);
    set_zeros(object, address_members, G_N_ELEMENTS(address_members));
    return object;
}

static ChJson *
print_route(const ChRoute *route)
{
    ChJson *object = ch_json_new_object();
    char text[CH_IP_TEXT_SIZE];

    set_zeros(object, route_members, G_N_ELEMENTS(route_members));
    if (route->prefix != 0) {
        ChJson *destination = ch_json_new_object();

        set_network(destination, &route->destination, route->prefix);
        ch_json_set(object, "Dst", destination);
    }
    ch_json_set_string(object, "Gw", ch_ip_print(&route->gateway, text));
    return object;
}

static bool
set_mac(ChJson *config, const ChNetworkIface *iface, const ChLink *link, GError **error)
{
    uint8_t mac[CH_MAC_BYTES];

    if (iface->mac != NULL ? !ch_mac_parse(iface->mac, mac) : !link->has_mac)
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "address %s: invalid MAC address",
                       iface->mac != NULL ? iface->mac : "");
    set_base64(config, "MAC", iface->mac != NULL ? mac : link->mac, CH_MAC_BYTES);
    return true;
}

/* Routes and gateway: all of the link's but the one to its own network. */
static bool
set_routes(ChJson *config,
           const ChNetState *seen,
           const ChLink *link,
           const ChAddress *address,
           GError **error)
{
    g_autoptr(ChJson) list = ch_json_new_array();
    const ChRoute *first = NULL;
    char text[CH_IP_TEXT_SIZE];

    for (guint i = 0; i < seen->routes->len; i++) {
        const ChRoute *route = &g_array_index(seen->routes, ChRoute, i);

        if (route->index != link->index)
            continue;
        if (first == NULL)
            first = route;
        if (route->prefix == 0 || route->prefix != address->prefix ||
            !ch_ip_is_network_of(&route->destination, &address->ip, address->prefix))
            ch_json_append(list, print_route(route));
    }
    if (first == NULL)
        return ch_fail(
            error, CH_ERROR_FAILED, "no gateway address found in routes for %s", link->name);
    ch_json_set_string(config, "Gateway", ch_ip_print(&first->gateway, text));
    if (ch_json_length(list) > 0)
        ch_json_set(config, "Routes", g_steal_pointer(&list));
    return true;
}

char *
ch_network_dhcp_print(const ChNetworkIface *iface, const ChNetState *seen, GError **error)
{
    const ChLink *link = ch_net_state_find_link(seen, iface->names.pod_link);
    const ChAddress *address = link != NULL ? ch_network_first_address(seen, link, AF_INET) : NULL;
    g_autoptr(ChJson) config = ch_json_new_object();

    if (link == NULL) {
        ch_network_fail_missing(iface, error);
        return NULL;
    }
    ch_json_set_string(config, "Name", "");
    ch_json_set(config, "IP", print_address(address));
    ch_json_set(config, "IPv6", print_address(NULL));
    ch_json_set(config, "MAC", NULL);
    ch_json_set_string(config, "AdvertisingIPAddr", "");
    ch_json_set_string(config, "AdvertisingIPv6Addr", "");
    ch_json_set(config, "Routes", NULL);
    ch_json_set_int(config, "Mtu", 0);
    ch_json_set_bool(config, "IPAMDisabled", address == NULL);
    ch_json_set_string(config, "Gateway", "");
    ch_json_set_string(config, "Subdomain", "");
    if (address != NULL &&
        (!set_mac(config, iface, link, error) || !set_routes(config, seen, link, address, error)))
        return NULL;
    return ch_json_print_pretty(config);
}
