/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-nat: the nf_tables rules of masquerade, as data.
 *
 * One table `nat` a family, whose chains are ours by their names. It is made in one transaction, so
 * our own rules are there all or not at all; what another agent left half done is told by the
 * number of rules. Pure. Thread: any. Spec: 04 §12.
 */

#pragma once

#include "handler/pod/network-spec.h"
#include "lib/linux/nft.h"

#define CH_NETWORK_NAT_TABLE "nat"

typedef struct {
    uint8_t family;
    const char *pod_link, *bridge;
    ChIp gateway, guest;
    ChIp pod_ip; /* the pod link's first of the family; family 0: none */
    bool is_istio;
    bool reserves_migration_ports;
    const ChNetworkPort *ports;
    guint n_ports;
} ChNetworkNat;

/* Those of one family, in the order in which they are made. */
const ChNftChain *ch_network_nat_chains(gsize *out_n);

/* (transfer full): ChNftRule; borrows from @nat */
GArray *ch_network_nat_rules(const ChNetworkNat *nat);

typedef enum {
    CH_NETWORK_NAT_INVALID = 0,
    CH_NETWORK_NAT_ADD,  /* nothing is there */
    CH_NETWORK_NAT_DONE, /* all is there */
    CH_NETWORK_NAT_REDO, /* some is there: the chains are emptied first */
} ChNetworkNatState;

/* @counts: of ch_network_nat_chains(), as found; further rules, somebody else's, do not matter
 * @is_resumed: a set-up was begun here before, by us or by the Go agent, which makes the rules one
 * by one */
ChNetworkNatState
ch_network_nat_judge(const GArray *rules, const ChNftCounts *counts, bool is_resumed);
