/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hotplug: which volumes a VM is given while it exists, and what its status says of its volumes,
 * as virt-controller keeps it.
 *
 * An attachment is a JSON object, as kept in the pod's record: {"volume", "claim", "podName",
 * "podUID", "pid", "startTime", "ready"}: one pod a volume. Pure. Thread: any. Spec: 02 §6.5,
 * 05 §7.
 */

#pragma once

#include "lib/json/json.h"

/* Names, on this machine, what a claim stands for. */
#define CH_CLAIM_PATH_ANNOTATION "chandler.dev/path"

#define CH_HOTPLUG_MAX_VOLUMES 64

/* Whether a volume of spec.volumes is a claim that comes and goes. */
bool ch_hotplug_is_hotpluggable(const ChJson *volume);

/* Borrowed (nullable): the attachment of the volume of that name. */
ChJson *ch_hotplug_find(const ChJson *attachments, const char *volume);

/* Whether spec.volumes has a hot-pluggable volume of that name. */
bool ch_hotplug_is_wanted(const ChJson *vmi, const char *volume);

/* Whether the agent let go of it, so that its pod may go: @volume is not wanted anymore. */
bool ch_hotplug_may_go(const ChJson *vmi, const char *volume);

/**
 * ch_hotplug_set_status: status.volumeStatus has an entry for each volume of the spec, and for each
 * that still has a pod; others go. What the agent wrote stays.
 * @claims: an object: claim name -> PersistentVolumeClaim; those that are there
 * @failures: (nullable): volume name -> {"reason", "message"}: why its pod does not come
 *
 * Returns: whether something changed
 */
bool ch_hotplug_set_status(ChJson *vmi,
                           const ChJson *attachments,
                           const ChJson *claims,
                           const ChJson *failures);

/* What a claim stands for. */
typedef struct {
    const char *path; /* absolute; borrowed */
    const char *uid;  /* of the claim; borrowed */
    bool is_block;
} ChClaim;

/* Returns: false with CH_ERROR_INVALID and one sentence for people */
bool ch_claim_read(const ChJson *claim, ChClaim *out_claim, GError **error);

/* The claim's status becomes that of one in use. Returns: whether it was another */
bool ch_claim_bind(ChJson *claim);

/**
 * ch_hotplug_pod_new: the Pod that stands for an attachment.
 * @launcher: the launcher's Pod, its owner
 *
 * Returns: (transfer full)
 */
ChJson *ch_hotplug_pod_new(const ChJson *launcher,
                           const ChJson *claim,
                           const char *name,
                           const char *volume,
                           const char *node_name,
                           const char *image);
