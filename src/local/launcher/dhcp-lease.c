/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/dhcp-lease.h"

#include <string.h>

#include "lib/base/errors.h"
#include "local/launcher/cloud-init.h"

#define DEFAULT_NETWORK "10.0.2.0/24"
#define MAX_PREFIX      30                /* two addresses besides the network's own */
#define MAX_LABEL       63                /* bytes between two dots of a name */
#define BRIDGE_SERVER   "169.254.75.1%zu" /* the index follows the 1 as text */

/* --- pieces ----------------------------------------------------------------------------------- */

static bool
parse_ipv4(const char *text, ChIp *out_ip)
{
    return text != NULL && ch_ip_parse(text, out_ip) && out_ip->family == AF_INET;
}

static bool
decode(const ChJson *object, const char *key, uint8_t *bytes, gsize n_bytes)
{
    const char *text = ch_json_string_at(object, key);
    gsize n_decoded = 0;
    g_autofree guchar *decoded = text != NULL ? g_base64_decode(text, &n_decoded) : NULL;

    if (n_decoded != n_bytes)
        return false;
    memcpy(bytes, decoded, n_bytes);
    return true;
}

/* {"IP": "10.244.0.5", "Mask": "////AA=="} */
static bool
parse_network(const ChJson *object, ChIp *out_ip, uint8_t *out_prefix)
{
    uint8_t mask[4];
    uint8_t prefix = 0;

    if (!parse_ipv4(ch_json_string_at(object, "IP"), out_ip) ||
        !decode(object, "Mask", mask, sizeof(mask)))
        return false;
    while (prefix < 32 && (mask[prefix / 8] & (0x80u >> (prefix % 8))) != 0)
        prefix++;
    for (guint bit = prefix; bit < 32; bit++) {
        if ((mask[bit / 8] & (0x80u >> (bit % 8))) != 0)
            return false; /* it has holes */
    }
    *out_prefix = prefix;
    return true;
}

/* --- the two bindings ------------------------------------------------------------------------- */

static bool
fill_masquerade(const ChDhcpFacts *facts,
                const ChJson *interface,
                ChDhcpLease *lease,
                GError **error)
{
    const ChJson *network =
        ch_json_find(ch_json_at(facts->vmi, "spec", "networks"), "name", facts->interface);
    const char *cidr = ch_json_string_at(network, "pod", "vmNetworkCIDR");
    const char *mac = ch_json_string_at(interface, "macAddress");
    ChIp first;

    if (cidr == NULL || *cidr == '\0')
        cidr = DEFAULT_NETWORK;
    if (!ch_ip_parse_network(cidr, &first, &lease->prefix) || first.family != AF_INET ||
        lease->prefix > MAX_PREFIX)
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no network for a guest", cidr);
    if (mac == NULL || *mac == '\0')
        mac = facts->pod_mac;
    if (mac == NULL || !ch_mac_parse(mac, lease->mac))
        return ch_fail(
            error, CH_ERROR_INVALID, "interface %s has no usable MAC address", facts->interface);
    lease->server = lease->gateway = ch_ip_plus(&first, 1);
    lease->address = ch_ip_plus(&first, 2);
    return true;
}

static bool
take_route(ChDhcpLease *lease, const ChJson *item, GError **error)
{
    const ChJson *destination = ch_json_at(item, "Dst");
    const char *gateway = ch_json_string_at(item, "Gw");
    ChDhcpRoute route = {.destination = {.family = AF_INET}};

    if (destination != NULL && !parse_network(destination, &route.destination, &route.prefix))
        return ch_fail(error, CH_ERROR_INVALID, "a route's destination is none");
    if (gateway != NULL && *gateway != '\0' && !parse_ipv4(gateway, &route.gateway))
        return ch_fail(error, CH_ERROR_INVALID, "a route's gateway is none");
    if (lease->n_routes < CH_DHCP_MAX_ROUTES)
        lease->routes[lease->n_routes++] = route;
    return true;
}

/* The router alone says it all when there is no other route. */
static void
drop_single_default_route(ChDhcpLease *lease)
{
    if (lease->n_routes == 1 && lease->routes[0].prefix == 0)
        lease->n_routes = 0;
}

