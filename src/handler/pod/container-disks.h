/* SPDX-License-Identifier: Apache-2.0 */

/*
 * container-disks: the images of container disks, and the kernel of a container, in a VM's pod.
 *
 * Each is served by a container of the pod, which says no more than that it is there: by a socket
 * that it listens on. The hands mount its file into the pod. What was mounted is on record before
 * it is, so that whoever cleans up finds it (mount-record.h); an agent that was cut off does the
 * rest in the next pass. Thread: any but the loop's; one at a time for a VMI. Blocks: for the hands
 * and the disk, about 0.5 ms a disk. Spec: 05 §6.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "handler/hands/client.h"
#include "lib/json/json.h"

/* All borrowed. */
typedef struct {
    ChHands *hands;
    const char *private_dir;
    const char *pods_dir; /* kubelet's, as the agent's records name it: --kubelet-pods-dir */
} ChContainerDiskEnv;

typedef enum {
    CH_CONTAINER_DISKS_OK = 0,
    CH_CONTAINER_DISKS_WAIT, /* a container is not up yet */
    CH_CONTAINER_DISKS_FAILED,
} ChContainerDisksOutcome;

/**
 * ch_container_disks_prepare: mounts what @vmi has, if all containers are up.
 * @vmi: with status.activePods
 * @image_volume: the feature gate: then kubelet mounts the images of a pod that is new enough, and
 *   nothing is to be done
 * @waited_us: for how long the launcher has been there; a container may take a minute
 * @error: set with CH_CONTAINER_DISKS_FAILED
 *
 * Idempotent. Nothing of it is logged but what is mounted.
 */
ChContainerDisksOutcome ch_container_disks_prepare(const ChContainerDiskEnv *env,
                                                   const ChJson *vmi,
                                                   bool image_volume,
                                                   int64_t waited_us,
                                                   GError **error);

typedef struct {
    const char *volume; /* borrowed from the VMI */
    uint32_t crc32;
} ChContainerDiskSum;

typedef struct {
    GArray *disks; /* owned; ChContainerDiskSum */
    bool has_kernel, has_initrd;
    uint32_t kernel, initrd;
} ChContainerDiskSums;

void ch_container_disk_sums_free(ChContainerDiskSums *sums);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChContainerDiskSums, ch_container_disk_sums_free)

/**
 * ch_container_disks_sum: the checksums of what @vmi has. Spec: 05 §6.8
 * @out_is_gone: whether it failed because a container has ended
 *
 * Blocks: for as long as it takes to read all of it.
 *
 * Returns: (transfer full) (nullable)
 */
ChContainerDiskSums *ch_container_disks_sum(const ChContainerDiskEnv *env,
                                            const ChJson *vmi,
                                            bool *out_is_gone,
                                            GError **error);

/**
 * ch_container_disks_clean_up: unmounts what is on record for VMI @uid, and removes the record.
 * @vmi: (nullable): as the API has it; NULL: it is gone
 *
 * What is not there any more is done. Returns: false with the first failure; the record stays then
 */
bool ch_container_disks_clean_up(const ChContainerDiskEnv *env,
                                 const char *uid,
                                 const ChJson *vmi,
                                 GError **error);
