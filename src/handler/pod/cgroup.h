/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cgroup: which devices a pod may use, for one sync of its VM.
 *
 * A ChPodCgroup is what the upstream program calls a cgroup manager: made at the beginning of a
 * sync, it remembers the rules that were set through it, and is gone with the sync. The hands add,
 * each time, a rule for every device that the container runtime gave the pod, and the default ones
 * (ptmx, null, tun, vhost-net, ptys); on v1 also what the kernel has already.
 *
 * On v2 each call replaces the container's whole list: a device that is neither of those nor was
 * named through this very object is not allowed afterwards. So name all of the VM's hotplugged
 * block devices, in one call, in every sync; an unchanged list costs one look. Thread: a worker;
 * one at a time per object. Blocks: for the hands. Spec: 05 §8.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#include "handler/pod/pod.h"
#include "lib/linux/device-rules.h"

typedef struct ChPodCgroup ChPodCgroup;

/* What of the VM decides which devices must be in its pod. */
typedef struct {
    bool has_rng;   /* spec.domain.devices.rng is set: /dev/urandom */
    bool has_vsock; /* spec.domain.devices.autoattachVSOCK: /dev/vhost-vsock */
} ChPodCgroupOptions;

/**
 * ch_pod_cgroup_new:
 * @pod: borrowed, outlives it
 *
 * Sees whether the devices that the VM needs are in the pod, until they were; changes nothing.
 *
 * Returns: (transfer full): NULL with CH_ERRNO: ENOENT (a device is missing), ...
 */
ChPodCgroup *ch_pod_cgroup_new(ChPod *pod, const ChPodCgroupOptions *options, GError **error);

/* NULL is fine. */
void ch_pod_cgroup_free(ChPodCgroup *cgroup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChPodCgroup, ch_pod_cgroup_free)

/**
 * ch_pod_cgroup_set_devices: lets the pod use devices, or no more.
 * @rules: @n_rules of them, see CH_DEVICE_RULE(); they win over those of earlier calls
 *
 * A denial on v2 is that the device is in the list no more. Idempotent. What was allowed and stays
 * so is allowed at any time. On v2, rules that all allow everything and cannot be put into force
 * are only a warning (the container then has no list, or the kernel no device programs).
 *
 * Returns: false with CH_ERROR_INVALID (no rules, or more than CH_DEVICE_RULES_MAX with the earlier
 * ones), or CH_ERRNO, "cannot set cgroup resources. err: ..." or "cannot initialize new cgroup
 * manager. err: ..."
 */
bool ch_pod_cgroup_set_devices(ChPodCgroup *cgroup,
                               const ChDeviceRule *rules,
                               gsize n_rules,
                               GError **error);
