/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-layout: where the parts of a pod lie, outside as kubelet puts them, inside as launchers
 * expect them.
 *
 * Pure. Thread: any. Spec: 03 §6.2, 05 §1.3.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#define CH_POD_USER 107 /* of launcher, libvirt and QEMU; group alike */

#define CH_POD_CONTAINER_DISKS "/var/run/kubevirt/container-disks"
#define CH_POD_KERNEL_BOOT     CH_POD_CONTAINER_DISKS "/kernel-boot"

/* One emptyDir of a launcher's pod. */
typedef struct {
    const char *name;
    const char *mount_path; /* parents come before what lies in them */
    bool is_propagated;     /* HostToContainer: the agent mounts into it */
} ChPodVolume;

extern const ChPodVolume ch_pod_volumes[];
extern const gsize ch_pod_n_volumes;

#define CH_POD_DISKS_VOLUME   "container-disks"
#define CH_POD_HOTPLUG_VOLUME "hotplug-disks"

/* All (transfer full). @state_dir: of the pod runner. */
char *ch_pod_dir(const char *state_dir, const char *pod_uid); /* what kubelet keeps of a pod */
char *ch_pod_volume_dir(const char *state_dir, const char *pod_uid, const char *volume);
/* What only this program needs of a pod: its record, crun's bundle. */
char *ch_pod_run_dir(const char *state_dir, const char *pod_uid);
