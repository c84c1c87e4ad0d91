/* SPDX-License-Identifier: Apache-2.0 */

/*
 * secondary-plan: secondary networks that come and go while the VM exists: what is wanted, what may
 * go, and what the VMI says of them, as virt-controller keeps it.
 *
 * Theory of operation: an attachment (multus.h) is on record with "pending" while its link is being
 * made in the pod. An interface that shall go has `state: absent`; the launcher takes it from the
 * guest, then the agent removes the links it made, and only then CNI is told and interface and
 * network leave the VMI. Pure. Thread: any. Spec: 04 §13; 02 §7.
 */

#pragma once

#include "lib/json/json.h"

#define CH_SECONDARY_PENDING "pending"

/* Whether CNI is done with the attachment, so that others may be told of it. */
bool ch_secondary_is_made(const ChJson *attachment);

/* (transfer full): those that are made. */
ChJson *ch_secondary_made(const ChJson *attachments);

/* Its plugins did not take it back once more. Returns: how often by now */
int64_t ch_secondary_count_failure(ChJson *attachment);

/* Whether the VMI has an interface on the network of this name that is to stay. */
bool ch_secondary_is_wanted(const ChJson *vmi, const char *network);

/* Whether the guest has the interface, as far as the agent knows. */
bool ch_secondary_is_in_guest(const ChJson *vmi, const char *network);

/* What the pod has of an attachment. */
typedef struct {
    bool has_pod_link; /* of that name: what CNI made, or the agent's stand-in */
    bool has_links;    /* that only the agent makes */
    bool has_renamed;  /* what CNI made, under the name that the agent gave it */
} ChSecondaryLinks;

/**
 * ch_secondary_look:
 * @devices: as /proc/PID/net/dev lists them
 */
ChSecondaryLinks ch_secondary_look(const ChJson *attachment, const char *devices);

/**
 * ch_secondary_set_spec: an interface that somebody took out of the spec is put back as absent, as
 * long as its attachment is there; absent ones without an attachment go, with their networks.
 *
 * Returns: whether something changed
 */
bool ch_secondary_set_spec(ChJson *vmi, const ChJson *attachments);

/**
 * ch_secondary_set_status: status.interfaces tells which networks the pod has. What the agent wrote
 * of them stays.
 *
 * Returns: whether something changed
 */
bool ch_secondary_set_status(ChJson *vmi, const ChJson *attachments);
