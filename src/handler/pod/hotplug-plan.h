/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hotplug-plan: which hotplugged volumes a VM has, of which kind, and which of them are to stay.
 *
 * Pure. What is listed borrows from the VMI's document. Thread: the owner of the document. Spec: 05
 * §7.1, §7.5, 01 §22.2 step 5, 02 §6.5.
 */

#pragma once

#include <stdbool.h>

#include "lib/json/json.h"

typedef enum {
    CH_HOTPLUG_INVALID = 0,
    CH_HOTPLUG_BLOCK, /* a device node NAME */
    CH_HOTPLUG_FILE,  /* the volume's disk.img at NAME.img */
    CH_HOTPLUG_DIR,   /* the volume itself at NAME: memory dumps, utility volumes */
    CH_HOTPLUG_N,
} ChHotplugKind;

typedef struct {
    const char *name;
    const char *source_uid; /* of the attachment pod; "": none yet */
    const char *phase;      /* of the status; "": none */
    ChHotplugKind kind;
    bool is_wanted;  /* the spec has it; else it is about to go */
    bool is_refused; /* a utility volume on a block device: nothing is done with it */
} ChHotplugVolume;

#define CH_HOTPLUG_MAX_VOLUMES 1024u

/**
 * ch_hotplug_list: the hotplugged volumes in the VMI's status, in its order.
 * @node: of this agent
 * @source_uid: (nullable): of the pod that has them all, as on a migration's target; NULL: each
 *   volume's own
 *
 * Names that cannot be a file's, and volumes beyond CH_HOTPLUG_MAX_VOLUMES, are left out.
 *
 * Returns: (transfer full): ChHotplugVolume
 */
GArray *ch_hotplug_list(const ChJson *vmi, const char *node, const char *source_uid);

/* (transfer full): what there is to tell of those that the list leaves out; NULL: it has all. */
char *ch_hotplug_left_out(const ChJson *vmi);

/* (transfer full): the name of a volume's target in the directory `hotplug-disks`. */
char *ch_hotplug_target_name(const char *volume, ChHotplugKind kind);

/* (transfer full): set of the names of all targets that the spec wants; a utility volume on a block
 * device has none. Spec: 05 §7.5 step 3 */
GHashTable *ch_hotplug_keep_set(const ChJson *vmi, const char *node);

/* Whether a start need not wait for hotplugged volumes. Spec: 01 §22.2 step 5 */
bool ch_hotplug_is_ready(const ChJson *vmi);

/* Whether the status of @volume depends on whether it is mounted, as long as the guest has no disk
 * of it. Spec: 02 §6.5 */
bool ch_hotplug_wants_look(const ChHotplugVolume *volume);

/* (transfer full): @dir/@pod_uid/volumes/kubernetes.io~empty-dir/hotplug-disks/@target_name.
 * @dir: kubelet's pods directory as the node has it */
char *ch_hotplug_path(const char *dir, const char *pod_uid, const char *target_name);

/**
 * ch_hotplug_path_split: what a path of a record is made of.
 * @dir: as above
 * @out_pod_uid, @out_target_name: (transfer full)
 *
 * Returns: false for a path that ch_hotplug_path() does not make
 */
bool ch_hotplug_path_split(const char *path,
                           const char *dir,
                           char **out_pod_uid,
                           char **out_target_name);
