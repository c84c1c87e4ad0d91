/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-decide-model: a small world in which decide()'s actions have their effects, to see where a
 * series of passes ends. Included by test-decide.c only.
 *
 * A pass that changes nothing leaves it to the environment to move: launchers get ready or are
 * found dead, a silent one answers, an I/O error may be tried again. When that does not move
 * either, a fixed point is reached.
 */

#pragma once

#include "handler/reconcile/decide.h"
#include "handler/reconcile/test-support.h"
#include "lib/base/time.h"

#define MODEL_MAX_PASSES 16

typedef struct {
    ChVmiView vmi;
    bool is_listed;  /* the watch brought the VMI */
    bool is_stored;  /* the API server has it */
    bool has_domain; /* one is described */
    ChDomain domain;
    const char *ghost_uid; /* NULL: no record */
    ChLauncherState launcher, stale_launcher;
    ChIoRetry io_retry;
    int64_t stopping_since_us; /* 0: not stopping */
    int64_t now_us;
    unsigned seen; /* 1 << ChAction */
} ModelWorld;

static inline const ChDomain *
model_domain(const ModelWorld *world)
{
    return world->has_domain ? &world->domain : NULL;
}

static inline bool
model_is_own(const ModelWorld *world)
{
    return world->domain.uid[0] == '\0' || g_str_equal(world->domain.uid, world->vmi.uid);
}

/* The state of the launcher whose domain it is. */
static inline ChLauncherState
model_owner(const ModelWorld *world)
{
    return model_is_own(world) ? world->launcher : world->stale_launcher;
}

static inline bool
model_is_same(const ModelWorld *a, const ModelWorld *b)
{
    return a->vmi.phase == b->vmi.phase && a->has_domain == b->has_domain &&
           a->domain.status == b->domain.status && a->domain.reason == b->domain.reason &&
           a->domain.is_deleted == b->domain.is_deleted &&
           g_strcmp0(a->domain.uid, b->domain.uid) == 0 &&
           a->domain.grace.deletion.is_set == b->domain.grace.deletion.is_set &&
           g_strcmp0(a->ghost_uid, b->ghost_uid) == 0 && a->launcher == b->launcher &&
           a->stale_launcher == b->stale_launcher && a->io_retry == b->io_retry;
}

static inline void
model_set_domain(ModelWorld *world, ChDomainStatus status, ChDomainReason reason)
{
    world->has_domain = true;
    world->domain.is_deleted = false;
    world->domain.status = status;
    world->domain.reason = reason;
    world->domain.status_text = "";
}

static inline void
model_clean_up(ModelWorld *world, const char *uid)
{
    if (world->has_domain && (world->domain.uid[0] == '\0' || g_str_equal(world->domain.uid, uid)))
        world->has_domain = false;
    if (g_strcmp0(world->ghost_uid, uid) == 0)
        world->ghost_uid = NULL;
}

static inline void
model_fetch(ModelWorld *world, ChFacts *facts, const ChDecision *decision)
{
    if (decision->action == CH_ACTION_ASK_CLUSTER) {
        facts->existence = world->is_stored ? CH_EXISTENCE_EXISTS : CH_EXISTENCE_GONE;
        facts->vmi = world->is_stored ? &world->vmi : NULL;
    } else if (decision->action == CH_ACTION_PROBE_LAUNCHER) {
        facts->launcher = world->launcher;
    } else if (decision->action == CH_ACTION_PROBE_STALE) {
        facts->stale_launcher = world->stale_launcher;
    } else if (decision->action == CH_ACTION_CLEAN_UP_FAILED) {
        facts->cleaned_up_failed = true;
        model_clean_up(world, decision->uid);
    } else if (decision->action == CH_ACTION_ASK_IO_RETRY) {
        facts->io_retry = world->io_retry;
        facts->io_retry_delay_us = CH_SECOND_US;
    } else {
        g_assert_not_reached();
    }
}

/* The launcher carries out what §20 sends it; a dead one cannot. */
static inline void
model_shut_down(ModelWorld *world, const ChShutdownPlan *plan)
{
    if (model_owner(world) == CH_LAUNCHER_UNRESPONSIVE)
        return;
    if (world->stopping_since_us == 0)
        world->stopping_since_us = world->now_us;
    if (plan->step == CH_SHUTDOWN_KILL || plan->step == CH_SHUTDOWN_KILL_EXPIRED) {
        model_set_domain(world, CH_DOMAIN_SHUTOFF, CH_REASON_DESTROYED);
    } else if (plan->step != CH_SHUTDOWN_WAIT && !plan->may_be_refused) {
        world->domain.grace.deletion =
            (ChDomainTime){true, world->now_us / CH_SECOND_US * CH_SECOND_US};
        model_set_domain(world, CH_DOMAIN_SHUTTING_DOWN, CH_REASON_OTHER);
    } /* else the guest hangs: the grace period ends it */
    world->now_us += plan->requeue_us;
}

