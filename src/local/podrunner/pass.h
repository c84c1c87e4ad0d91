/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pass: one look at a VMI and its pod, and all that can be done about them now.
 *
 * Asks plan.h for a step, does it, and asks again until there is nothing more to do but wait. Works
 * on a snapshot and gives a result back. Thread: a worker's. Blocks: for the API server, crun, CNI
 * plugins, and reading images.
 */

#pragma once

#include "lib/kube/object.h"
#include "lib/kube/recorder.h"
#include "local/podrunner/container.h"
#include "local/podrunner/image.h"
#include "local/podrunner/plan.h"
#include "local/podrunner/pod-network.h"
#include "local/podrunner/uses.h"

/* Outlives every pass; immutable, but for the table of uses. */
typedef struct {
    ChKubeClient *kube;
    ChRecorder *recorder;
    const char *node_name;
    const char *architecture; /* Go's name */
    const char *version;      /* of the launcher, as an image's name */
    ChImageStore images;
    ChContainerSpec container;
    ChPodNetworkEnv network;
    ChUses *uses;
} ChPassEnv;

/* The snapshot; owned. */
typedef struct {
    char *namespace_;
    char *name;
    char *uid;        /* of the VMI: a namesake is another VMI */
    ChObject *vmi;    /* (nullable) */
    ChObject *pod;    /* (nullable) */
    ChRecord *record; /* (nullable) */
    ChContainerPhase container;
    int exit_code; /* of an ended container */
    bool is_poll;  /* for what is waited for; what failed has its own time (retry.h) */
} ChPassInput;

void ch_pass_input_free(ChPassInput *input);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChPassInput, ch_pass_input_free)

typedef enum {
    CH_PASS_DONE,
    CH_PASS_CONFLICT, /* somebody else wrote: again as soon as the cache has it */
    CH_PASS_FAILED,   /* again later, with back-off; told in log, condition and event */
} ChPassOutcome;

typedef struct {
    ChPassOutcome outcome;
    ChRecord *record; /* owned, (nullable): as it is now */
    ChObject *pod;    /* owned, (nullable): as it was written, for as long as no watch brings it */
    int64_t delay_us; /* look again then; negative: not needed */
} ChPassResult;

void ch_pass_run(const ChPassEnv *env, const ChPassInput *input, ChPassResult *out_result);
