/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vmi-images: which files of which images a VMI's pod needs, and where its launcher looks for them.
 *
 * Pure. Thread: any. Spec: 05 §1.3, §6.1, §6.3.
 */

#pragma once

#include "lib/json/json.h"

typedef struct {
    char *what; /* for messages: "containerDisk 'root'", "kernelBoot" */
    char *image;
    char *wanted; /* as ch_image_find_file() takes it */
    char *target; /* in the launcher's container */
    char *holder; /* "disk_<i>", "kernel-boot": which container holds it when the agent mounts */
} ChImageNeed;

/* (transfer full) (element-type ChImageNeed): NULL with CH_ERROR_INVALID: a path that is none */
GArray *ch_vmi_images(const ChJson *vmi, GError **error);

/**
 * ch_image_held_path: where the holder has what was wanted.
 * @file: as ch_image_find_file() found it
 *
 * Returns: (transfer full)
 */
char *ch_image_held_path(const ChImageNeed *need, const char *file);

/* Whether the launcher has its images as volumes of the pod (the feature gate ImageVolume, on by
 * default); else the agent mounts them. */
bool ch_images_are_volumes(const ChJson *kubevirt);
