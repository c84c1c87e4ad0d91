/* SPDX-License-Identifier: Apache-2.0 */

/*
 * launch: starts the containers of a launcher's pod.
 *
 * Its images are bound into the launcher's container, or, without the feature gate ImageVolume,
 * each is held by a container of its own, from which the agent mounts it (spec 05 §6). Thread: a
 * worker's. Blocks: for the API server, crun, and reading images.
 */

#pragma once

#include "local/podrunner/pass.h"

/**
 * ch_launch: what is left of an earlier attempt is removed first.
 * @record: pid and start_time are set
 * @out_reason: (out): kubelet's word for the part that failed
 *
 * Returns: false: no launcher runs
 */
bool ch_launch(const ChPassEnv *env,
               const ChJson *vmi,
               ChRecord *record,
               const char **out_reason,
               GError **error);
