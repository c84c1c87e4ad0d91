/* SPDX-License-Identifier: Apache-2.0 */

/*
 * limits: what a VM's processes may lock, where they run and how they are scheduled.
 *
 * Thread: a worker; one at a time per pod. Blocks: for the hands. Spec: 05 §13.
 */

#pragma once

#include <stdbool.h>

#include "handler/pod/memory-lock.h"
#include "handler/pod/pod.h"
#include "lib/json/json.h"

/**
 * ch_pod_adjust_resources: raises the limit of locked memory, if the VM needs it.
 * @vmi: with its status, which says whose limit it is
 *
 * Returns: false with CH_ERRNO: "failed to set process N memlock rlimit to S: ...", "no QEMU
 * process found under process N child processes: ..."
 */
bool ch_pod_adjust_resources(ChPod *pod,
                             const ChJson *vmi,
                             const ChMemoryLockOptions *options,
                             GError **error);

typedef struct {
    bool is_mshv;              /* the configured hypervisor */
    bool is_starting;          /* phase neither Running nor final */
    const char *emulator_cpus; /* (nullable): of the domain; NULL: there is no domain, or no pin */
} ChHousekeepingOptions;

/**
 * ch_pod_keep_house: after a sync: all but the virtual CPUs into a cgroup of their own, virtual
 * CPUs real-time, the timer's thread where the first of them is, each if the VM asks for it.
 *
 * Returns: false with CH_ERRNO, CH_ERROR_INVALID or CH_ERROR_LIMIT (masks, sets of CPUs)
 */
bool ch_pod_keep_house(ChPod *pod,
                       const ChJson *vmi,
                       const ChHousekeepingOptions *options,
                       GError **error);
