/* SPDX-License-Identifier: Apache-2.0 */

/*
 * container-disks-internal: what container-disks*.c share. Thread: as of container-disks.h.
 */

#pragma once

#include "handler/pod/container-disks.h"
#include "handler/pod/disk-plan.h"
#include "handler/pod/hands-request.h"

/* A VMI's disks and pods. */
typedef struct {
    const ChContainerDiskEnv *env;
    const ChJson *vmi;
    const char *namespace_, *name, *uid; /* borrowed from the VMI */
    GArray *items;                       /* owned; ChDiskPlanItem */
    GPtrArray *pods;                     /* owned; UIDs, borrowed from the VMI */
    const char *target_uid; /* the pod that has the directory; NULL: none, or several */
    guint n_dirs;           /* pods that have one */
} ChDiskSetup;

/* @vmi: borrowed */
void ch_disk_setup_init(ChDiskSetup *setup, const ChContainerDiskEnv *env, const ChJson *vmi);
void ch_disk_setup_clear(ChDiskSetup *setup);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChDiskSetup, ch_disk_setup_clear)

typedef struct {
    const char *uid; /* of the pod that has the socket; NULL: none */
    bool is_up;      /* and somebody listens on it */
} ChDiskSource;

/* In the first pod that has the socket. Also counts the pods that have the directory. */
bool ch_disk_setup_find_source(ChDiskSetup *setup,
                               ChHandsMount mount,
                               unsigned index,
                               ChDiskSource *out_source,
                               GError **error);

/* About @item; its path follows the request. Returns: false when there is no such path */
bool ch_disk_item_request(ChHandsRequest *request,
                          ChHandsOp op,
                          const char *pod_uid,
                          const ChDiskPlanItem *item,
                          GError **error);
