/* SPDX-License-Identifier: Apache-2.0 */

/*
 * host-disk: a claim on a filesystem volume is a disk image in it, to a launcher: a host disk.
 *
 * Pure. Thread: any. Spec: 05 §9.
 */

#pragma once

#include <stdbool.h>

#include "lib/json/json.h"

/**
 * ch_host_disk_replace_claims: the VMI as its launcher gets it.
 * @out_vmi: (out) (nullable) (transfer full): a copy with host disks in the place of claims and
 * data volumes whose volume is a file system; NULL: there are none
 *
 * Hotplugged volumes, those that virtiofs serves, and those of which nothing is known stay.
 *
 * Returns: false with CH_ERROR_INVALID: an image cannot have the claim's size
 */
bool ch_host_disk_replace_claims(const ChJson *vmi, ChJson **out_vmi, GError **error);

/* A host disk, for ch_pod_prepare_disk(). Strings are borrowed from the VMI. */
typedef struct {
    const char *volume;
    const char *file; /* of the image, in the volume's directory; "" when that is no name */
    bool makes_image; /* when there is none */
    int64_t capacity; /* bytes; 0: no size */
} ChHostDisk;

/* Whether this volume is a host disk with which there is something to do. */
bool ch_host_disk_of(const ChJson *volume, ChHostDisk *out_disk);
