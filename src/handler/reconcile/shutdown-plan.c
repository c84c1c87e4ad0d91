/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/shutdown-plan.h"

#include "lib/base/time.h"

/* At least this often the signal is repeated until the guest reacts. */
#define SIGNAL_INTERVAL_S 5
/* At least this often a guest on its way is looked at: a grace period may be any number. */
#define WAIT_INTERVAL_S 3600

/* Seconds since the first signal; -1: it was not sent yet. A clock that went back counts as 0. */
static int64_t
seconds_since_signal(const ChDomain *domain, int64_t now_us)
{
    if (!domain->grace.deletion.is_set)
        return -1;
    return MAX(0, now_us / CH_SECOND_US - domain->grace.deletion.wall_us / CH_SECOND_US);
}

/* The first wait looks at what the VMI asks for only, later ones at what is left. */
static int64_t
seconds_to_wait(const ChVmiView *vmi, int64_t left_s, bool has_begun)
{
    if (has_begun)
        return MIN(left_s, SIGNAL_INTERVAL_S);
    return vmi != NULL && vmi->has_grace ? MIN(vmi->grace_s, SIGNAL_INTERVAL_S) : SIGNAL_INTERVAL_S;
}

/* @signalled_s, @elapsed_s: since the first signal, since the grace period began; -1: not yet */
static ChShutdownPlan
plan_signal(const ChVmiView *vmi,
            const ChDomain *domain,
            int64_t grace_s,
            int64_t signalled_s,
            int64_t elapsed_s)
{
    const int64_t left_s = elapsed_s < 0 ? grace_s : MAX(1, grace_s - elapsed_s);

    /* No event need come any more, if it hangs there. */
    if (domain->status == CH_DOMAIN_SHUTTING_DOWN)
        return (ChShutdownPlan){
            .step = CH_SHUTDOWN_WAIT,
            .requeue_us = MIN(left_s, WAIT_INTERVAL_S) * CH_SECOND_US,
            .left_s = left_s,
        };
    return (ChShutdownPlan){
        .step = signalled_s < 0 ? CH_SHUTDOWN_SIGNAL_FIRST : CH_SHUTDOWN_SIGNAL_AGAIN,
        .requeue_us = seconds_to_wait(vmi, left_s, elapsed_s >= 0) * CH_SECOND_US,
        .left_s = left_s,
        .may_be_refused = domain->status == CH_DOMAIN_PAUSED,
    };
}

ChShutdownPlan
ch_shutdown_plan(const ChVmiView *vmi,
                 const ChDomain *domain,
                 bool graceful,
                 int64_t stopping_for_us,
                 int64_t now_us)
{
    const ChDomainGrace *grace = &domain->grace;
    const int64_t grace_s = vmi != NULL && vmi->has_grace ? vmi->grace_s : grace->grace_s;
    const int64_t signalled_s = seconds_since_signal(domain, now_us);
    const int64_t stopping_s = stopping_for_us < 0 ? -1 : stopping_for_us / CH_SECOND_US;
    const int64_t elapsed_s = signalled_s >= 0 ? signalled_s : stopping_s;

    if (!graceful || !grace->exists || grace->grace_s == 0)
        return (ChShutdownPlan){.step = CH_SHUTDOWN_KILL};
    if (grace_s <= 0 || elapsed_s >= grace_s)
        return (ChShutdownPlan){.step = CH_SHUTDOWN_KILL_EXPIRED};
    return plan_signal(vmi, domain, grace_s, signalled_s, elapsed_s);
}
