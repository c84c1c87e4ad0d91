/* SPDX-License-Identifier: Apache-2.0 */

/*
 * volume-pods: makes and removes the pods by which the agent finds hot-plugged volumes.
 *
 * What exists is on record (record.hotplugs) before it is made, and after it is gone. Thread: a
 * worker's. Blocks: for the API server, crun and the disk. Spec: 05 §1.3, §7.
 */

#pragma once

#include "local/podrunner/pass.h"

/* One VMI and its launcher's pod. */
typedef struct {
    const ChPassEnv *env;
    const ChJson *vmi;
    const ChJson *pod; /* the launcher's Pod object */
    ChRecord *record;  /* its hotplugs and uses change, and are stored */
} ChVolumePods;

/**
 * ch_volume_pods_update: one pod for each hot-pluggable volume of the spec; pods go whose volume
 * the agent let go of.
 * @out_claims: (out) (transfer full): what the VMI's volumes claim, by name
 * @out_failures: (out) (transfer full): of volumes that cannot come, by their name: {"reason",
 * "message"}; they hold up no others
 * @out_is_waiting: (out): look again soon: a pod is not ready, or a claim is missing
 *
 * Returns: false with one sentence for people; what was done is on record
 */
bool ch_volume_pods_update(const ChVolumePods *pods,
                           ChJson **out_claims,
                           ChJson **out_failures,
                           bool *out_is_waiting,
                           GError **error);

/* All of them go. Idempotent. */
bool ch_volume_pods_remove_all(const ChPassEnv *env, ChRecord *record, GError **error);
