/* SPDX-License-Identifier: Apache-2.0 */

/*
 * volume-prepare: makes the files that a domain's disks lie in.
 *
 * Every step is idempotent: what exists is kept, what is made appears under its name only when it
 * is complete. Thread: the domain's worker. Blocks: for the helpers' time. Spec 03 §8.3, §13.4.
 */

#pragma once

#include "local/launcher/domain-xml.h"

/**
 * ch_volume_prepare_all: for each volume that a disk of @vmi uses, and for kernelBoot.
 *
 * Returns: (transfer full) (element-type ChDiskFacts): what the files turned out to be; NULL when
 * one cannot be made: the message says which, and why
 */
GArray *ch_volume_prepare_all(const ChJson *vmi, const ChPaths *paths, GError **error);

/* Whether a volume that the agent plugged in can be opened as QEMU will. Blocks: for the disk. */
bool ch_volume_is_usable(ChVolumeKind kind, const char *path);

/**
 * ch_volume_examine_all: the facts of disks that are there, for a domain that runs: nothing is
 * made.
 *
 * Returns: as ch_volume_prepare_all()
 */
GArray *ch_volume_examine_all(const ChJson *vmi, const ChPaths *paths, GError **error);
