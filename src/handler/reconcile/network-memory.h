/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-memory: what a VM's network needs of its pod's memory, beside the guest.
 *
 * Pure. Thread: any. Spec: 04 §21.
 */

#pragma once

#include "handler/config/cluster-config.h"

/* Bytes: 250 MiB for passt, however many interfaces it has, and what each binding plugin in use
 * asks for, once each. */
int64_t ch_network_memory(const ChClusterConfig *config, const ChJson *vmi);