static inline void
model_sync(ModelWorld *world)
{
    if (world->ghost_uid != NULL && !g_str_equal(world->ghost_uid, world->vmi.uid))
        return; /* the record is another VM's: refused */
    world->ghost_uid = world->vmi.uid;
    world->domain.uid = world->vmi.uid;
    model_set_domain(world, CH_DOMAIN_RUNNING, CH_REASON_OTHER);
}

static inline void
model_act(ModelWorld *world, const ChDecision *decision)
{
    if (decision->action == CH_ACTION_CLEAN_UP_STALE || decision->action == CH_ACTION_DELETE)
        model_clean_up(world, decision->uid);
    else if (decision->action == CH_ACTION_SHUT_DOWN || decision->action == CH_ACTION_DESTROY)
        model_shut_down(world, &decision->shutdown);
    else if (decision->action == CH_ACTION_START || decision->action == CH_ACTION_UPDATE)
        model_sync(world);
}

/* One pass: facts, one action, the phase. */
static inline void
model_pass(ModelWorld *world)
{
    const ChDomain domain = world->domain; /* as fetched at the start */
    ChFacts facts = {
        .node = "node01",
        .vmi = world->is_listed ? &world->vmi : NULL,
        .existence = world->is_listed ? CH_EXISTENCE_EXISTS : CH_EXISTENCE_UNKNOWN,
        .domain = world->has_domain ? &domain : NULL,
        .ghost_uid = world->ghost_uid,
        .expectations_satisfied = true,
        .stopping_for_us =
            world->stopping_since_us > 0 ? world->now_us - world->stopping_since_us : -1,
        .now_us = world->now_us,
    };
    unsigned fetched = 0;
    ChDecision decision = ch_decide(&facts);

    for (; ch_action_fetches_fact(decision.action); decision = ch_decide(&facts)) {
        g_assert_cmphex(fetched & 1u << decision.action, ==, 0); /* each fact once a pass */
        fetched |= 1u << decision.action;
        model_fetch(world, &facts, &decision);
    }
    world->seen |= fetched | 1u << decision.action;
    model_act(world, &decision);
    if (decision.updates_status && decision.action == CH_ACTION_DESTROY)
        world->vmi.phase = CH_PHASE_FAILED;
    else if (decision.updates_status)
        world->vmi.phase =
            ch_phase_decide(&world->vmi, facts.domain, facts.launcher, CH_PHASE_UNSET).phase;
}

/* What happens when the agent only waits. */
static inline void
model_environment(ModelWorld *world)
{
    const ChLauncherState owner = model_owner(world);

    if (world->launcher == CH_LAUNCHER_NOT_INITIALIZED)
        world->launcher = CH_LAUNCHER_UNRESPONSIVE; /* its three minutes are over */
    else if (world->stale_launcher == CH_LAUNCHER_NOT_INITIALIZED)
        world->stale_launcher = CH_LAUNCHER_UNRESPONSIVE;
    else if (ch_domain_live(model_domain(world)) != NULL && owner == CH_LAUNCHER_UNRESPONSIVE)
        world->domain.is_deleted = true; /* found dead by its socket */
    else if (world->has_domain && world->domain.status == CH_DOMAIN_UNKNOWN)
        model_set_domain(world, CH_DOMAIN_RUNNING, CH_REASON_OTHER); /* it answers at last */
    else if (world->has_domain && world->domain.reason == CH_REASON_STARTING_UP)
        model_set_domain(world, CH_DOMAIN_RUNNING, CH_REASON_OTHER);
    else if (world->io_retry == CH_IO_RETRY_LATER)
        world->io_retry = CH_IO_RETRY_NOW;
}

/* Returns: the passes it took until nothing moves any more */
static inline unsigned
model_settle(ModelWorld *world)
{
    for (unsigned passes = 1;; passes++) {
        const ModelWorld before = *world;

        g_assert_cmpuint(passes, <=, MODEL_MAX_PASSES);
        model_pass(world);
        if (ch_phase_is_final(before.vmi.phase))
            g_assert_cmpint(world->vmi.phase, ==, before.vmi.phase); /* the end is the end */
        if (!model_is_same(&before, world) || before.now_us != world->now_us)
            continue;
        model_environment(world);
        if (model_is_same(&before, world))
            return passes;
    }
}
