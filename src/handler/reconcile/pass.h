/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pass: one look at one key: decide, act and status on a worker, then one PUT. Spec 01 §17, §18.
 *
 * Internal to the reconcile room: controller.c starts it, pass.c runs it, act.c carries the
 * decision out. The PUT may wait long for the rate limiter, so it is the loop that makes it, and no
 * worker waits with its stack and trees. Thread: the worker that runs it, then the loop's.
 */

#pragma once

#include "handler/pod/cgroup.h"
#include "handler/reconcile/controller.h"
#include "handler/reconcile/decide.h"
#include "handler/reconcile/event-catalogue.h"
#include "handler/reconcile/stages.h"
#include "handler/reconcile/status.h"
#include "lib/base/log.h"

/* The PUT that follows a pass, and what to do when it is made. */
typedef struct {
    char *body; /* owned; NULL: nothing is to be written */
    ChPhase phase;
    ChEvent *phase_event; /* owned (nullable) */
    bool has_agent;
    ChKubeCall *call; /* under way; the controller's */
    char *stored;     /* owned (nullable): what is stored, for the hooks after a start */
} ChPassWrite;

typedef struct {
    /* The snapshot. */
    ChController *controller;
    const ChReconcileEnv *env;
    char *key, *namespace_, *name; /* owned */
    ChObject *object;              /* owned (nullable): the VMI as the watch has it */
    ChDomain *domain;              /* owned (nullable) */
    ChClusterConfig *config;       /* owned */
    GBytes *plugins;               /* owned (nullable): as JSON */
    bool expectations_satisfied;

    /* What the pass makes of it. */
    ChJson *document;          /* owned (nullable): the VMI */
    ChJson *launcher_document; /* owned (nullable): as its launcher gets it; NULL: the same */
    ChVmiView vmi;             /* of the document */
    char *ghost_uid;           /* owned (nullable) */
    char *ghost_socket;        /* owned (nullable): with a ghost record */
    char *found_socket;        /* owned (nullable): of the VMI's launcher, found by this pass */
    ChFacts facts;
    ChDecision decision;
    int64_t requeue_us; /* the earliest wish; 0: none */
    bool is_news;       /* how the VM is has changed, and was said in the log */

    /* The result. */
    ChPassWrite write;
    GError *error; /* owned (nullable): why the key goes back with back-off */
} ChPass;

void ch_pass_run(ChPass *pass);
void ch_pass_free(ChPass *pass);

/* pass-write.c */
/* Starts pass->write, which has a body. The answer goes to ch_pass_written(). Thread: the loop's.
 */
void ch_pass_start_write(ChPass *pass, ChKubeDone done);
/* After a write. @answer: the whole body; @error: NULL with one. Returns: whether hooks are to be
 * run now: ch_pass_run_post_start() on a worker. Thread: the loop's */
bool ch_pass_written(ChPass *pass, GBytes *answer, const GError *error);
void ch_pass_run_post_start(ChPass *pass);

/* Wishes another pass after @delay_us; the earliest wish wins; 0 is no wish. */
void ch_pass_requeue_after(ChPass *pass, int64_t delay_us);
/* Records an event of the VMI. @event: (transfer full) */
void ch_pass_record(const ChPass *pass, ChEvent *event);
/* Whom the launcher of this pass works for. @pods: (out) (transfer full): keeps what the result
 * borrows */
ChLauncherVmi ch_pass_launcher_vmi(const ChPass *pass, const char *uid, GArray **out_pods);
/* The VMI as its launcher gets it. Borrowed; NULL: it is gone. */
const ChJson *ch_pass_launcher_document(const ChPass *pass);
ChLogContext ch_pass_log_context(const ChPass *pass);
void ch_pass_log_failure(const ChPass *pass); /* that the key goes back, if it does */

/* How the action of a pass ended. */
typedef struct {
    ChSyncOutcome outcome;
    GError *error; /* owned; NULL with CH_SYNC_OK */
} ChActResult;

static inline ChActResult
ch_act_result(bool ok, GError *error /* (transfer full) */)
{
    return (ChActResult){ok ? CH_SYNC_OK : CH_SYNC_FAILED, error};
}

/* act.c: (transfer full): what goes out as the VMI. One that is gone from the API is described by
 * its identity: that is all a launcher needs. */
char *ch_act_vmi_json(const ChPass *pass, const char *uid);
/* act-sync.c: starts or updates the VM. Spec 01 §22 */
ChActResult ch_act_sync(ChPass *pass);
/* act-limits.c: (transfer full): the pod's device rules, for one sync. Spec 05 §8.2 */
ChPodCgroup *ch_act_open_cgroup(const ChPass *pass, ChPod *pod, GError **error);
/* act-limits.c: locked memory. Spec 05 §13.1 */
bool ch_act_adjust_resources(const ChPass *pass, ChPod *pod, GError **error);
/* act-limits.c: after a sync. Spec 05 §13.3 */
bool ch_act_keep_house(const ChPass *pass, ChPod *pod, GError **error);
/* act.c: carries out pass->decision, which fetches no fact. */
ChActResult ch_act(ChPass *pass);
/* act.c: runs the hooks of VMI @uid as the pass has it. Thread: the pass's worker. */
bool ch_act_run_hooks(const ChPass *pass, ChHook hook, const char *uid, GError **error);
/* act.c: the final clean-up of VMI @uid of this key. Spec 01 §21.2 */
bool ch_act_clean_up(ChPass *pass, const char *uid, GError **error);

/* controller-memory.c: what a pass tells while it runs. Thread: any. */
/* A write of the VMI begins: no pass before its watch event. */
void ch_controller_expect_write(ChController *controller, const char *key);
void ch_controller_drop_expectations(ChController *controller, const char *key);
int64_t ch_controller_ask_io_retry(ChController *controller, const char *uid);
/* See sriov-plug.h. Both tell when the launcher of VMI @uid may be told (again). */
int64_t ch_controller_ask_sriov_plug(ChController *controller, const char *uid);
int64_t ch_controller_sriov_plug_tried(ChController *controller, const char *uid);
void ch_controller_forget_sriov_plug(ChController *controller, const char *uid);
/* A final phase that is not stored yet, see final-phases.h; the first blocks for a file. */
void ch_controller_remember_phase(ChController *controller, const char *uid, ChPhase phase);
void ch_controller_forget_phase(ChController *controller, const char *uid);
ChPhase ch_controller_recall_phase(ChController *controller, const char *uid);
/* When this agent began to shut down the domain of @uid: it reached the launcher. @begins: it does
 * now, unless it has.
 * Returns: for how long it has; -1: it has not */
int64_t ch_controller_stopping_for(ChController *controller, const char *uid, bool begins);
/* The launcher of @uid, which has reported no domain yet, answered SyncVirtualMachine.
 * @is_complete: and all that follows was done; else the next pass begins anew
 * Returns: whether for the first time */
bool ch_controller_note_sync(ChController *controller, const char *uid, bool is_complete);
void ch_controller_forget_sync(ChController *controller, const char *uid); /* it did report */
/* Whether a complete one was less than a second ago: a domain that is reported after the answer is
 * not waited for in vain. */
bool ch_controller_is_sync_fresh(ChController *controller, const char *uid);
/* Drops the domain of @key from the store, unless it is another VM's by now. */
void ch_controller_forget_domain(ChController *controller, const char *key, const char *uid);
void ch_controller_stage(ChController *controller, const ChPass *pass, ChStage stage);
/* Whether the pass's VMI had another line in the log before this one, see last-lines.h. */
bool ch_controller_is_news(ChController *controller, const ChPass *pass, const char *line);
