/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/shutdown-plan.h"

#include "handler/reconcile/test-support.h"
#include "lib/base/time.h"

#define NEVER G_MAXINT64 /* no shutdown was signalled yet */

/* spec:01#6 spec:01#7 spec:02-14.1#6 spec:02-14.1#7: the two that are about the plan alone; the
 * other numbers are those of spec 01 §30.1, of which this is a part. */
static const struct PlanCase {
    const char *path;
    bool vmi_has_grace;
    int64_t vmi_grace_s;
    bool domain_has_grace;
    int64_t domain_grace_s;
    int64_t signalled_ago_s;
    int64_t stopping_s; /* -1: begins now */
    ChDomainStatus status;
    ChShutdownStep expect;
    int64_t expect_requeue_s, expect_left_s;
} cases[] = {
    /* clang-format off */
    {"/shutdown-plan/02-no-grace-metadata-kills",      false, 0, false, 0,  NEVER, -1, CH_DOMAIN_RUNNING, CH_SHUTDOWN_KILL, 0, 0},
    {"/shutdown-plan/04-first-attempt-signals",        false, 0, true, 1,   NEVER, -1, CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_FIRST, 5, 1},
    {"/shutdown-plan/05-second-attempt-is-silent",     false, 0, true, 600, 0, -1,     CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_AGAIN, 5, 600},
    {"/shutdown-plan/06-grace-0-of-the-vmi-expires",   true, 0, true, 30,   NEVER, -1, CH_DOMAIN_RUNNING, CH_SHUTDOWN_KILL_EXPIRED, 0, 0},
    {"/shutdown-plan/07-unset-grace-is-the-domains",   false, 0, true, 30,  0, -1,     CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_AGAIN, 5, 30},
    {"/shutdown-plan/13-grace-that-passed-kills",      false, 0, true, 1,   3, -1,     CH_DOMAIN_RUNNING, CH_SHUTDOWN_KILL_EXPIRED, 0, 0},
    {"/shutdown-plan/14-grace-0-of-the-domain-kills",  true, 30, true, 0,   NEVER, -1, CH_DOMAIN_RUNNING, CH_SHUTDOWN_KILL, 0, 0},
    {"/shutdown-plan/exactly-at-the-end-kills",        true, 30, true, 30,  30, -1,    CH_DOMAIN_RUNNING, CH_SHUTDOWN_KILL_EXPIRED, 0, 0},
    {"/shutdown-plan/short-grace-of-the-vmi-first",    true, 2, true, 30,   NEVER, -1, CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_FIRST, 2, 2},
    {"/shutdown-plan/what-is-left-bounds-the-wait",    true, 30, true, 30,  27, -1,    CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_AGAIN, 3, 3},
    {"/shutdown-plan/at-least-a-second",               true, 30, true, 30,  29, -1,    CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_AGAIN, 1, 1},
    {"/shutdown-plan/a-clock-that-went-back",          true, 30, true, 30,  -100, -1,  CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_AGAIN, 5, 30},
    {"/shutdown-plan/guest-on-its-way-is-left-alone",  true, 30, true, 30,  10, -1,    CH_DOMAIN_SHUTTING_DOWN, CH_SHUTDOWN_WAIT, 20, 20},
    {"/shutdown-plan/guest-on-its-way-for-too-long",   true, 30, true, 30,  31, -1,    CH_DOMAIN_SHUTTING_DOWN, CH_SHUTDOWN_KILL_EXPIRED, 0, 0},
    {"/shutdown-plan/guest-on-its-way-unasked",        true, 30, true, 30,  NEVER, -1, CH_DOMAIN_SHUTTING_DOWN, CH_SHUTDOWN_WAIT, 30, 30},
    {"/shutdown-plan/guest-on-its-way-unasked-long",   true, 30, true, 30,  NEVER, 30, CH_DOMAIN_SHUTTING_DOWN, CH_SHUTDOWN_KILL_EXPIRED, 0, 0},
    {"/shutdown-plan/grace-without-end-of-the-vmi",    true, G_MAXINT64, true, 30, 10, -1, CH_DOMAIN_SHUTTING_DOWN, CH_SHUTDOWN_WAIT, 3600, G_MAXINT64 - 10},
    {"/shutdown-plan/grace-without-end-of-the-domain", false, 0, true, G_MAXINT64, NEVER, -1, CH_DOMAIN_SHUTTING_DOWN, CH_SHUTDOWN_WAIT, 3600, G_MAXINT64},
    {"/shutdown-plan/paused-guest-is-tried-again",     true, 30, true, 30,  NEVER, 28, CH_DOMAIN_PAUSED, CH_SHUTDOWN_SIGNAL_FIRST, 2, 2},
    {"/shutdown-plan/paused-guest-is-killed-in-time",  true, 30, true, 30,  NEVER, 30, CH_DOMAIN_PAUSED, CH_SHUTDOWN_KILL_EXPIRED, 0, 0},
    /* field:FR-B08: no start time in the metadata is not "expired" */
    {"/shutdown-plan/unknown-start-after-a-restart",   true, 30, true, 30,  NEVER, -1, CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_FIRST, 5, 30},
    {"/shutdown-plan/launcher-that-notes-no-start",    true, 30, true, 30,  NEVER, 30, CH_DOMAIN_RUNNING, CH_SHUTDOWN_KILL_EXPIRED, 0, 0},
    {"/shutdown-plan/the-launchers-clock-counts",      true, 30, true, 30,  10,    40, CH_DOMAIN_RUNNING, CH_SHUTDOWN_SIGNAL_AGAIN, 5, 20},
    /* clang-format on */
};

static void
test_plan(gconstpointer data)
{
    const struct PlanCase *c = data;
    const ChVmiView vmi = {.has_grace = c->vmi_has_grace, .grace_s = c->vmi_grace_s};
    const ChDomain domain = {
        .status = c->status,
        .grace =
            {
                .exists = c->domain_has_grace,
                .grace_s = c->domain_grace_s,
                .deletion =
                    {
                        .is_set = c->signalled_ago_s != NEVER,
                        .wall_us = c->signalled_ago_s != NEVER
                                       ? TEST_NOW_US - c->signalled_ago_s * CH_SECOND_US
                                       : 0,
                    },
            },
    };
    const int64_t stopping_us = c->stopping_s < 0 ? -1 : c->stopping_s * CH_SECOND_US;
    const ChShutdownPlan plan = ch_shutdown_plan(&vmi, &domain, true, stopping_us, TEST_NOW_US);

    g_assert_cmpint(plan.step, ==, c->expect);
    g_assert_cmpint(plan.requeue_us, ==, c->expect_requeue_s * CH_SECOND_US);
    g_assert_cmpint(plan.left_s, ==, c->expect_left_s);
    g_assert_true(plan.may_be_refused ==
                  (c->status == CH_DOMAIN_PAUSED && plan.step != CH_SHUTDOWN_KILL_EXPIRED));
}

static void
test_destroy_knows_no_grace(void)
{
    const ChDomain domain = {.grace = {.exists = true, .grace_s = 30}};

    g_assert_cmpint(
        ch_shutdown_plan(NULL, &domain, false, -1, TEST_NOW_US).step, ==, CH_SHUTDOWN_KILL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_plan);
    g_test_add_func("/shutdown-plan/destroy-knows-no-grace", test_destroy_knows_no_grace);
    return g_test_run();
}
