/* SPDX-License-Identifier: Apache-2.0 */

/*
 * volume: which kinds of volume this launcher can give a guest, and where each one's file lies.
 *
 * Pure. Thread: any. Spec 03 §13.4.
 */

#pragma once

#include "lib/json/json.h"

typedef enum {
    CH_VOLUME_INVALID = 0,
    CH_VOLUME_CONTAINER_DISK,
    CH_VOLUME_EMPTY_DISK,
    CH_VOLUME_CLOUD_INIT_NO_CLOUD,
    CH_VOLUME_CLOUD_INIT_CONFIG_DRIVE,
    CH_VOLUME_DOWNWARD_METRICS,
    CH_VOLUME_PLUGGED_FILE,  /* a claim that the agent mounted, */
    CH_VOLUME_PLUGGED_BLOCK, /* or whose device node it made */
    CH_VOLUME_N,
} ChVolumeKind;

/* Directories as this process sees them; all borrowed. */
typedef struct {
    const char *private_dir;        /* "/var/run/kubevirt-private" */
    const char *ephemeral_dir;      /* "/var/run/kubevirt-ephemeral-disks" */
    const char *container_disk_dir; /* "/var/run/kubevirt/container-disks" */
    const char *empty_disk_dir;     /* "/var/run/libvirt/empty-disks" */
    const char *hotplug_dir;        /* "/var/run/kubevirt/hotplug-disks" */
} ChPaths;

typedef struct {
    ChVolumeKind kind;
    const char *name;     /* borrowed from the VMI */
    const ChJson *source; /* borrowed: the value below the source's key */
    gsize index;          /* in spec.volumes */
} ChVolume;

/**
 * ch_volume_find:
 * @vmi: the whole object
 * @name: of the volume
 *
 * Returns: false with CH_ERROR_NOT_FOUND "no matching volume with name ... found", or
 * CH_ERROR_INVALID when its source is of no kind known here
 */
bool ch_volume_find(const ChJson *vmi, const char *name, ChVolume *out_volume, GError **error);

/**
 * ch_volume_is_there: false for one that is plugged in while the guest runs, as long as the agent
 * has not brought it (spec 03 §13.4: which disks are emitted).
 */
bool ch_volume_is_there(const ChJson *vmi, const char *name);

/* (transfer full): the file that QEMU opens */
char *ch_volume_path(const ChVolume *volume, const ChPaths *paths, const ChJson *vmi);
const char *ch_volume_format(ChVolumeKind kind); /* "qcow2", "raw"; static */
/* True: the disk may give freed blocks back whatever the disk's own device is. */
bool ch_volume_discards(ChVolumeKind kind);

/* (transfer full): the image that the pod runner put there for a containerDisk */
char *ch_volume_container_disk_path(const ChPaths *paths, gsize index);
/* (transfer full): kernel or initrd of kernelBoot; only the file's own name of @artifact counts */
char *ch_volume_kernel_path(const ChPaths *paths, const char *artifact);
/* False for what would leave the directory it is put into: "", ".", "..", anything with a slash,
 * anything longer than a file's name can be. */
bool ch_volume_name_is_safe(const char *name);
