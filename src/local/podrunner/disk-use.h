/* SPDX-License-Identifier: Apache-2.0 */

/*
 * disk-use: what of this machine a claim stands for, so that two VMs do not write to it.
 *
 * Thread: any. Blocks: for the disk.
 */

#pragma once

#include "local/podrunner/hotplug.h"

/* Owned members, as ChUse's. */
typedef struct {
    char *what;   /* "block 8:1", "file 2049:131": device numbers, or file system and inode; of a
                     loop device those of its file */
    char *within; /* (nullable): a partition's whole disk; the directory of a disk.img */
} ChDiskUse;

void ch_disk_use_clear(ChDiskUse *use);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChDiskUse, ch_disk_use_clear)

/**
 * ch_disk_use_read:
 *
 * Returns: false with one sentence for people: it is not there, not what the claim says, or a
 * device that this machine has mounted
 */
bool ch_disk_use_read(const ChClaim *claim, ChDiskUse *out_use, GError **error);

/* Whether the VM's disk of that volume may be had by others too: it is read-only, or shareable. */
bool ch_disk_use_is_shared(const ChJson *vmi, const char *volume);
