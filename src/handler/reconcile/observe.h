/* SPDX-License-Identifier: Apache-2.0 */

/*
 * observe: what a pass looks at, besides VMI and domain, before a status can be computed.
 *
 * Internal to the reconcile room. Each look is made only when the status depends on it. Thread:
 * workers; blocks for the launcher, the API server and the hands, each with a deadline. Spec: 02
 * §3, §6.
 */

#pragma once

#include "handler/pod/container-disks.h"
#include "handler/reconcile/pass.h"
#include "handler/reconcile/pod-addresses.h"

typedef struct {
    ChPodAddressList *addresses; /* (nullable) */
    ChGuestInfo *guest_info;     /* (nullable) */
    bool trackers_marked;
    char *selinux_context;     /* owned (nullable) */
    char **mounted;            /* owned (nullable): hotplugged volumes */
    GArray *sizes;             /* ChVolumeSize, names borrowed from the VMI; NULL: none */
    ChContainerDiskSums *sums; /* (nullable) */
    GArray *disk_sums;         /* ChVolumeChecksum, of sums, names borrowed from the VMI */
    ChChecksums checksums;     /* of both */
    char local_timestamp[sizeof("20260102-030405")];
} ChObservations;

/**
 * ch_observe:
 * @domain: (nullable): live
 * @out: cleared by ch_observations_clear() also after a failure
 *
 * Returns: false when the status cannot be computed in this pass: nothing of it may be written
 */
bool ch_observe(ChPass *pass, const ChDomain *domain, ChObservations *out, GError **error);

/**
 * ch_observe_checksums: when ch_status_wants_checksums().
 *
 * A container that has ended is none of the VM's faults: nothing is observed then. Returns: as
 * ch_observe()
 */
bool ch_observe_checksums(const ChPass *pass, ChObservations *out, GError **error);
void ch_observations_clear(ChObservations *observations);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChObservations, ch_observations_clear)

/* Puts them into @input, which borrows them. */
void ch_observations_fill(const ChObservations *observations, ChStatusInput *input);
