/* SPDX-License-Identifier: Apache-2.0 */

/*
 * dhcp-lease: what the guest's interface is given, out of the VMI and of what the agent left.
 *
 * Pure. Thread: any. Spec: 04 §4.2 (the file), §8.1, §8.2 (addresses), §17.
 */

#pragma once

#include "lib/json/json.h"
#include "local/launcher/dhcp.h"

typedef struct {
    const ChJson *vmi;
    const char *interface;   /* of the VMI */
    const char *pod_mac;     /* (nullable): of the pod's link, as text */
    guint mtu;               /* 0: not known */
    const char *cache;       /* (nullable): bridge: the text of vif-cache-<link>.json */
    const char *resolv_conf; /* (nullable): the pod's */
} ChDhcpFacts;

/**
 * ch_dhcp_lease_fill:
 * @out_lease: (out): address.family 0: the guest is given nothing (a bridge without addresses)
 *
 * Returns: false with CH_ERROR_INVALID or CH_ERROR_NOT_FOUND
 */
bool ch_dhcp_lease_fill(const ChDhcpFacts *facts, ChDhcpLease *out_lease, GError **error);
