/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/plan.h"

static const struct PlanCase {
    const char *path;
    ChPlanFacts facts;
    ChStep expect;
} cases[] = {
    /* the start */
    {"/plan/new-vmi-is-accepted", {.vmi = CH_VMI_NEW}, CH_STEP_ACCEPT},
    {"/plan/pending-vmi-gets-a-pod", {.vmi = CH_VMI_PENDING}, CH_STEP_CREATE_POD},
    {"/plan/pod-is-started", {.vmi = CH_VMI_SCHEDULING, .has_pod = true}, CH_STEP_START},
    {"/plan/starting-launcher-is-waited-for",
     {.vmi = CH_VMI_SCHEDULING, .has_pod = true, .container = CH_CONTAINER_STARTING},
     CH_STEP_REST},
    {"/plan/serving-launcher-is-handed-over",
     {.vmi = CH_VMI_SCHEDULING, .has_pod = true, .container = CH_CONTAINER_READY},
     CH_STEP_HAND_OVER},
    {"/plan/pod-is-connected-while-its-launcher-starts",
     {.vmi = CH_VMI_SCHEDULING,
      .has_pod = true,
      .needs_network = true,
      .container = CH_CONTAINER_STARTING},
     CH_STEP_CONNECT},
    {"/plan/pod-without-its-network-is-not-handed-over",
     {.vmi = CH_VMI_SCHEDULING,
      .has_pod = true,
      .needs_network = true,
      .container = CH_CONTAINER_READY},
     CH_STEP_CONNECT},
    {"/plan/launcher-that-ends-early-is-tidied-up",
     {.vmi = CH_VMI_SCHEDULING, .has_pod = true, .container = CH_CONTAINER_ENDED},
     CH_STEP_TIDY},
    {"/plan/vmi-whose-launcher-ended-early-fails",
     {.vmi = CH_VMI_SCHEDULING, .has_pod = true, .is_tidied = true},
     CH_STEP_FAIL},
    {"/plan/vmi-whose-pod-was-removed-early-fails", {.vmi = CH_VMI_SCHEDULING}, CH_STEP_FAIL},
    /* the agent's time */
    {"/plan/owned-vmi-is-left-alone",
     {.vmi = CH_VMI_OWNED, .has_pod = true, .container = CH_CONTAINER_READY},
     CH_STEP_SYNC_READY},
    {"/plan/ended-launcher-is-tidied-up-for-the-agent-to-see",
     {.vmi = CH_VMI_OWNED, .has_pod = true, .container = CH_CONTAINER_ENDED},
     CH_STEP_TIDY},
    {"/plan/deleted-pod-is-stopped",
     {.vmi = CH_VMI_OWNED,
      .has_pod = true,
      .is_pod_deleting = true,
      .container = CH_CONTAINER_READY},
     CH_STEP_STOP},
    /* the end */
    {"/plan/deleted-vmi-loses-its-pod",
     {.vmi = CH_VMI_OWNED, .is_deleting = true, .has_pod = true, .container = CH_CONTAINER_READY},
     CH_STEP_DELETE_POD},
    {"/plan/deleted-vmi-stops-its-pod",
     {.vmi = CH_VMI_OWNED,
      .is_deleting = true,
      .has_pod = true,
      .is_pod_deleting = true,
      .container = CH_CONTAINER_READY},
     CH_STEP_STOP},
    {"/plan/deleted-vmi-without-container-waits-for-the-agents-verdict",
     {.vmi = CH_VMI_OWNED,
      .is_deleting = true,
      .has_finalizer = true,
      .has_pod = true,
      .is_tidied = true},
     CH_STEP_SYNC_READY},
    {"/plan/final-vmi-keeps-its-pod-object",
     {.vmi = CH_VMI_FINAL, .has_finalizer = true, .has_pod = true, .is_tidied = true},
     CH_STEP_SYNC_READY},
    {"/plan/final-vmi-lets-its-launcher-end",
     {.vmi = CH_VMI_FINAL, .has_pod = true, .container = CH_CONTAINER_READY},
     CH_STEP_SYNC_READY},
    {"/plan/deleted-final-vmi-forgets-its-pod",
     {.vmi = CH_VMI_FINAL,
      .is_deleting = true,
      .has_finalizer = true,
      .has_pod = true,
      .is_tidied = true},
     CH_STEP_FORGET_POD},
    {"/plan/deleted-final-vmi-is-released",
     {.vmi = CH_VMI_FINAL, .is_deleting = true, .has_finalizer = true, .is_tidied = true},
     CH_STEP_RELEASE},
    {"/plan/vmi-deleted-before-its-pod-fails",
     {.vmi = CH_VMI_PENDING, .is_deleting = true},
     CH_STEP_FAIL},
    {"/plan/vmi-deleted-while-its-launcher-starts-stops-it-first",
     {.vmi = CH_VMI_SCHEDULING,
      .is_deleting = true,
      .has_pod = true,
      .is_pod_deleting = true,
      .container = CH_CONTAINER_STARTING},
     CH_STEP_STOP},
    {"/plan/orphaned-container-is-stopped",
     {.vmi = CH_VMI_GONE, .container = CH_CONTAINER_READY},
     CH_STEP_STOP},
    {"/plan/orphaned-pod-is-forgotten", {.vmi = CH_VMI_GONE, .has_pod = true}, CH_STEP_FORGET_POD},
    {"/plan/nothing-is-nothing", {.vmi = CH_VMI_GONE}, CH_STEP_REST},
};

