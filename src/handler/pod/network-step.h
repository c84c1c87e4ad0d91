/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-step: one step of a pod's network, and how it is told.
 *
 * Pure. Thread: any. Spec: 04 §9, §10.
 */

#pragma once

#include <net/if.h>

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

/* (transfer full): for the log and tests: "k6t-eth0: new bridge, mac 02:00:00:00:00:00, mtu 1450"
 */
char *ch_network_step_text(const ChNetworkStep *step);

/**
 * ch_network_step_fail: the error of a step that was not taken, with the text that people look for:
 * "failed to setup link [eth0-nic]: LinkSetName: file exists". A step that changes several things
 * of a link names all of them, as the kernel does not tell which of them it was.
 * @reason: (transfer full): of the netlink socket, or of the hands for a tap, which have the text
 * @error: (out) (optional): with @reason's domain and code
 *
 * Returns: always false
 */
bool ch_network_step_fail(const ChNetworkStep *step, GError *reason, GError **error);
