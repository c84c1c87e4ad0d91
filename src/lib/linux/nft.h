/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nft: a table with chains and rules as one nf_tables transaction, and what a table holds.
 *
 * Rules are data; composing is pure and makes what the `nft` tool makes of ch_nft_rule_text(), so
 * that people who list the rules read them as they know them. A transaction is taken by the kernel
 * whole or not at all. Uses the heap and GError: not for the hands. Thread: any. Spec: 04 §12.
 */

#pragma once

#include "lib/linux/ip.h"
#include "lib/linux/netlink.h"

#define CH_NFT_NAME_SIZE  32 /* of our chains and links */
#define CH_NFT_MAX_IPS    2
#define CH_NFT_MAX_PORTS  16
#define CH_NFT_MAX_CHAINS 16

typedef enum {
    CH_NFT_VERDICT_INVALID = 0,
    CH_NFT_MASQUERADE,
    CH_NFT_RETURN,
    CH_NFT_JUMP, /* to `target` */
    CH_NFT_DNAT, /* to `to` */
    CH_NFT_SNAT, /* to `to` */
    CH_NFT_VERDICT_N,
} ChNftVerdict;

/* Matches in this order; what is empty is not matched. A counter and the verdict follow. */
typedef struct {
    const char *chain;
    const char *iifname, *oifname; /* below CH_NFT_NAME_SIZE / IFNAMSIZ */
    ChIp daddr[CH_NFT_MAX_IPS];
    unsigned n_daddr;
    uint8_t protocol;                 /* IPPROTO_* of the ports; 0: no ports */
    uint16_t ports[CH_NFT_MAX_PORTS]; /* host order */
    unsigned n_ports;
    bool is_range; /* ports[0] to ports[1] */
    ChIp saddr[CH_NFT_MAX_IPS];
    unsigned n_saddr;
    ChNftVerdict verdict;
    const char *target;
    ChIp to;
} ChNftRule;

typedef struct {
    const char *name;
    bool is_base; /* of type nat, at `hook` with `priority`, policy accept */
    uint32_t hook;
    int32_t priority;
} ChNftChain;

/* The protocol of this name in lower case ("tcp", "udp", "sctp", "dccp", "udplite"); 0: unknown. */
uint8_t ch_nft_protocol(const char *name);

/* (transfer full): without chain, as one would give it to `nft add rule` */
char *ch_nft_rule_text(const ChNftRule *rule);

/**
 * ch_nft_compose: one transaction that adds the table, its chains, and the rules at their ends.
 * @family: AF_INET or AF_INET6
 * @flushes: the chains are emptied first
 * @max_bytes: what one send takes
 *
 * A table or chain that is there stays. The last rule asks for an acknowledgement.
 *
 * Returns: (transfer full): whole messages for ch_netlink_request(); NULL with CH_ERROR_LIMIT
 */
GByteArray *ch_nft_compose(uint8_t family,
                           const char *table,
                           const ChNftChain chains[],
                           gsize n_chains,
                           const ChNftRule rules[],
                           gsize n_rules,
                           bool flushes,
                           gsize max_bytes,
                           GError **error);

/* How many rules each of some chains has. */
typedef struct {
    const char *table;
    const ChNftChain *chains;
    gsize n_chains;                     /* at most CH_NFT_MAX_CHAINS */
    unsigned counts[CH_NFT_MAX_CHAINS]; /* by index */
} ChNftCounts;

/**
 * ch_nft_count: fills @counts->counts. Blocks.
 * Returns: false as ch_netlink_dump(), EINTR included
 */
bool ch_nft_count(ChNetlink *netlink, uint8_t family, ChNftCounts *counts, GError **error);

/* Counts what one message says; for ch_nft_count() and its tests. */
bool ch_nft_take(gpointer counts, const struct nlmsghdr *message, GError **error);
