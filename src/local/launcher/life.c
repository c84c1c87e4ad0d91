/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/life.h"

#include "lib/base/time.h"

#define DELETION_WAIT_US   (15 * CH_SECOND_US)
#define LAST_EVENT_WAIT_US (30 * CH_SECOND_US)

/* The original panics with this status when no domain came in time. */
#define EXIT_NO_DOMAIN 2

void
ch_life_init(ChLife *life, int64_t qemu_timeout_us, int64_t grace_us, int64_t now_us)
{
    *life = (ChLife){
        .phase = CH_LIFE_WAITING,
        .qemu_timeout_us = qemu_timeout_us,
        .grace_us = grace_us,
        .since_us = now_us,
    };
}

static void
enter(ChLife *life, ChLifePhase phase, const ChLifeFacts *facts, int64_t now_us)
{
    life->phase = phase;
    life->since_us = now_us;
    life->n_events = facts->n_events;
}

static ChLifeAction
end(ChLife *life, int exit_status)
{
    life->phase = CH_LIFE_ENDED;
    life->exit_status = exit_status;
    return CH_LIFE_EXIT;
}

static ChLifeAction
step_waiting(ChLife *life, const ChLifeFacts *facts, int64_t now_us)
{
    if (facts->has_domain) {
        enter(life, CH_LIFE_WATCHING, facts, now_us);
        return ch_life_step(life, facts, now_us);
    }
    if (facts->is_stop_requested)
        return end(life, 0);
    if (now_us - life->since_us >= life->qemu_timeout_us)
        return end(life, EXIT_NO_DOMAIN);
    return CH_LIFE_NOTHING;
}

/* In whole seconds and strictly more, as the original counts: the agent's own clock, which uses
 * "at least", shall come first. */
static bool
is_grace_over(const ChLife *life, int64_t now_us)
{
    return life->stop_us != 0 &&
           (now_us - life->stop_us) / CH_SECOND_US > life->grace_us / CH_SECOND_US;
}

static ChLifeAction
step_watching(ChLife *life, const ChLifeFacts *facts, int64_t now_us)
{
    const bool is_first_stop = facts->is_stop_requested && life->stop_us == 0;
    const bool is_gone = facts->has_pid ? !facts->is_running
                                        : facts->is_stop_requested ||
                                              now_us - life->since_us >= life->qemu_timeout_us;

    if (is_first_stop)
        life->stop_us = now_us;
    if (is_gone) {
        enter(life, CH_LIFE_LEAVING, facts, now_us);
        return is_first_stop ? CH_LIFE_MARK : ch_life_step(life, facts, now_us);
    }
    if (is_first_stop)
        return CH_LIFE_MARK;
    return is_grace_over(life, now_us) ? CH_LIFE_KILL : CH_LIFE_NOTHING;
}

static ChLifeAction
step_leaving(ChLife *life, const ChLifeFacts *facts, int64_t now_us)
{
    if (facts->is_deletion_sent)
        return end(life, 0);
    if (now_us - life->since_us < DELETION_WAIT_US)
        return CH_LIFE_NOTHING;
    enter(life, CH_LIFE_KILLING, facts, now_us);
    return CH_LIFE_KILL;
}

static ChLifeAction
step_killing(ChLife *life, const ChLifeFacts *facts, int64_t now_us)
{
    if (facts->n_events > life->n_events || now_us - life->since_us >= LAST_EVENT_WAIT_US)
        return end(life, 0);
    return CH_LIFE_NOTHING;
}

ChLifeAction
ch_life_step(ChLife *life, const ChLifeFacts *facts, int64_t now_us)
{
    switch (life->phase) {
    case CH_LIFE_WAITING:
        return step_waiting(life, facts, now_us);
    case CH_LIFE_WATCHING:
        return step_watching(life, facts, now_us);
    case CH_LIFE_LEAVING:
        return step_leaving(life, facts, now_us);
    case CH_LIFE_KILLING:
        return step_killing(life, facts, now_us);
    case CH_LIFE_INVALID:
    case CH_LIFE_ENDED:
        break;
    }
    return CH_LIFE_NOTHING;
}
