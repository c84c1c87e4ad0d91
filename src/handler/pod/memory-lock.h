/* SPDX-License-Identifier: Apache-2.0 */

/*
 * memory-lock: how much memory the processes of a VM may lock, and whether they need to.
 *
 * Pure. Thread: any. Spec: 05 §13.1, §13.2.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/json/json.h"

/* Of the KubeVirt configuration and the node. */
typedef struct {
    const char *ratio; /* (nullable): additionalGuestMemoryOverheadRatio; what is no number is 1 */
    bool is_arm64;     /* the node, for a VMI that does not say */
    bool is_mshv;      /* the hypervisor: it knows neither reserved overhead nor further devices,
                          and the VMI's architecture is not asked */
} ChMemoryLockOptions;

/* Whether devices are passed through to it, it is real-time or confidential, or asks for it. */
bool ch_memory_lock_is_needed(const ChJson *vmi, const ChMemoryLockOptions *options);

/* Whether the limit is QEMU's: the phase is Running, and it does not wait for its domain to arrive
 * from another node. Else it is virtqemud's, whose children have it. */
bool ch_memory_lock_is_qemus(const ChJson *vmi);

/* Bytes that the VM's processes take beside the guest's memory. */
int64_t ch_memory_lock_overhead(const ChJson *vmi, const ChMemoryLockOptions *options);

/* Bytes that may be locked: overhead, guest, and the guest's memory once more for each further
 * device that is passed through. */
int64_t ch_memory_lock_size(const ChJson *vmi, const ChMemoryLockOptions *options);
