/* SPDX-License-Identifier: Apache-2.0 */

/*
 * subnet-choice: which bridge and which addresses the pods of this machine get.
 *
 * What is there already (other networks, other chandlers) is kept out of the way; what was chosen
 * before is kept. Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"
#include "lib/linux/rtnetlink.h"

/* Of this machine (forwarding.h). */
enum { CH_FORWARDING_IPV4, CH_FORWARDING_IPV6, CH_FORWARDING_N };

/* Owned members. */
typedef struct {
    char *bridge;                   /* NULL: pods have no network; */
    char *reason;                   /* then this says why */
    char **subnets;                 /* "10.213.0.0/20"; one, or one of each family */
    guint mtu;                      /* 0: the kernel's choice */
    bool has_mac;                   /* false: chosen, but not made yet */
    uint8_t mac[CH_MAC_BYTES];      /* the bridge's: by it we know it as ours */
    char *boot;                     /* (nullable): the boot's ID at which */
    bool turns_on[CH_FORWARDING_N]; /* these were off, and `up` turned them on */
} ChNodeNetwork;

void ch_node_network_clear(ChNodeNetwork *network);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChNodeNetwork, ch_node_network_clear)

/* Both halves of how it is stored. parse: false with CH_ERROR_INVALID */
char *ch_node_network_print(const ChNodeNetwork *network);
bool ch_node_network_parse(const char *text, ChNodeNetwork *out_network, GError **error);

/* The bridge of @network, borrowed; NULL when it is not there, or when the link of its name is not
 * the one that was made for it. */
const ChLink *ch_node_network_find_bridge(const ChNodeNetwork *network, const ChNetState *machine);

/**
 * ch_subnet_choose:
 * @machine: links, addresses and routes of this machine
 * @stored: (nullable): the choice of before
 * @is_in_use: pods are on it: it stays, whatever came in its way since
 * @wanted: (nullable): what the person asks for: subnets, by comma
 *
 * Returns: false with CH_ERROR_INVALID (@wanted is no good) or CH_ERROR_EXISTS (something is in its
 * way)
 */
bool ch_subnet_choose(const ChNetState *machine,
                      const ChNodeNetwork *stored,
                      bool is_in_use,
                      const char *wanted,
                      ChNodeNetwork *out_network,
                      GError **error);
