/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/life.h"

#include "lib/base/time.h"

#define AT(seconds) ((int64_t)(seconds)*CH_SECOND_US)

static const ChLifeFacts nothing = {0};
static const ChLifeFacts defined = {.has_domain = true};
static const ChLifeFacts running = {.has_domain = true, .has_pid = true, .is_running = true};
static const ChLifeFacts gone = {.has_domain = true, .has_pid = true};

static ChLife
start(void)
{
    ChLife life;

    ch_life_init(&life, AT(180), AT(5), AT(0));
    return life;
}

static void
test_no_domain_in_time_ends_with_two(void)
{
    ChLife life = start();

    g_assert_cmpint(ch_life_step(&life, &nothing, AT(179)), ==, CH_LIFE_NOTHING);
    g_assert_cmpint(ch_life_step(&life, &nothing, AT(180)), ==, CH_LIFE_EXIT);
    g_assert_cmpint(life.exit_status, ==, 2);
}

static void
test_stop_before_a_domain_ends_at_once(void)
{
    ChLife life = start();
    const ChLifeFacts facts = {.is_stop_requested = true};

    g_assert_cmpint(ch_life_step(&life, &facts, AT(1)), ==, CH_LIFE_EXIT);
    g_assert_cmpint(life.exit_status, ==, 0);
}

static void
test_guest_that_ends_and_is_deleted(void)
{
    ChLife life = start();
    ChLifeFacts facts = gone;

    g_assert_cmpint(ch_life_step(&life, &running, AT(1)), ==, CH_LIFE_NOTHING);
    g_assert_cmpint(ch_life_step(&life, &gone, AT(2)), ==, CH_LIFE_NOTHING);
    g_assert_cmpint(life.phase, ==, CH_LIFE_LEAVING);
    facts.is_deletion_sent = true;
    g_assert_cmpint(ch_life_step(&life, &facts, AT(3)), ==, CH_LIFE_EXIT);
    g_assert_cmpint(life.exit_status, ==, 0);
}

static void
test_guest_that_nobody_deletes_ends_after_45_seconds(void)
{
    ChLife life = start();

    ch_life_step(&life, &running, AT(1));
    ch_life_step(&life, &gone, AT(100));
    g_assert_cmpint(ch_life_step(&life, &gone, AT(114)), ==, CH_LIFE_NOTHING);
    g_assert_cmpint(ch_life_step(&life, &gone, AT(115)), ==, CH_LIFE_KILL);
    g_assert_cmpint(ch_life_step(&life, &gone, AT(144)), ==, CH_LIFE_NOTHING);
    g_assert_cmpint(ch_life_step(&life, &gone, AT(145)), ==, CH_LIFE_EXIT);
}

static void
test_any_event_after_the_kill_ends(void)
{
    ChLife life = start();
    ChLifeFacts facts = gone;

    facts.n_events = 7;
    ch_life_step(&life, &running, AT(1));
    ch_life_step(&life, &facts, AT(100));
    g_assert_cmpint(ch_life_step(&life, &facts, AT(115)), ==, CH_LIFE_KILL);
    facts.n_events = 8;
    g_assert_cmpint(ch_life_step(&life, &facts, AT(116)), ==, CH_LIFE_EXIT);
}

static void
test_signal_marks_once_and_kills_after_the_grace_period(void)
{
    ChLife life = start();
    ChLifeFacts facts = running;

    ch_life_step(&life, &running, AT(1));
    facts.is_stop_requested = true;
    g_assert_cmpint(ch_life_step(&life, &facts, AT(10)), ==, CH_LIFE_MARK);
    g_assert_cmpint(ch_life_step(&life, &facts, AT(11)), ==, CH_LIFE_NOTHING);
    g_assert_cmpint(ch_life_step(&life, &facts, AT(15)), ==, CH_LIFE_NOTHING);
    g_assert_cmpint(ch_life_step(&life, &facts, AT(16)), ==, CH_LIFE_KILL);
    g_assert_cmpint(ch_life_step(&life, &facts, AT(17)), ==, CH_LIFE_KILL);
}

static void
test_domain_that_never_ran_is_left_after_the_timeout(void)
{
    ChLife life = start();

    ch_life_step(&life, &defined, AT(1));
    g_assert_cmpint(ch_life_step(&life, &defined, AT(180)), ==, CH_LIFE_NOTHING);
    g_assert_cmpint(life.phase, ==, CH_LIFE_WATCHING);
    ch_life_step(&life, &defined, AT(181));
    g_assert_cmpint(life.phase, ==, CH_LIFE_LEAVING);
}

static void
test_signal_without_a_pid_leaves(void)
{
    ChLife life = start();
    ChLifeFacts facts = defined;

    ch_life_step(&life, &defined, AT(1));
    facts.is_stop_requested = true;
    g_assert_cmpint(ch_life_step(&life, &facts, AT(2)), ==, CH_LIFE_MARK);
    g_assert_cmpint(life.phase, ==, CH_LIFE_LEAVING);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/life/no-domain-in-time-ends-with-two", test_no_domain_in_time_ends_with_two);
    g_test_add_func("/life/stop-before-a-domain-ends-at-once",
                    test_stop_before_a_domain_ends_at_once);
    g_test_add_func("/life/guest-that-ends-and-is-deleted", test_guest_that_ends_and_is_deleted);
    g_test_add_func("/life/guest-that-nobody-deletes-ends-after-45-seconds",
                    test_guest_that_nobody_deletes_ends_after_45_seconds);
    g_test_add_func("/life/any-event-after-the-kill-ends", test_any_event_after_the_kill_ends);
    g_test_add_func("/life/signal-marks-once-and-kills-after-the-grace-period",
                    test_signal_marks_once_and_kills_after_the_grace_period);
    g_test_add_func("/life/domain-that-never-ran-is-left-after-the-timeout",
                    test_domain_that_never_ran_is_left_after_the_timeout);
    g_test_add_func("/life/signal-without-a-pid-leaves", test_signal_without_a_pid_leaves);
    return g_test_run();
}
