/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/subnet-choice.h"

#include <string.h>

#include "lib/base/errors.h"

#define N_CHOICES     16
#define GUEST_NETWORK "10.0.2.0/24" /* that masquerade guests see: in pods, so not of pods */

typedef struct {
    ChIp ip;
    uint8_t prefix;
} Subnet;

static const char *const turns_on_keys[CH_FORWARDING_N] = {
    [CH_FORWARDING_IPV4] = "turnsOnIPv4",
    [CH_FORWARDING_IPV6] = "turnsOnIPv6",
};

void
ch_node_network_clear(ChNodeNetwork *network)
{
    g_clear_pointer(&network->bridge, g_free);
    g_clear_pointer(&network->reason, g_free);
    g_clear_pointer(&network->subnets, g_strfreev);
    g_clear_pointer(&network->boot, g_free);
}

/* --- as it is stored -------------------------------------------------------------------------- */

char *
ch_node_network_print(const ChNodeNetwork *network)
{
    g_autoptr(ChJson) json = ch_json_new_object();
    ChJson *subnets = ch_json_new_array();
    char mac[CH_MAC_TEXT_SIZE];

    for (gsize i = 0; network->subnets != NULL && network->subnets[i] != NULL; i++)
        ch_json_append(subnets, ch_json_new_string(network->subnets[i]));
    ch_json_set_string(json, "bridge", network->bridge);
    ch_json_set_string(json, "reason", network->reason);
    ch_json_set(json, "subnets", subnets);
    ch_json_set_int(json, "mtu", network->mtu);
    if (network->has_mac)
        ch_json_set_string(json, "mac", ch_mac_print(network->mac, mac));
    ch_json_set_string(json, "boot", network->boot);
    for (guint i = 0; i < CH_FORWARDING_N; i++) {
        if (network->turns_on[i])
            ch_json_set_bool(json, turns_on_keys[i], true);
    }
    return ch_json_print_pretty(json);
}

bool
ch_node_network_parse(const char *text, ChNodeNetwork *out_network, GError **error)
{
    g_autoptr(ChJson) json = ch_json_parse(text, -1, error);
    const ChJson *subnets = ch_json_at(json, "subnets");
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    const char *bridge = ch_json_string_at(json, "bridge");
    const char *mac = ch_json_string_at(json, "mac");
    ChNodeNetwork network = {.has_mac = mac != NULL};
    int64_t mtu = 0;

    if (json == NULL)
        return false;
    (void)ch_json_int_at(json, &mtu, "mtu");
    for (gsize i = 0; i < ch_json_length(subnets); i++) {
        const char *subnet = ch_json_as_string(ch_json_item(subnets, i));

        if (subnet != NULL)
            g_ptr_array_add(list, g_strdup(subnet));
    }
    if (mtu < 0 || mtu > G_MAXUINT16 || (mac != NULL && !ch_mac_parse(mac, network.mac)) ||
        (bridge != NULL && (list->len == 0 || *bridge == '\0' || strlen(bridge) >= IFNAMSIZ)))
        return ch_fail(error, CH_ERROR_INVALID, "the stored network is not whole");
    g_ptr_array_add(list, NULL);
    network.bridge = g_strdup(bridge);
    network.reason = g_strdup(ch_json_string_at(json, "reason"));
    network.subnets = (char **)g_ptr_array_free(g_steal_pointer(&list), FALSE);
    network.mtu = (guint)mtu;
    network.boot = g_strdup(ch_json_string_at(json, "boot"));
    for (guint i = 0; i < CH_FORWARDING_N; i++)
        network.turns_on[i] = ch_json_bool_at(json, false, turns_on_keys[i]);
    *out_network = network;
    return true;
}

/* --- what is in the way ----------------------------------------------------------------------- */

static bool
overlap(const Subnet *a, const Subnet *b)
{
    const guint n_bits = MIN(a->prefix, b->prefix);

    if (a->ip.family != b->ip.family)
        return false;
    for (guint bit = 0; bit < n_bits; bit++) {
        const guint mask = 0x80u >> (bit % 8);

        if (((a->ip.bytes[bit / 8] ^ b->ip.bytes[bit / 8]) & mask) != 0)
            return false;
    }
    return true;
}

