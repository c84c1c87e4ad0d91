/* SPDX-License-Identifier: Apache-2.0 */

/* network-rules: sysctls, and the rules of masquerade (network-nat.h), in a pod. */

#include "handler/pod/network-internal.h"

#include <errno.h>

#include "handler/pod/network-cache.h"
#include "handler/pod/network-nat.h"
#include "handler/pod/pod-net.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"

#define MAX_ATTEMPTS 10 /* to read a list of rules without a change in between */

/* @iface's: set once and never taken back, as others may rely on them. */
static uint32_t
sysctls_of(const ChNetworkSetup *setup, const ChNetworkIface *iface)
{
    const ChLink *link = ch_network_address_link(iface, setup->seen);
    const bool has_v4 =
        link != NULL && ch_network_first_address(setup->seen, link, AF_INET) != NULL;
    const bool has_v6 =
        link != NULL && ch_network_first_address(setup->seen, link, AF_INET6) != NULL;

    switch (iface->binding) {
    case CH_NETWORK_MASQUERADE:
        return (has_v4 ? CH_HANDS_SYSCTL_IPV4_FORWARD : 0) |
               (has_v6 ? CH_HANDS_SYSCTL_IPV6_FORWARD : 0);
    case CH_NETWORK_BRIDGE:
    case CH_NETWORK_MANAGED_TAP:
        return has_v4 ? CH_HANDS_SYSCTL_ARP_IGNORE : 0;
    case CH_NETWORK_PASST:
        return CH_HANDS_SYSCTL_PING_GROUPS | CH_HANDS_SYSCTL_ALL_PORTS;
    case CH_NETWORK_PLUGIN:
    case CH_NETWORK_BINDING_INVALID:
        break;
    }
    return 0;
}

static uint32_t
wanted_sysctls(const ChNetworkSetup *setup)
{
    uint32_t sysctls = 0;

    for (guint i = 0; i < setup->spec->ifaces->len; i++)
        if (ch_network_setup_is_unfinished(setup, i))
            sysctls |= sysctls_of(setup, ch_network_spec_iface(setup->spec, i));
    return sysctls;
}

static bool
count_rules(ChNetlink *netfilter, uint8_t family, ChNftCounts *counts, GError **error)
{
    for (int attempt = 1;; attempt++) {
        g_autoptr(GError) reason = NULL;

        if (ch_nft_count(netfilter, family, counts, &reason))
            return true;
        if (!g_error_matches(reason, CH_ERRNO, EINTR) || attempt == MAX_ATTEMPTS) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return false;
        }
    }
}

static bool
add_rules(const ChNetworkNat *nat, bool is_resumed, ChNetlink *netfilter, GError **error)
{
    g_autoptr(GArray) rules = ch_network_nat_rules(nat);
    ChNftCounts counts = {.table = CH_NETWORK_NAT_TABLE};
    g_autoptr(GByteArray) batch = NULL;
    ChNetworkNatState state;

    counts.chains = ch_network_nat_chains(&counts.n_chains);
    if (!count_rules(netfilter, nat->family, &counts, error))
        return false;
    state = ch_network_nat_judge(rules, &counts, is_resumed);
    if (state == CH_NETWORK_NAT_DONE)
        return true;
    batch = ch_nft_compose(nat->family,
                           CH_NETWORK_NAT_TABLE,
                           counts.chains,
                           counts.n_chains,
                           (const ChNftRule *)(gpointer)rules->data,
                           rules->len,
                           state == CH_NETWORK_NAT_REDO,
                           CH_POD_NET_MAX_BYTES,
                           error);
    CH_CRASH_POINT("network/rules");
    return batch != NULL && ch_netlink_request(netfilter, batch->data, batch->len, error);
}

static bool
add_family(const ChNetworkSetup *setup,
           const ChNetworkIface *iface,
           uint8_t family,
           bool is_resumed,
           ChNetlink *netfilter,
           GError **error)
{
    const ChLink *link = ch_net_state_find_link(setup->seen, iface->names.pod_link);
    const ChAddress *address =
        link != NULL ? ch_network_first_address(setup->seen, link, family) : NULL;
    ChNetworkNat nat = {
        .family = family,
        .pod_link = iface->names.pod_link,
        .bridge = iface->names.bridge,
        .is_istio = setup->spec->is_istio,
        .reserves_migration_ports = setup->spec->reserves_migration_ports,
        .ports = (const ChNetworkPort *)(gpointer)iface->ports->data,
        .n_ports = iface->ports->len,
    };
    uint8_t prefix;

    if (address == NULL)
        return true;
    if (!ch_network_gateway(family == AF_INET ? iface->cidr_v4 : iface->cidr_v6,
                            family,
                            &nat.gateway,
                            &prefix,
                            error))
        return false;
    nat.guest = ch_ip_plus(&nat.gateway, 1);
    nat.pod_ip = address->ip;
    if (add_rules(&nat, is_resumed, netfilter, error))
        return true;
    g_prefix_error(error,
                   "setup-nat: rules of table %s nat, which need a kernel with nf_tables and its "
                   "NAT: ",
                   family == AF_INET ? "ip" : "ip6");
    return false;
}

/* The first masquerade interface; there cannot well be another. NULL: none, or it is finished. */
static const ChNetworkIface *
find_masquerade(const ChNetworkSetup *setup, bool *out_is_resumed)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const ChNetworkIface *iface = ch_network_spec_iface(setup->spec, i);

        if (iface->binding != CH_NETWORK_MASQUERADE)
            continue;
        *out_is_resumed = ch_network_setup_state(setup, i) == CH_NETWORK_STARTED;
        return ch_network_setup_is_unfinished(setup, i) ? iface : NULL;
    }
    return NULL;
}

bool
ch_network_setup_rules(const ChNetworkSetup *setup, GError **error)
{
    const uint32_t sysctls = wanted_sysctls(setup);
    bool is_resumed = false;
    const ChNetworkIface *iface = find_masquerade(setup, &is_resumed);
    g_autoptr(ChNetlink) netfilter = NULL;

    if (iface == NULL)
        return sysctls == 0 || ch_pod_net_set_sysctls(setup->pod, sysctls, error);
    netfilter = ch_pod_net_open_netfilter(setup->pod, sysctls, error);
    return netfilter != NULL && add_family(setup, iface, AF_INET, is_resumed, netfilter, error) &&
           add_family(setup, iface, AF_INET6, is_resumed, netfilter, error);
}