static void
test_case(gconstpointer data)
{
    const struct PlanCase *c = data;

    g_assert_cmpstr(ch_step_text(ch_plan(&c->facts)), ==, ch_step_text(c->expect));
}

static ChPlanFacts
facts_of(unsigned bits)
{
    return (ChPlanFacts){
        .vmi = bits % 6,
        .container = bits / 6 % 4,
        .is_deleting = bits / 24 & 1,
        .has_finalizer = bits / 24 & 2,
        .has_pod = bits / 24 & 4,
        .is_pod_deleting = bits / 24 & 8,
        .is_tidied = bits / 24 & 16,
        .needs_network = bits / 24 & 32,
    };
}

static void
test_every_combination_has_a_step(void)
{
    for (unsigned bits = 0; bits < 6 * 4 * 64; bits++) {
        const ChPlanFacts facts = facts_of(bits);
        const ChStep step = ch_plan(&facts);

        g_assert_cmpint(step, >, CH_STEP_INVALID);
        g_assert_cmpint(step, <, CH_STEP_N);
        /* What needs a container or a pod is only done to one. */
        if (step == CH_STEP_STOP || step == CH_STEP_TIDY)
            g_assert_cmpint(facts.container, !=, CH_CONTAINER_NONE);
        if (step == CH_STEP_FORGET_POD || step == CH_STEP_DELETE_POD)
            g_assert_true(facts.has_pod);
        if (step == CH_STEP_CONNECT || step == CH_STEP_HAND_OVER)
            g_assert_true(facts.container != CH_CONTAINER_NONE &&
                          facts.needs_network == (step == CH_STEP_CONNECT));
        /* No VMI is let go while something of its pod is left. */
        if (step == CH_STEP_RELEASE) {
            g_assert_cmpint(facts.container, ==, CH_CONTAINER_NONE);
            g_assert_false(facts.has_pod);
        }
    }
}

static void
test_phases(void)
{
    g_assert_cmpint(ch_plan_vmi_phase(NULL), ==, CH_VMI_NEW);
    g_assert_cmpint(ch_plan_vmi_phase("Scheduling"), ==, CH_VMI_SCHEDULING);
    g_assert_cmpint(ch_plan_vmi_phase("Scheduled"), ==, CH_VMI_OWNED);
    g_assert_cmpint(ch_plan_vmi_phase("Running"), ==, CH_VMI_OWNED);
    g_assert_cmpint(ch_plan_vmi_phase("Unknown"), ==, CH_VMI_OWNED);
    g_assert_cmpint(ch_plan_vmi_phase("Failed"), ==, CH_VMI_FINAL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/every-combination-has-a-step", test_every_combination_has_a_step);
    g_test_add_func("/plan/phases", test_phases);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_case);
    return g_test_run();
}