static const char *
link_name(const ChNetState *machine, int index)
{
    for (guint i = 0; i < machine->links->len; i++) {
        const ChLink *link = &g_array_index(machine->links, ChLink, i);

        if (link->index == index)
            return link->name;
    }
    return "";
}

/* The link whose network overlaps @subnet, but for @own; NULL: none. A default route overlaps
 * everything, and does not count. */
static const char *
find_overlap(const ChNetState *machine, const Subnet *subnet, const char *own)
{
    for (guint i = 0; i < machine->addresses->len; i++) {
        const ChAddress *address = &g_array_index(machine->addresses, ChAddress, i);
        const Subnet other = {address->ip, address->prefix};
        const char *name = link_name(machine, address->index);

        if (overlap(subnet, &other) && g_strcmp0(name, own) != 0)
            return name;
    }
    for (guint i = 0; i < machine->routes->len; i++) {
        const ChRoute *route = &g_array_index(machine->routes, ChRoute, i);
        const Subnet other = {route->destination, route->prefix};
        const char *name = link_name(machine, route->index);

        if (route->prefix > 0 && overlap(subnet, &other) && g_strcmp0(name, own) != 0)
            return name;
    }
    return NULL;
}

static bool
parse_subnet(const char *text, Subnet *out_subnet, GError **error)
{
    Subnet guests;

    if (!ch_ip_parse_network(text, &out_subnet->ip, &out_subnet->prefix))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no subnet such as 10.213.0.0/20", text);
    if (out_subnet->prefix < 8 || out_subnet->prefix > 8 * ch_ip_n_bytes(&out_subnet->ip) - 3)
        return ch_fail(
            error, CH_ERROR_INVALID, "'%s' is too large or too small for a pod network", text);
    if (!ch_ip_is_global_unicast(&out_subnet->ip))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "'%s' has no addresses for pods (loopback, link-local, multicast and "
                       "0.0.0.0/8 have other uses)",
                       text);
    (void)ch_ip_parse_network(GUEST_NETWORK, &guests.ip, &guests.prefix);
    if (overlap(out_subnet, &guests))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "'%s' overlaps " GUEST_NETWORK ", the network that guests see inside",
                       text);
    return true;
}

static bool
is_free(const ChNetState *machine, char **subnets, const char *own, GError **error)
{
    for (gsize i = 0; subnets[i] != NULL; i++) {
        Subnet subnet;
        const char *other;

        if (!parse_subnet(subnets[i], &subnet, error))
            return false;
        other = find_overlap(machine, &subnet, own);
        if (other != NULL)
            return ch_fail(
                error,
                CH_ERROR_EXISTS,
                "the pod network %s overlaps one of this machine's own (link %s): choose "
                "another with 'chandler up --pod-network CIDR'",
                subnets[i],
                other);
    }
    return true;
}

/* --- the choice ------------------------------------------------------------------------------- */

/* Of the link that leads out: packets that fit into the bridge shall fit there too. */
static guint
outer_mtu(const ChNetState *machine)
{
    for (guint i = 0; i < machine->routes->len; i++) {
        const ChRoute *route = &g_array_index(machine->routes, ChRoute, i);

        for (guint k = 0; route->prefix == 0 && k < machine->links->len; k++) {
            const ChLink *link = &g_array_index(machine->links, ChLink, k);

            if (link->index == route->index && link->mtu <= G_MAXUINT16)
                return link->mtu;
        }
    }
    return 0;
}

/* (transfer full): without host bits, as the plugin `host-local` wants it */
static char *
print_subnet(const Subnet *subnet)
{
    char text[CH_IP_TEXT_SIZE];

    return g_strdup_printf("%s/%u", ch_ip_print(&subnet->ip, text), subnet->prefix);
}

/* (transfer full) */
static char *
bridge_name(guint n)
{
    return g_strdup_printf("chandler%u", n);
}

