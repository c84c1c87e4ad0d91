/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-nat.h"

#include <netinet/in.h> /* before the kernel's own definitions of the same */

#include <linux/netfilter.h>
#include <string.h>

#define PREINBOUND  "KUBEVIRT_PREINBOUND"
#define POSTINBOUND "KUBEVIRT_POSTINBOUND"
#define SSH_PORT    22

/* The numbers are those of NF_IP_PRI_NAT_DST and NF_IP_PRI_NAT_SRC. */
static const ChNftChain chains[] = {
    {"prerouting", true, NF_INET_PRE_ROUTING, -100},
    {"input", true, NF_INET_LOCAL_IN, 100},
    {"output", true, NF_INET_LOCAL_OUT, -100},
    {"postrouting", true, NF_INET_POST_ROUTING, 100},
    {PREINBOUND, false, 0, 0},
    {POSTINBOUND, false, 0, 0},
};
G_STATIC_ASSERT(G_N_ELEMENTS(chains) <= CH_NFT_MAX_CHAINS);

static const uint16_t migration_ports[] = {49152, 49153};
static const uint16_t istio_ports[] = {
    15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090};

typedef struct {
    const ChNetworkNat *nat;
    GArray *rules; /* ChNftRule */
    ChIp loopback;
    ChIp snat_sources[CH_NFT_MAX_IPS];
    unsigned n_snat_sources;
    ChIp dnat_destinations[CH_NFT_MAX_IPS];
    unsigned n_dnat_destinations;
} Builder;

const ChNftChain *
ch_network_nat_chains(gsize *out_n)
{
    *out_n = G_N_ELEMENTS(chains);
    return chains;
}

static void
add(Builder *builder, const ChNftRule *rule)
{
    g_array_append_vals(builder->rules, rule, 1);
}

static void
set_ips(ChIp target[], unsigned *out_n, const ChIp ips[], unsigned n)
{
    memcpy(target, ips, n * sizeof(*ips));
    *out_n = n;
}

/* 04 §12, step 3 to 5 */
static void
add_frame(Builder *builder)
{
    const ChNetworkNat *nat = builder->nat;

    add(builder,
        &(ChNftRule){.chain = "postrouting",
                     .saddr = {nat->guest},
                     .n_saddr = 1,
                     .verdict = CH_NFT_MASQUERADE});
    add(builder,
        &(ChNftRule){.chain = "prerouting",
                     .iifname = nat->pod_link,
                     .verdict = CH_NFT_JUMP,
                     .target = PREINBOUND});
    add(builder,
        &(ChNftRule){.chain = "postrouting",
                     .oifname = nat->bridge,
                     .verdict = CH_NFT_JUMP,
                     .target = POSTINBOUND});
}

/* What the pod itself says on these ports stays in the pod. */
static void
add_skip(Builder *builder, const uint16_t ports[], unsigned n)
{
    static const char *const both[] = {"output", POSTINBOUND};

    for (gsize i = 0; i < G_N_ELEMENTS(both); i++) {
        ChNftRule rule = {.chain = both[i],
                          .protocol = IPPROTO_TCP,
                          .n_ports = n,
                          .saddr = {builder->loopback},
                          .n_saddr = 1,
                          .verdict = CH_NFT_RETURN};

        memcpy(rule.ports, ports, n * sizeof(*ports));
        add(builder, &rule);
    }
}

static const ChNetworkPort all_ports = {0};
static const ChNetworkPort ssh = {.protocol = IPPROTO_TCP, .port = SSH_PORT};

/* Adds a rule that matches @port too. */
static void
add_for_port(Builder *builder, ChNftRule *rule, const ChNetworkPort *port)
{
    if (port->protocol != 0) {
        rule->protocol = port->protocol;
        rule->ports[0] = port->port;
        rule->ports[1] = port->last;
        rule->is_range = port->last != 0;
        rule->n_ports = rule->is_range ? 2 : 1;
    }
    add(builder, rule);
}

