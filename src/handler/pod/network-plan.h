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
#include "handler/pod/network-step.h"
#include "lib/linux/rtnetlink.h"

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

/* Gateway of the guest's network of masquerade; the guest has the next address. */
bool ch_network_gateway(
    const char *cidr, uint8_t family, ChIp *out_ip, uint8_t *out_prefix, GError **error);

/* The link that carries the addresses which CNI gave: the pod link, or what took them over. NULL:
 * there is none. */
const ChLink *ch_network_address_link(const ChNetworkIface *iface, const ChNetState *seen);
/* Its first global unicast address of the family; NULL: none. */
const ChAddress *
ch_network_first_address(const ChNetState *seen, const ChLink *link, uint8_t family);