static bool
split_wanted(const char *wanted, char ***out_subnets, GError **error)
{
    g_auto(GStrv) subnets = g_strsplit(wanted, ",", 3);
    const guint n_subnets = g_strv_length(subnets);
    Subnet parsed[2];

    if (n_subnets < 1 || n_subnets > 2)
        return ch_fail(
            error, CH_ERROR_INVALID, "--pod-network is one subnet, or one of each family by comma");
    for (guint i = 0; i < n_subnets; i++) {
        if (!parse_subnet(g_strstrip(subnets[i]), &parsed[i], error))
            return false;
        g_free(subnets[i]);
        subnets[i] = print_subnet(&parsed[i]);
    }
    if (n_subnets == 2 && parsed[0].ip.family == parsed[1].ip.family)
        return ch_fail(error, CH_ERROR_INVALID, "--pod-network has two subnets of the same family");
    if (parsed[0].ip.family != AF_INET && (n_subnets == 1 || parsed[1].ip.family != AF_INET))
        return ch_fail(
            error, CH_ERROR_INVALID, "--pod-network needs an IPv4 subnet, which guests boot with");
    *out_subnets = g_steal_pointer(&subnets);
    return true;
}

const ChLink *
ch_node_network_find_bridge(const ChNodeNetwork *network, const ChNetState *machine)
{
    const ChLink *link = ch_net_state_find_link(machine, network->bridge);
    const bool is_same = link != NULL && g_str_equal(link->kind, "bridge") &&
                         (!network->has_mac ||
                          (link->has_mac && memcmp(link->mac, network->mac, CH_MAC_BYTES) == 0));

    return is_same ? link : NULL;
}

/* Another chandler may have made a bridge of that name since, as after the machine's start. */
static bool
keeps_stored(const ChNetState *machine, const ChNodeNetwork *stored, char **wanted)
{
    return stored != NULL && stored->bridge != NULL &&
           (ch_net_state_find_link(machine, stored->bridge) == NULL ||
            ch_node_network_find_bridge(stored, machine) != NULL) &&
           (wanted == NULL ||
            g_strv_equal((const char *const *)stored->subnets, (const char *const *)wanted));
}

/* What an earlier start of ours chose: its bridge is no obstacle, where it is still there. */
static bool
keep(const ChNetState *machine,
     const ChNodeNetwork *stored,
     bool is_in_use,
     ChNodeNetwork *out_network,
     GError **error)
{
    if (!is_in_use && !is_free(machine, stored->subnets, stored->bridge, error))
        return false;
    *out_network = (ChNodeNetwork){.bridge = g_strdup(stored->bridge),
                                   .subnets = g_strdupv(stored->subnets),
                                   .mtu = outer_mtu(machine),
                                   .has_mac = stored->has_mac};
    memcpy(out_network->mac, stored->mac, sizeof(stored->mac));
    return true;
}

static bool
choose_new(const ChNetState *machine, char **wanted, ChNodeNetwork *out_network, GError **error)
{
    g_autoptr(GError) failure = NULL;

    for (guint i = 0; i < N_CHOICES; i++) {
        g_autofree char *bridge = bridge_name(i);
        g_autofree char *subnet = g_strdup_printf("10.213.%u.0/20", 16 * i);
        char *choice[] = {subnet, NULL};
        char **subnets = wanted != NULL ? wanted : choice;

        if (ch_net_state_find_link(machine, bridge) != NULL)
            continue; /* another chandler's */
        g_clear_error(&failure);
        if (is_free(machine, subnets, NULL, &failure)) {
            *out_network = (ChNodeNetwork){.bridge = g_steal_pointer(&bridge),
                                           .subnets = g_strdupv(subnets),
                                           .mtu = outer_mtu(machine)};
            return true;
        }
    }
    if (failure == NULL)
        ch_fail(&failure, CH_ERROR_EXISTS, "there are %d chandlers on this machine", N_CHOICES);
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

bool
ch_subnet_choose(const ChNetState *machine,
                 const ChNodeNetwork *stored,
                 bool is_in_use,
                 const char *wanted,
                 ChNodeNetwork *out_network,
                 GError **error)
{
    g_auto(GStrv) subnets = NULL;

    if (wanted != NULL && !split_wanted(wanted, &subnets, error))
        return false;
    /* A stored choice that something new is in the way of is made anew, unless it was asked for. */
    if (keeps_stored(machine, stored, subnets)) {
        if (keep(machine, stored, is_in_use, out_network, wanted != NULL ? error : NULL))
            return true;
        if (wanted != NULL)
            return false;
    }
    return choose_new(machine, subnets, out_network, error);
}