static bool
fill_bridge(const ChDhcpFacts *facts, gsize index, ChDhcpLease *lease, GError **error)
{
    g_autoptr(ChJson) cache = NULL;
    g_autofree char *server = g_strdup_printf(BRIDGE_SERVER, index);
    const char *gateway;
    const ChJson *routes;

    if (facts->cache == NULL)
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "the agent left no address for interface %s",
                       facts->interface);
    cache = ch_json_parse(facts->cache, -1, error);
    if (cache == NULL)
        return false;
    if (ch_json_bool_at(cache, false, "IPAMDisabled"))
        return true;
    if (!parse_network(ch_json_at(cache, "IP"), &lease->address, &lease->prefix) ||
        !decode(cache, "MAC", lease->mac, sizeof(lease->mac)))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "what the agent left for interface %s has no address or MAC address",
                       facts->interface);
    gateway = ch_json_string_at(cache, "Gateway");
    routes = ch_json_at(cache, "Routes");
    if (gateway != NULL && *gateway != '\0' && !parse_ipv4(gateway, &lease->gateway))
        return ch_fail(error, CH_ERROR_INVALID, "the gateway '%.40s' is none", gateway);
    for (gsize i = 0; i < ch_json_length(routes); i++) {
        if (!take_route(lease, ch_json_item(routes, i), error))
            return false;
    }
    drop_single_default_route(lease);
    return parse_ipv4(server, &lease->server) ||
           ch_fail(error, CH_ERROR_INVALID, "the VM has too many interfaces");
}

/* --- names ------------------------------------------------------------------------------------ */

/* (transfer full): the words of a line, however they are parted. */
static char **
split_words(const char *line)
{
    g_auto(GStrv) parts = g_strsplit_set(line, " \t\r", -1);
    GPtrArray *words = g_ptr_array_new();

    for (gsize i = 0; parts[i] != NULL; i++) {
        if (*parts[i] != '\0')
            g_ptr_array_add(words, g_strdup(parts[i]));
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, FALSE);
}

/* "lab.example", "lab.example."; systemd-resolved writes "." where it has none. */
static bool
is_domain(const char *name)
{
    gsize n_label = 0;

    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '.' ? n_label == 0 : !g_ascii_isalnum(*c) && *c != '-' && *c != '_')
            return false;
        n_label = *c == '.' ? 0 : n_label + 1;
        if (n_label > MAX_LABEL)
            return false;
    }
    return *name != '\0';
}

/* What is no name is left out, and what does not fit too. */
static void
take_search(ChDhcpLease *lease, char *const *names)
{
    *lease->search = '\0'; /* the last such line counts */
    for (gsize i = 0; names[i] != NULL; i++) {
        const gsize length = strlen(lease->search);

        if (!is_domain(names[i]) || length + 1 + strlen(names[i]) >= sizeof(lease->search))
            continue;
        if (length > 0)
            g_strlcat(lease->search, " ", sizeof(lease->search));
        g_strlcat(lease->search, names[i], sizeof(lease->search));
    }
}

static void
take_resolv_line(ChDhcpLease *lease, const char *line)
{
    g_auto(GStrv) words = split_words(line);
    ChIp ip;

    if (words[0] == NULL || words[1] == NULL)
        return;
    if (g_str_equal(words[0], "nameserver") && parse_ipv4(words[1], &ip) &&
        lease->n_name_servers < CH_DHCP_MAX_SERVERS)
        lease->name_servers[lease->n_name_servers++] = ip;
    if (g_str_equal(words[0], "search") || g_str_equal(words[0], "domain"))
        take_search(lease, words + 1);
}

static void
fill_names(const ChDhcpFacts *facts, ChDhcpLease *lease)
{
    g_autofree char *hostname = ch_cloud_init_hostname(facts->vmi);
    g_auto(GStrv) lines =
        g_strsplit(facts->resolv_conf != NULL ? facts->resolv_conf : "", "\n", -1);

    g_strlcpy(lease->hostname, hostname, sizeof(lease->hostname));
    for (gsize i = 0; lines[i] != NULL; i++)
        take_resolv_line(lease, lines[i]);
}

bool
ch_dhcp_lease_fill(const ChDhcpFacts *facts, ChDhcpLease *out_lease, GError **error)
{
    gsize index = 0;
    const ChJson *interface =
        ch_json_find_index(ch_json_at(facts->vmi, "spec", "domain", "devices", "interfaces"),
                           "name",
                           facts->interface,
                           &index);
    ChDhcpLease lease = {.mtu = facts->mtu};

    fill_names(facts, &lease);
    if (!(ch_json_has(interface, "bridge") ? fill_bridge(facts, index, &lease, error)
                                           : fill_masquerade(facts, interface, &lease, error)))
        return false;
    *out_lease = lease;
    return true;
}
