/* SPDX-License-Identifier: Apache-2.0 */

/*
 * plan: what a VMI and its pod need next.
 *
 * One step at a time; the caller does it, looks at the facts again, and asks again. Plays scheduler
 * and virt-controller (what is written to the VMI) and kubelet (what happens to the container).
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    CH_STEP_INVALID = 0,
    CH_STEP_REST,       /* nothing to do until something changes */
    CH_STEP_ACCEPT,     /* defaults, finalizer, phase Pending */
    CH_STEP_CREATE_POD, /* the Pod object, phase Scheduling */
    CH_STEP_START,      /* images, root, container */
    CH_STEP_CONNECT,    /* the pod's network */
    CH_STEP_HAND_OVER,  /* phase Scheduled, the node's label */
    CH_STEP_SYNC_READY, /* the Ready condition, if it differs */
    CH_STEP_FAIL,       /* phase Failed, before any agent knew the VMI */
    CH_STEP_DELETE_POD, /* mark the Pod object as being deleted */
    CH_STEP_STOP,       /* SIGTERM, and SIGKILL when the grace period is over */
    CH_STEP_TIDY,       /* the container is gone: its directories go, the Pod object shows it */
    CH_STEP_FORGET_POD, /* the Pod object goes */
    CH_STEP_RELEASE,    /* the finalizer goes, and with it the VMI */
    CH_STEP_N,
} ChStep;

typedef enum {
    CH_VMI_GONE = 0, /* or one of another uid has its name */
    CH_VMI_NEW,      /* no phase */
    CH_VMI_PENDING,
    CH_VMI_SCHEDULING,
    CH_VMI_OWNED, /* by the agent: Scheduled, Running, Unknown, ... */
    CH_VMI_FINAL, /* Succeeded, Failed */
} ChVmiPhase;

typedef enum {
    CH_CONTAINER_NONE = 0, /* not made yet, or tidied up */
    CH_CONTAINER_STARTING, /* runs, but does not serve yet */
    CH_CONTAINER_READY,
    CH_CONTAINER_ENDED,
} ChContainerPhase;

typedef struct {
    ChVmiPhase vmi;
    bool is_deleting; /* the VMI */
    bool has_finalizer;
    bool has_pod;         /* the Pod object exists */
    bool is_pod_deleting; /* somebody deleted it */
    bool is_tidied;       /* the pod had a container, of which nothing is left */
    bool needs_network;   /* the pod shall have one, and has not yet */
    ChContainerPhase container;
} ChPlanFacts;

ChStep ch_plan(const ChPlanFacts *facts);
const char *ch_step_text(ChStep step);          /* for the log; static */
ChVmiPhase ch_plan_vmi_phase(const char *text); /* of status.phase; NULL is fine */
