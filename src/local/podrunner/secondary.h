/* SPDX-License-Identifier: Apache-2.0 */

/*
 * secondary: a pod's secondary networks: what their definitions say, what the pod tells of them,
 * and those that come and go while the VM exists.
 *
 * What is plugged in is on record (record.attachments) before a plugin is asked, and until the last
 * one has answered DEL. Thread: a worker's. Blocks: for the API server, plugins and the disk. Spec:
 * 04 §13.
 */

#pragma once

#include "local/podrunner/pass.h"

/**
 * ch_secondary_define: fills in the plugins of each attachment, as its definition has them.
 *
 * Returns: false with one sentence for people
 */
bool ch_secondary_define(const ChPassEnv *env, ChJson *attachments, GError **error);

/**
 * ch_secondary_annotate: as multus tells what the pod was given. A pod that never asked for
 * anything stays as it is.
 * @pod: (inout): its object, as stored
 */
bool
ch_secondary_annotate(const ChPassEnv *env, const ChRecord *record, ChJson **pod, GError **error);

/* One VMI and its pod, which runs. */
typedef struct {
    const ChPassEnv *env;
    const ChJson *vmi;
    ChRecord *record;      /* its attachments change, and are stored */
    const ChJson *resting; /* troubles (troubles.h): networks that are left alone for now */
} ChSecondary;

/**
 * ch_secondary_update: the pod gets a link for each secondary network of the spec, and loses those
 * whose interface is absent once guest and agent have let go of them. A network that fails does not
 * keep others from coming and going; its definition is asked for anew at each attempt.
 * @out_is_waiting: (out): look again soon: the agent has not let go of one
 *
 * Returns: (transfer full): the troubles (troubles.h); often empty
 */
ChJson *ch_secondary_update(const ChSecondary *secondary, bool *out_is_waiting);
