/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cgroup-step: what is done to a pod's cgroup, and to the limits and threads of its processes, step
 * by step, in a child.
 *
 * Those that take the pod's root hold the launcher by its number anew. Each returns false with the
 * reply filled in when it fails. Spec: 05 §8.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/child.h"

/* DEVICES_SET; @bytes: rules, from the brain: each is looked at. */
bool
ch_cgroup_step_set_devices(const ChStep *step, const void *bytes, int root_fd, ChHandsReply *reply);

/* MEMLOCK_SET, HOUSE_KEEP, REALTIME_SET; @pidfd: the launcher */
bool
ch_cgroup_step_set_memlock(const ChStep *step, const void *bytes, int pidfd, ChHandsReply *reply);
bool
ch_cgroup_step_keep_house(const ChStep *step, const void *bytes, int pidfd, ChHandsReply *reply);
bool
ch_cgroup_step_set_realtime(const ChStep *step, const void *bytes, int pidfd, ChHandsReply *reply);
