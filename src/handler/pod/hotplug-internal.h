/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hotplug-internal: what hotplug*.c share. Thread: as of hotplug.h.
 */

#pragma once

#include <pthread.h>
#include <sys/stat.h>

#include "handler/pod/hotplug.h"
#include "handler/pod/mount-record.h"

struct ChHotplug {
    ChHands *hands;    /* borrowed */
    char *private_dir; /* owned */
    char *pods_dir;    /* owned */
    char *node;        /* owned */

    pthread_mutex_t mutex; /* guards told; never held across I/O */
    GHashTable *told;      /* "VMI-UID/volume" -> text, both owned */
};

/* The volume is mounted: what goes wrong with it later is news. */
void ch_hotplug_forget_volume(const ChHotplug *hotplug, const char *uid, const char *volume);

/* Finds the launcher's pod, once in a pass: the only active one that has the directory here.
 * Returns: false when it cannot be said; else pass->pod_uid and pass->is_several are set */
bool ch_hotplug_find_pod(ChHotplugPass *pass, GError **error);

/* --- hotplug-ask.c: what the hands are asked; false with CH_ERRNO and the like --- */

/* Whether the pod has the directory `hotplug-disks` on this node. */
bool
ch_hotplug_ask_dir(const ChHotplug *hotplug, const char *pod_uid, bool *out_exists, GError **error);

/* Whether something serves volumes from this pod; why not is CH_ERRNO. */
bool ch_hotplug_ask_source(const ChHotplug *hotplug, const char *source_uid, GError **error);

/* What the name of a block volume, or another one's, leads to, and the device to be had from
 * @source_uid (nullable). */
bool ch_hotplug_ask_node(const ChHotplug *hotplug,
                         const char *pod_uid,
                         const char *target_name,
                         const char *source_uid,
                         ChHandsReply *out_reply,
                         GError **error);

/* Makes the node, or another one where its numbers are not the source's; reply.target is it. */
bool ch_hotplug_make_node(const ChHotplug *hotplug,
                          const char *pod_uid,
                          const char *volume,
                          const char *source_uid,
                          ChHandsReply *out_reply,
                          GError **error);
bool ch_hotplug_remove_node(const ChHotplug *hotplug,
                            const char *pod_uid,
                            const char *target_name,
                            GError **error);

/* What is at the target of a volume that is no block volume. */
bool ch_hotplug_ask_target(const ChHotplug *hotplug,
                           const char *pod_uid,
                           const ChHotplugVolume *volume,
                           ChHandsReply *out_reply,
                           GError **error);

/* Mounts it there, unless something is, and gives it to 107:107. @out_reply: also after a failure
 * of the hands: which step */
bool ch_hotplug_ask_mount(const ChHotplug *hotplug,
                          const char *pod_uid,
                          const ChHotplugVolume *volume,
                          ChHandsReply *out_reply,
                          GError **error);

/* Takes away what is mounted at the target, and the target. */
bool ch_hotplug_ask_unmount(const ChHotplug *hotplug,
                            const char *pod_uid,
                            const char *target_name,
                            GError **error);

/* Takes away everything in the pod's directory. */
bool ch_hotplug_sweep(const ChHotplug *hotplug, const char *pod_uid, GError **error);
