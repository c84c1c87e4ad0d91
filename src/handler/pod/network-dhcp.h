/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-dhcp: what the launcher's DHCP server is told of a bridge-bound interface.
 *
 * The document has Go's shape: every member of the original's structures, in their order. Pure.
 * Thread: any. Spec: 04 §4.2, §7.3.
 */

#pragma once

#include "handler/pod/network-spec.h"

/**
 * ch_network_dhcp_print:
 * @seen: from before the pod link is touched
 *
 * Returns: (transfer full): the file's text; NULL with CH_ERROR_FAILED: no pod link, no route to
 * take the gateway from, a MAC that is none
 */
char *ch_network_dhcp_print(const ChNetworkIface *iface, const ChNetState *seen, GError **error);
