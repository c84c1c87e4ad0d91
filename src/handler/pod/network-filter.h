/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-filter: which of a VMI's networks a set-up is about.
 *
 * The order decides the links' numbers and a bridge's address, so it is the original's: that of the
 * interfaces for a VM that starts or runs, that of the networks for a migration's target. Pure.
 * Thread: the document's owner. Spec: 04 §2.2.
 */

#pragma once

#include "lib/json/json.h"

typedef enum {
    CH_NETWORK_RUN_INVALID = 0,
    CH_NETWORK_RUN_START,  /* a VM starts: all that are not absent */
    CH_NETWORK_RUN_UPDATE, /* a VM runs: those to plug, then those to unplug */
    CH_NETWORK_RUN_TARGET, /* a VM comes here: all */
} ChNetworkRun;

/* Both borrowed from the VMI. */
typedef struct {
    const ChJson *network;
    const ChJson *iface; /* NULL: none has the network's name (TARGET only) */
} ChNetworkChoice;

/* (transfer full): ChNetworkChoice */
GArray *ch_network_filter(const ChJson *vmi, ChNetworkRun run);

/* Whether the guest still has a NIC that is to go: it may not have heard that it was asked. Of
 * networks whose NICs launchers unplug: secondary ones with the bridge binding. */
bool ch_network_awaits_guest(const ChJson *vmi);

/* (nullable): the item with this name; @name may be NULL */
const ChJson *ch_network_find_named(const ChJson *list, const char *name);
