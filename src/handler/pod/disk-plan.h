/* SPDX-License-Identifier: Apache-2.0 */

/*
 * disk-plan: which container disks and kernel files a VMI has, and the paths that its record names
 * them by.
 *
 * Pure. What is listed borrows from the VMI's document. Spec: 05 §1.3, §6.1, §6.2, §6.6.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#include "handler/hands/protocol.h"
#include "lib/json/json.h"

typedef struct {
    ChHandsMount mount; /* CH_HANDS_MOUNT_DISK or CH_HANDS_MOUNT_BOOT */
    unsigned index;     /* of the volume in spec.volumes */
    const char *name;   /* of the volume; CH_DISK_PLAN_KERNEL, CH_DISK_PLAN_INITRD */
    const char *path;   /* in the image; "": the only file in /disk */
} ChDiskPlanItem;

#define CH_DISK_PLAN_MAX    1024u
#define CH_DISK_PLAN_KERNEL "kernel" /* names of the kernel's files */
#define CH_DISK_PLAN_INITRD "initrd"

/* (transfer full): ChDiskPlanItem: the disks by volume, then kernel and initrd. */
GArray *ch_disk_plan_new(const ChJson *vmi);

/* Whether the spec boots a kernel of a container. @vmi: (nullable) */
bool ch_disk_plan_has_kernel(const ChJson *vmi);

/* (transfer full): @dir/POD-UID/volumes/kubernetes.io~empty-dir/container-disks/disk_INDEX.img or
 * kernel-boot; with `.sock` for the socket. */
char *ch_disk_plan_target(const char *dir, const char *pod_uid, ChHandsMount mount, unsigned index);
char *ch_disk_plan_socket(const char *dir, const char *pod_uid, ChHandsMount mount, unsigned index);

/**
 * ch_disk_plan_parse_target: what ch_disk_plan_target() printed.
 * @out_pod_uid: (transfer full)
 *
 * Returns: false for any other path
 */
bool ch_disk_plan_parse_target(const char *path,
                               const char *dir,
                               char **out_pod_uid,
                               ChHandsMount *out_mount,
                               unsigned *out_index);
