/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ownership: gives what a guest needs of its pod to the VM's user, before the guest starts.
 *
 * What is to be done, in which order, is a pure function of the VMI; neighbours that are fixed
 * devices are one request to the hands, as most VMs need nothing else. Spec: 01 §24.1, 05 §10.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#include "handler/pod/pod.h"
#include "lib/json/json.h"

typedef struct {
    bool is_nonroot;       /* the VM runs as 107:107 */
    bool use_emulation;    /* guests do without a hypervisor's device */
    bool is_mshv;          /* the hypervisor is not KVM */
    uint64_t disk_reserve; /* see ch_pod_prepare_disk() */
    int disk_tolerated_percent;
} ChOwnershipOptions;

typedef enum {
    CH_OWNERSHIP_INVALID = 0,
    CH_OWNERSHIP_DEVICES,   /* `devices` */
    CH_OWNERSHIP_HOST_DISK, /* `disk`; its directory, too, unless the VM runs as root */
    CH_OWNERSHIP_BLOCK,     /* the claim `name`'s block device */
    CH_OWNERSHIP_NO_STATUS, /* nothing is known of the claim `name`: refused */
    CH_OWNERSHIP_VIRTIOFS,  /* the file system `name`'s socket */
    CH_OWNERSHIP_N,
} ChOwnershipKind;

typedef struct {
    ChOwnershipKind kind;
    uint32_t devices; /* of ChPodDevice */
    const char *name; /* borrowed from the VMI */
    ChHostDisk disk;
} ChOwnershipStep;

/* (transfer full): the steps (ChOwnershipStep), in order. @vmi: its filesystem claims replaced by
 * host disks; outlives them. Pure. */
GArray *ch_ownership_plan(const ChJson *vmi, const ChOwnershipOptions *options);

typedef enum {
    CH_OWNERSHIP_OK = 0,
    CH_OWNERSHIP_RETRY,
    CH_OWNERSHIP_CRITICAL, /* the VM cannot have its network, ever */
} ChOwnershipOutcome;

/**
 * ch_ownership_apply: carries the plan out, up to the first step that fails.
 *
 * @tolerated: (element-type utf8): a text is added for each disk that became smaller than asked for
 *
 * Thread: a worker's. Blocks: for the hands, 50 us for most VMs.
 *
 * Returns: CH_OWNERSHIP_OK, else with an error
 */
ChOwnershipOutcome ch_ownership_apply(ChPod *pod,
                                      const ChJson *vmi,
                                      const ChOwnershipOptions *options,
                                      GPtrArray *tolerated,
                                      GError **error);
