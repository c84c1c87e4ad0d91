/* SPDX-License-Identifier: Apache-2.0 */

/*
 * handover: the part of a VMI's status that the cluster's controller writes, up to the moment when
 * the agent takes over, and the finalizer at the end.
 *
 * Pure: the functions edit a document; time is a parameter. Thread: any. Spec: 01 §29.1 step 0,
 * golden/vmi-plain.json.
 */

#pragma once

#include "lib/json/json.h"

typedef struct {
    const char *node_name;
    const char *pod_uid;
    const char *launcher_version; /* status.launcherContainerImageVersion */
} ChHandover;

/* What is known of a VMI's pod, for its Ready condition. */
typedef enum {
    CH_POD_SEEN_NONE,
    CH_POD_SEEN_STARTING,
    CH_POD_SEEN_READY,
    CH_POD_SEEN_ENDING, /* or ended */
} ChPodSeen;

/* @phase: "Pending", "Scheduling", "Failed"; its timestamp is added once. */
void ch_vmi_set_phase(ChJson *vmi, const char *phase, int64_t wall_us);

/* Phase Scheduled with everything by which the agent of @handover->node_name recognizes its VMI. */
void ch_vmi_hand_over(ChJson *vmi, const ChHandover *handover, int64_t wall_us);

/* Returns: whether the condition changed */
bool ch_vmi_set_ready(ChJson *vmi, ChPodSeen seen, int64_t wall_us);

/* Synchronized=False. Returns: whether the condition changed */
bool ch_vmi_set_failure(ChJson *vmi, const char *reason, const char *message, int64_t wall_us);
void ch_vmi_clear_failure(ChJson *vmi);

void ch_vmi_remove_finalizer(ChJson *vmi);
bool ch_vmi_has_finalizer(const ChJson *vmi);

/* "Guaranteed" or "Burstable": a launcher's pod always requests something. */
const char *ch_vmi_qos_class(const ChJson *vmi);
