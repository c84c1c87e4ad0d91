/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-internal: a set-up of a pod's networks under way; what network*.c with effects share.
 * Thread: as of network.h.
 */

#pragma once

#include "handler/pod/network-plan.h"
#include "handler/pod/network.h"

typedef struct {
    ChPod *pod;
    const ChPodNetworkOptions *options;
    ChNetworkRun run;
    const char *uid;
    ChNetworkSpec *spec;    /* owned */
    GPtrArray *documents;   /* owned; ChJson: the cache's, by interface */
    GArray *states;         /* owned; int64_t: as found, by interface */
    ChNetlink *route;       /* owned; NULL: not opened yet */
    ChNetState *seen;       /* owned; the newest look */
    const char *dummy_kind; /* what stands in for a pod link */
    guint n_steps;
} ChNetworkSetup;

/* As found on disk, by interface. */
int64_t ch_network_setup_state(const ChNetworkSetup *setup, guint index);
bool ch_network_setup_is_absent(const ChNetworkSetup *setup, guint index);

/* A state that is none of the three is left alone, as the Go agent does. */
bool ch_network_setup_is_unfinished(const ChNetworkSetup *setup, guint index);

/* Looks at the pod's links and addresses anew. */
bool ch_network_setup_look(ChNetworkSetup *setup, bool with_routes, GError **error);

/* network-links.c: brings the links of @iface to the wanted state, step by step. 04 §9 */
bool ch_network_setup_links(ChNetworkSetup *setup, const ChNetworkIface *iface, GError **error);

/* network-rules.c: the sysctls of the unfinished networks, then the rules of the one that is
 * masqueraded. 04 §11, §12 */
bool ch_network_setup_rules(const ChNetworkSetup *setup, GError **error);
