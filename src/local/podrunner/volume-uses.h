/* SPDX-License-Identifier: Apache-2.0 */

/*
 * volume-uses: a VM has its plugged disks for itself, unless all who have one share it.
 *
 * Thread: a worker's. Blocks: for the disk, and where said for the API server.
 */

#pragma once

#include "local/podrunner/volume-pods.h"

/* How the status calls the two ways in which a volume cannot come. */
#define CH_VOLUME_IN_USE "VolumeInUse"
#define CH_VOLUME_FAILED "FailedAttachVolume"

/**
 * ch_volume_use_take: idempotent; the record is the caller's to store.
 *
 * Returns: false with CH_ERROR_EXISTS (another volume has it, or this machine) or another error,
 * and one sentence for people
 */
bool ch_volume_use_take(const ChVolumePods *pods,
                        const ChJson *claim,
                        const char *volume,
                        GError **error);

/* Whether the VM has a disk for this volume already. */
bool ch_volume_use_is_taken(const ChVolumePods *pods, const char *volume);

/* Those of volumes that are not wanted anymore and have no pod. Returns: whether any went */
bool ch_volume_uses_trim(const ChVolumePods *pods, const ChJson *attachments);

/* All of them: the VM has ended. */
void ch_volume_uses_forget(const ChPassEnv *env, ChRecord *record);

/**
 * ch_volume_uses_reserve: before the VM starts: takes all that it will plug in, as far as it is
 * there by now, and gives back what it wants no more. Asks the API server.
 *
 * Returns: false with CH_ERROR_EXISTS: somebody else has one of them; the VM has none then
 */
bool ch_volume_uses_reserve(const ChVolumePods *pods, GError **error);