static void
add_inbound(Builder *builder, const ChNetworkPort *port)
{
    add_for_port(
        builder,
        &(ChNftRule){.chain = PREINBOUND, .verdict = CH_NFT_DNAT, .to = builder->nat->guest},
        port);
}

/* Back from the guest, and from the pod itself. */
static void
add_local(Builder *builder, const ChNetworkPort *port)
{
    ChNftRule back = {.chain = POSTINBOUND, .verdict = CH_NFT_SNAT, .to = builder->nat->gateway};
    ChNftRule out = {.chain = "output", .verdict = CH_NFT_DNAT, .to = builder->nat->guest};

    set_ips(back.saddr, &back.n_saddr, builder->snat_sources, builder->n_snat_sources);
    set_ips(out.daddr, &out.n_daddr, builder->dnat_destinations, builder->n_dnat_destinations);
    add_for_port(builder, &back, port);
    add_for_port(builder, &out, port);
}

static bool
has_ssh(const ChNetworkPort *port)
{
    return port->port == SSH_PORT || (port->port < SSH_PORT && port->last >= SSH_PORT);
}

/* With Istio all goes through its proxy in the pod but SSH. */
static void
add_port(Builder *builder, const ChNetworkPort *port)
{
    if (!builder->nat->is_istio)
        add_inbound(builder, port);
    else if (has_ssh(port))
        add_inbound(builder, &ssh);
    add_local(builder, port);
}

static void
add_all_ports(Builder *builder)
{
    if (builder->nat->is_istio) {
        add_skip(builder, istio_ports, G_N_ELEMENTS(istio_ports));
        add_inbound(builder, &ssh);
    } else {
        add_inbound(builder, &all_ports);
    }
    add_local(builder, &all_ports);
}

static void
set_addresses(Builder *builder)
{
    const ChNetworkNat *nat = builder->nat;
    const bool is_istio_v4 = nat->is_istio && nat->family == AF_INET;

    (void)ch_ip_parse(nat->family == AF_INET ? "127.0.0.1" : "::1", &builder->loopback);
    builder->snat_sources[builder->n_snat_sources++] = builder->loopback;
    builder->dnat_destinations[builder->n_dnat_destinations++] = builder->loopback;
    if (is_istio_v4)
        (void)ch_ip_parse("127.0.0.6", &builder->snat_sources[builder->n_snat_sources++]);
    if (is_istio_v4 && nat->pod_ip.family != 0)
        builder->dnat_destinations[builder->n_dnat_destinations++] = nat->pod_ip;
}

GArray *
ch_network_nat_rules(const ChNetworkNat *nat)
{
    Builder builder = {.nat = nat, .rules = g_array_new(FALSE, TRUE, sizeof(ChNftRule))};

    set_addresses(&builder);
    add_frame(&builder);
    if (nat->reserves_migration_ports)
        add_skip(&builder, migration_ports, G_N_ELEMENTS(migration_ports));
    for (guint i = 0; i < nat->n_ports; i++)
        add_port(&builder, &nat->ports[i]);
    if (nat->n_ports == 0)
        add_all_ports(&builder);
    return builder.rules;
}

ChNetworkNatState
ch_network_nat_judge(const GArray *rules, const ChNftCounts *counts, bool is_resumed)
{
    unsigned wanted[G_N_ELEMENTS(chains)] = {0};
    bool has_any = false;
    bool lacks_any = false;

    for (gsize i = 0; i < G_N_ELEMENTS(chains); i++) {
        for (guint j = 0; j < rules->len; j++)
            if (g_str_equal(g_array_index(rules, ChNftRule, j).chain, chains[i].name))
                wanted[i]++;
        has_any = has_any || (counts->counts[i] > 0 && (is_resumed || !chains[i].is_base));
        lacks_any = lacks_any || counts->counts[i] < wanted[i];
    }
    /* In a fresh pod only a rule in a chain of our name tells that somebody was here: anybody may
     * have used the other names. */
    if (!has_any)
        return CH_NETWORK_NAT_ADD;
    return lacks_any ? CH_NETWORK_NAT_REDO : CH_NETWORK_NAT_DONE;
}
