/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cloud-init: the files that a guest's cloud-init reads from its disk. Pure. Thread: any.
 * Spec 03 §13.4, §13.6.
 */

#pragma once

#include "local/launcher/volume.h"

typedef struct {
    const char *path; /* below the image's root; static */
    char *text;       /* owned */
    gsize length;
} ChCloudInitFile;

/**
 * ch_cloud_init_files:
 * @volume: of one of the two cloud-init kinds
 *
 * Returns: (transfer full) (element-type ChCloudInitFile): NULL with CH_ERROR_INVALID
 */
GArray *ch_cloud_init_files(const ChVolume *volume, const ChJson *vmi, GError **error);

/* The label by which the guest finds the image; static */
const char *ch_cloud_init_label(ChVolumeKind kind);
/* (transfer full): spec.hostname, else the VMI's name up to its first dot; 63 characters at most */
char *ch_cloud_init_hostname(const ChJson *vmi);
