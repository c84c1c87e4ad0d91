/* SPDX-License-Identifier: Apache-2.0 */

/*
 * decide: what one pass over a VMI does.
 *
 * Theory of operation: the shell gathers the facts it has and asks. The answer is one action. An
 * action of the first group only fetches a fact: the shell carries it out, puts the fact in and
 * asks again, at most once for each of them. An action of the second group ends the pass after it
 * was carried out (and after the status, where `updates_status` says so).
 *
 * Pure and total: every combination of facts has exactly one answer. Thread: any.
 * Spec: 01 §15, §17, §18, §22 step 1.
 */

#pragma once

#include "handler/launcher/domain.h" /* lint: pure, plain data that the launcher sends */
#include "handler/reconcile/phase.h"
#include "handler/reconcile/shutdown-plan.h"
#include "handler/reconcile/vmi.h"

typedef enum {
    CH_ACTION_INVALID = 0,

    /* Fetch a fact, then ask again. */
    CH_ACTION_ASK_CLUSTER,     /* set `existence` (and `vmi` when it exists) */
    CH_ACTION_PROBE_LAUNCHER,  /* 01 §14.4 on the VMI: set `launcher` */
    CH_ACTION_PROBE_STALE,     /* on `uid`, another VM of the same name or one that left this node:
                                  set `stale_launcher`. What its ghost record's own socket says: a
                                  VM that runs or starts must not be cleaned up (01 §28, trap 48) */
    CH_ACTION_CLEAN_UP_FAILED, /* clean-up (01 §21.2) of a VMI that failed while migrating, then set
                                  `cleaned_up_failed`; its error ends the pass */
    CH_ACTION_ASK_IO_RETRY,    /* ask the retry manager (key: `uid`): set `io_retry` */

    /* End the pass. */
    CH_ACTION_IGNORE,         /* nothing of ours to do */
    CH_ACTION_LISTEN,         /* the same, but its launcher must be able to report to us */
    CH_ACTION_CLEAN_UP_STALE, /* clean-up (01 §21.2) of `uid`, which is not the VMI as ours */
    CH_ACTION_DELETE,         /* 01 §21 */
    CH_ACTION_SHUT_DOWN,      /* 01 §20 by `shutdown` */
    CH_ACTION_DESTROY,        /* the same, forced; then the result is the irrecoverable error */
    CH_ACTION_START,          /* 01 §22.2 and SyncVirtualMachine */
    CH_ACTION_UPDATE,         /* 01 §22.1 and SyncVirtualMachine */
    CH_ACTION_REFUSE_UPDATE,  /* error: the launcher does not answer (01 §22 step 1) */
    CH_ACTION_NONE,           /* only the status */
    CH_ACTION_MIGRATE_SOURCE, /* the migration-source role's flow (spec 06) */
    CH_ACTION_MIGRATE_TARGET, /* the migration-target role's flow (spec 06) */
    CH_ACTION_N,
} ChAction;

const char *ch_action_text(ChAction action); /* for logs; static storage */
/* Whether the shell asks again after it. */
bool ch_action_fetches_fact(ChAction action);

typedef enum {
    CH_EXISTENCE_UNKNOWN = 0, /* not in the local store, the API server was not asked yet */
    CH_EXISTENCE_EXISTS,
    CH_EXISTENCE_GONE,
    CH_EXISTENCE_N,
} ChExistence;

typedef enum {
    CH_IO_RETRY_UNKNOWN = 0,
    CH_IO_RETRY_NOW,
    CH_IO_RETRY_LATER, /* `io_retry_delay_us` says when */
    CH_IO_RETRY_N,
} ChIoRetry;

/* All pointers borrowed. */
typedef struct {
    const char *node;     /* this node's name */
    const ChVmiView *vmi; /* non-NULL exactly with CH_EXISTENCE_EXISTS */
    ChExistence existence;
    const ChDomain *domain; /* (nullable): as fetched at the start of the pass */
    const char *ghost_uid;  /* (nullable): UID in the ghost record of the key */
    bool expectations_satisfied;
    ChLauncherState launcher;
    ChLauncherState stale_launcher;
    bool cleaned_up_failed;
    ChIoRetry io_retry;
    int64_t io_retry_delay_us;
    bool is_sync_fresh; /* the launcher has just answered SyncVirtualMachine: what it reports may be
                           on its way */
    ChPhase remembered; /* final phase that could not be stored (see ch_phase_decide) */
    int64_t stopping_for_us; /* how long the domain has been shut down by this agent; -1: not yet */
    int64_t now_us;          /* wall clock */
} ChFacts;

typedef struct {
    ChAction action;
    const char *reason;  /* why, for the log; static storage */
    const char *uid;     /* whom the action is about, "" when unknown; borrowed from the facts */
    bool updates_status; /* the status follows (the VMI exists and is ours) */
    bool drops_expectations; /* the VMI is gone: forget its expectations, and its metric series */
    bool post_stop_hook;     /* run the PostVMStop hooks first; their error ends the pass */
    int64_t requeue_us;      /* 0: none. Add the key again after this, whatever the action does */
    ChShutdownPlan shutdown; /* of SHUT_DOWN and DESTROY */
} ChDecision;

ChDecision ch_decide(const ChFacts *facts);

/* (transfer full): "VMI is in phase: Running | Domain status: Running, reason: Unknown" (01 §27).
 * Both nullable; a deleted domain does not exist. */
char *ch_decide_log_line(const ChVmiView *vmi, const ChDomain *domain);

/* Whether ch_decide() ignores a VMI, whatever else is known, as a write of ours is on its way back:
 * 01 §17 row 2. @exists: it is in the local store, or was found in the cluster */
bool ch_decide_awaits_write(bool exists, bool expectations_satisfied);

/* Whom the key is about: the VMI's UID, else the domain's, else the ghost record's, else "".
 * Borrowed from the facts. 01 §17 rows 4 and 5. */
const char *ch_decide_uid(const ChFacts *facts);

/* 01 §15.1, the VMI's half or the domain's half. */
bool ch_decide_migration_in_progress(const ChVmiView *vmi, const ChDomain *domain);
