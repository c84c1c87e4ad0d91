/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vmi-network: what a VMI wants of the pod's network: the default interface that admission adds,
 * what cannot be had here, ports of this machine.
 *
 * Pure. Thread: any. Spec: 04 §1 (words), §8; KubeVirt's admission for the default.
 */

#pragma once

#include "local/podrunner/cni.h"

#define CH_HOST_PORTS_ANNOTATION "chandler.dev/host-ports"
#define CH_HOST_PORTS_MAX        64

/* Whether it names neither network nor interface, and did not decline the default one. */
bool ch_vmi_wants_default_network(const ChJson *vmi);

/**
 * ch_vmi_add_default_network: the pod network, with one interface.
 * @binding: (nullable): of the cluster's configuration; "bridge" (default) or "masquerade"
 *
 * Returns: false with CH_ERROR_INVALID: another binding
 */
bool ch_vmi_add_default_network(ChJson *vmi, const char *binding, GError **error);

/* Returns: false with CH_ERROR_INVALID: it wants what one machine has not; the message says what */
bool ch_vmi_check_networks(const ChJson *vmi, GError **error);

/* Borrowed (nullable): the pod network's name, if one of the interfaces is on it. */
const char *ch_vmi_pod_network(const ChJson *vmi);

/**
 * ch_vmi_needs_network:
 * @state: (nullable): the record's network
 *
 * Returns: whether its pod is to be connected before it is handed over: also when the last network
 * left the VMI while that was going on, as what was begun must come to an end
 */
bool ch_vmi_needs_network(const ChJson *vmi, const char *state);

/**
 * ch_vmi_host_ports: the annotation CH_HOST_PORTS_ANNOTATION, "8080:80, 5353:53/udp".
 *
 * Returns: (transfer full) (element-type ChHostPort): empty without the annotation; NULL with
 * CH_ERROR_INVALID or CH_ERROR_LIMIT
 */
GArray *ch_vmi_host_ports(const ChJson *vmi, GError **error);
