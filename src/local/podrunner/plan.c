/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/plan.h"

static const char *const texts[CH_STEP_N] = {
    [CH_STEP_REST] = "rest",
    [CH_STEP_ACCEPT] = "accept",
    [CH_STEP_CREATE_POD] = "create pod",
    [CH_STEP_START] = "start",
    [CH_STEP_CONNECT] = "connect",
    [CH_STEP_HAND_OVER] = "hand over",
    [CH_STEP_SYNC_READY] = "sync ready",
    [CH_STEP_FAIL] = "fail",
    [CH_STEP_DELETE_POD] = "delete pod",
    [CH_STEP_STOP] = "stop",
    [CH_STEP_TIDY] = "tidy",
    [CH_STEP_FORGET_POD] = "forget pod",
    [CH_STEP_RELEASE] = "release",
};

const char *
ch_step_text(ChStep step)
{
    return texts[step] != NULL ? texts[step] : "invalid";
}

ChVmiPhase
ch_plan_vmi_phase(const char *text)
{
    static const struct {
        const char *text;
        ChVmiPhase phase;
    } phases[] = {
        {"", CH_VMI_NEW},
        {"Pending", CH_VMI_PENDING},
        {"Scheduling", CH_VMI_SCHEDULING},
        {"Succeeded", CH_VMI_FINAL},
        {"Failed", CH_VMI_FINAL},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(phases); i++) {
        if (g_str_equal(text != NULL ? text : "", phases[i].text))
            return phases[i].phase;
    }
    return CH_VMI_OWNED;
}

/* Nobody wants the pod anymore. */
static ChStep
plan_end(const ChPlanFacts *facts)
{
    if (facts->has_pod && !facts->is_pod_deleting &&
        (facts->container == CH_CONTAINER_STARTING || facts->container == CH_CONTAINER_READY))
        return CH_STEP_DELETE_POD;
    switch (facts->container) {
    case CH_CONTAINER_STARTING:
    case CH_CONTAINER_READY:
        return CH_STEP_STOP;
    case CH_CONTAINER_ENDED:
        return CH_STEP_TIDY;
    case CH_CONTAINER_NONE:
        break;
    }
    return facts->has_pod ? CH_STEP_FORGET_POD : CH_STEP_REST;
}

/* Not the agent's yet. */
static ChStep
plan_start(const ChPlanFacts *facts)
{
    if (facts->vmi == CH_VMI_NEW)
        return CH_STEP_ACCEPT;
    if (facts->vmi == CH_VMI_PENDING)
        return CH_STEP_CREATE_POD;
    if (facts->is_tidied || !facts->has_pod || facts->is_pod_deleting)
        return CH_STEP_FAIL;
    switch (facts->container) {
    case CH_CONTAINER_NONE:
        return CH_STEP_START;
    case CH_CONTAINER_STARTING: /* the launcher gets ready meanwhile */
        return facts->needs_network ? CH_STEP_CONNECT : CH_STEP_REST;
    case CH_CONTAINER_READY:
        return facts->needs_network ? CH_STEP_CONNECT : CH_STEP_HAND_OVER;
    case CH_CONTAINER_ENDED:
        break;
    }
    return CH_STEP_TIDY;
}

/* The agent's: only the container's end, or somebody's deleting the pod, is of interest. */
static ChStep
plan_owned(const ChPlanFacts *facts)
{
    if (facts->container == CH_CONTAINER_ENDED)
        return CH_STEP_TIDY;
    if (facts->is_pod_deleting && facts->container != CH_CONTAINER_NONE)
        return CH_STEP_STOP;
    return CH_STEP_SYNC_READY;
}

ChStep
ch_plan(const ChPlanFacts *facts)
{
    ChStep step;

    switch (facts->vmi) {
    case CH_VMI_GONE:
        return plan_end(facts);
    case CH_VMI_FINAL:
        if (!facts->is_deleting) /* a launcher ends by itself, its Pod stays to be looked at */
            return facts->container == CH_CONTAINER_ENDED ? CH_STEP_TIDY : CH_STEP_SYNC_READY;
        step = plan_end(facts);
        if (step != CH_STEP_REST)
            return step;
        return facts->is_deleting && facts->has_finalizer ? CH_STEP_RELEASE : CH_STEP_REST;
    case CH_VMI_NEW:
    case CH_VMI_PENDING:
    case CH_VMI_SCHEDULING:
        if (!facts->is_deleting)
            return plan_start(facts);
        step = plan_end(facts);
        return step != CH_STEP_REST ? step : CH_STEP_FAIL;
    case CH_VMI_OWNED:
        if (facts->is_deleting && facts->container != CH_CONTAINER_NONE)
            return plan_end(facts);
        return plan_owned(facts);
    }
    return CH_STEP_INVALID;
}
