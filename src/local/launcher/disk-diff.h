/* SPDX-License-Identifier: Apache-2.0 */

/*
 * disk-diff: which disks a running domain is to be given, and which it is to lose.
 *
 * Only disks whose file lies in the directory of plugged volumes come and go. They are told from
 * one another by their aliases, which bear the volumes' names. Pure. Thread: any. Spec 03 §8.7.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    char *xml;  /* owned: the whole element, as libvirt takes it */
    char *path; /* owned: its file or device */
    bool is_block;
} ChDiskChange;

typedef struct {
    GArray *attach; /* ChDiskChange */
    GArray *detach;
} ChDiskDiff;

void ch_disk_diff_clear(ChDiskDiff *diff);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChDiskDiff, ch_disk_diff_clear)

/**
 * ch_disk_diff:
 * @live: the domain's document
 * @wanted: <devices> with the disks that the VMI wants now
 * @hotplug_dir: where plugged volumes lie
 *
 * A disk whose target another one still has is left for the next time.
 *
 * Returns: false with CH_ERROR_INVALID: a document is none
 */
bool ch_disk_diff(const char *live,
                  const char *wanted,
                  const char *hotplug_dir,
                  ChDiskDiff *out_diff,
                  GError **error);
