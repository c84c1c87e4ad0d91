/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rtnetlink: links, addresses and routes as messages of the kernel, and back.
 *
 * Composing and reading are pure; ch_rtnl_read() holds the conversation. Names come from a
 * namespace that a workload had a hand in: they are texts of at most 15 bytes, nothing else is
 * promised. Uses the heap and GError: not for the hands. Thread: any. Spec: 04 §6, §9.
 */

#pragma once

#include <net/if.h>

#include "lib/linux/ip.h"
#include "lib/linux/mac.h"
#include "lib/linux/netlink.h"

typedef struct {
    int index;
    char name[IFNAMSIZ];
    char kind[IFNAMSIZ]; /* "veth", "bridge", "dummy", "tap", ...; "" when the kernel names none */
    unsigned flags;      /* IFF_* */
    uint32_t mtu;
    uint32_t max_mtu;  /* 0: not told */
    bool is_transient; /* a tap that goes with the process that has it open */
    int master;        /* index, 0: none */
    bool has_mac;
    uint8_t mac[CH_MAC_BYTES];
    bool route_localnet; /* net.ipv4.conf.NAME.route_localnet */
    bool is_learning;    /* as a port of a bridge */
} ChLink;

typedef struct {
    int index; /* of the link */
    ChIp ip;
    uint8_t prefix;
} ChAddress;

/* Of the main table, to one output link. */
typedef struct {
    int index; /* of the output link */
    ChIp destination;
    uint8_t prefix; /* 0: the default route */
    ChIp gateway;   /* family 0: none */
} ChRoute;

/* What a namespace holds, in the kernel's order. */
typedef struct {
    GArray *links;     /* ChLink */
    GArray *addresses; /* ChAddress, both families */
    GArray *routes;    /* ChRoute, IPv4 only */
} ChNetState;

ChNetState *ch_net_state_new(void);
void ch_net_state_free(ChNetState *state);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChNetState, ch_net_state_free)

/* Borrowed (nullable). */
const ChLink *ch_net_state_find_link(const ChNetState *state, const char *name);

/**
 * ch_rtnl_read: links and addresses of the socket's namespace.
 * @with_routes: the IPv4 routes too
 *
 * Read again, a few times, when it changes meanwhile. Blocks.
 *
 * Returns: (transfer full): NULL with the errors of ch_netlink_dump(), or CH_ERROR_LIMIT
 */
ChNetState *ch_rtnl_read(ChNetlink *netlink, bool with_routes, GError **error);

/* Adds what one message of the kernel says; for ch_rtnl_read() and its tests. A message of another
 * kind, and a route without a single output link, is no news. */
bool ch_rtnl_take(gpointer state /* ChNetState */, const struct nlmsghdr *message, GError **error);

/* What to make or change of a link. What is zero or NULL stays as it is. */
typedef struct {
    int index;          /* 0: the link is made, with this name and kind */
    const char *kind;   /* "bridge", "dummy" */
    const char *name;   /* also: the new name */
    const uint8_t *mac; /* CH_MAC_BYTES */
    uint32_t mtu;
    int master;
    bool sets_up, sets_down;
    bool sets_route_localnet; /* to 1 */
} ChLinkChange;

/* Each fills a whole request with NLM_F_ACK. */
void ch_rtnl_compose_link(ChNetlinkMessage *message, const ChLinkChange *change);
void ch_rtnl_compose_learning_off(ChNetlinkMessage *message, int index);
void ch_rtnl_compose_delete_link(ChNetlinkMessage *message, int index);
/* For IPv4 below /31 the broadcast address is computed. */
void ch_rtnl_compose_add_address(ChNetlinkMessage *message, const ChAddress *address);
/* By address alone: labels change with the link's name, and a peer's address is not known. */
void ch_rtnl_compose_delete_address(ChNetlinkMessage *message, const ChAddress *address);
