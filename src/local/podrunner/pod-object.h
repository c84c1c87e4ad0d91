/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-object: the Pod that stands for a launcher in the API.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

/* Beyond what the guest is given: to the launcher, until the agent's kill has failed. */
#define CH_LAUNCHER_GRACE_PADDING_S 15
#define CH_POD_GRACE_PADDING_S      30

#define CH_POD_MAX_LABEL_BYTES 63 /* of a label's value; a host name may have one more */

#define CH_POD_HOTPLUG_CONTAINER "hotplug-disk" /* of pods for plugged volumes */

typedef enum {
    CH_POD_PHASE_WAITING, /* the container could not be made yet; reason and message say why */
    CH_POD_PHASE_STARTING,
    CH_POD_PHASE_RUNNING,
    CH_POD_PHASE_ENDED,
} ChPodPhase;

typedef struct {
    ChPodPhase phase;
    const char *reason;    /* (nullable) of WAITING: "ErrImagePull" */
    const char *message;   /* (nullable) */
    int exit_code;         /* of ENDED; negative: not known */
    const char *container; /* (nullable): its name; NULL: the launcher's */
    const char *image;     /* of the launcher */
    const char *ips;       /* (nullable): the pod's addresses, by comma; NULL: as they were */
    int64_t wall_us;       /* now */
} ChPodState;

/**
 * ch_pod_object_new: what virt-controller creates, reduced to what this machine honors.
 * @vmi: with uid and defaults
 * @name: the pod's
 *
 * Returns: (transfer full)
 */
ChJson *
ch_pod_object_new(const ChJson *vmi, const char *name, const char *node_name, const char *image);

/* Edits the pod's status as kubelet would. */
void ch_pod_object_set_state(ChJson *pod, const ChPodState *state);

/* What the guest is given to shut down, in seconds; 30 by default. */
int64_t ch_vmi_grace_seconds(const ChJson *vmi);

/* A name as the value of a label or a host name may be: cut, and without what must not end it.
 * (transfer full) */
char *ch_pod_cut_name(const char *name);
