/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-plan: the next steps from the links that a pod has to those that an interface wants.
 *
 * Theory of operation: the plan is made from what is seen, carried out, and made anew, until it is
 * empty. Nothing else is remembered: who is killed in between goes on where the pod stands. So
 * every step either leaves what a later look needs, or comes after it is kept elsewhere. With the
 * bridge binding the pod link loses its name, MAC and addresses; they are on the spare link (which
 * in the end takes over the name) before the first of them is touched.
 *
 * Steps that do not need each other are sent together, and the kernel goes on behind one that
 * fails: a step that may only follow when all before it are known to be done says that it waits.
 *
 * Pure. Thread: any. Spec: 04 §8, §9.
 */

#pragma once

#include "handler/pod/network-spec.h"
#include "lib/linux/rtnetlink.h"

typedef enum {
    CH_NETWORK_STEP_INVALID = 0,
    CH_NETWORK_STEP_LINK, /* make or change a link */
    CH_NETWORK_STEP_LEARNING_OFF,
    CH_NETWORK_STEP_ADD_ADDRESS,
    CH_NETWORK_STEP_DELETE_ADDRESS, /* one that is gone already is fine */
    CH_NETWORK_STEP_MAKE_TAP,
    CH_NETWORK_STEP_DELETE_LINK, /* the same */
    CH_NETWORK_STEP_N,
} ChNetworkStepKind;

typedef struct {
    ChNetworkStepKind kind;
    bool waits;          /* not before the earlier ones are done */
    char link[IFNAMSIZ]; /* that it is about; the tap's name */
    int index;           /* of that link; 0: it is made */
    /* LINK; what is not set stays as it is */
    const char *link_kind; /* static */
    char name[IFNAMSIZ];   /* "" */
    bool has_mac;
    uint8_t mac[CH_MAC_BYTES];
    uint32_t mtu;
    int master;
    bool sets_up, sets_down, sets_route_localnet;
    ChAddress address;
    bool is_multi_queue; /* MAKE_TAP */
} ChNetworkStep;

/**
 * ch_network_plan: none for a binding that has no links.
 * @iface: with its names
 * @dummy_kind: "dummy", or what is made instead on a kernel without it
 *
 * Returns: (transfer full): ChNetworkStep; none: the links are as they are wanted. NULL with
 * CH_ERROR_FAILED: the wanted state cannot be reached
 */
GArray *ch_network_plan(const ChNetworkIface *iface,
                        const ChNetState *seen,
                        const char *dummy_kind,
                        GError **error);

/* (transfer full): the steps after which the links are gone that were made for an interface with
 * the bridge binding; none: they are gone, or the binding leaves its links to the pod's end. The
 * renamed pod link stays: CNI removes it. */
GArray *ch_network_plan_removal(const ChNetworkIface *iface, const ChNetState *seen);

/* (transfer full): for the log and tests: "k6t-eth0: new bridge, mac 02:00:00:00:00:00, mtu 1450"
 */
char *ch_network_step_text(const ChNetworkStep *step);

/* Gateway of the guest's network of masquerade; the guest has the next address. */
bool ch_network_gateway(
    const char *cidr, uint8_t family, ChIp *out_ip, uint8_t *out_prefix, GError **error);

/* The link that carries the addresses which CNI gave: the pod link, or what took them over. NULL:
 * there is none. */
const ChLink *ch_network_address_link(const ChNetworkIface *iface, const ChNetState *seen);
/* Its first global unicast address of the family; NULL: none. */
const ChAddress *
ch_network_first_address(const ChNetState *seen, const ChLink *link, uint8_t family);
