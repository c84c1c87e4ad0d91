/* SPDX-License-Identifier: Apache-2.0 */

/*
 * controller-internal: what controller*.c share.
 */

#pragma once

#include <pthread.h>

#include "handler/reconcile/controller.h"
#include "handler/reconcile/final-phases.h"
#include "handler/reconcile/last-lines.h"
#include "handler/reconcile/retry-manager.h"
#include "handler/reconcile/sriov-plug.h"
#include "handler/reconcile/stages.h"
#include "lib/kube/expectations.h"
#include "lib/kube/workqueue.h"

struct ChController {
    ChReconcileEnv env;
    ChWorkqueue *queue;
    ChTimer *delay_timer; /* the next delayed key */
    ChTimer *sweep_timer;
    GQueue writing; /* ChPass, owned: they ran, and wait for the API server */
    ChFinalPhases *final_phases;
    bool is_started;

    /* Told by passes as well: `lock` guards what is below, and is never held across I/O. */
    pthread_mutex_t lock;
    ChExpectations *expectations;
    ChRetryManager *io_retries;
    ChSriovPlugs *sriov_plugs;
    GHashTable *stopping; /* VMI UID (owned) -> monotonic time, owned */
    GHashTable *synced;   /* the same */
    ChStages *stages;
    ChLastLines *last_lines;
};

/* Told once; see stages.h. Thread: any. */
void
ch_controller_log_stage(ChController *controller, const char *key, const char *uid, ChStage stage);
