/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/retry-manager.h"

#include "lib/base/time.h"

static ChRetryManager *
new_manager(void)
{
    return ch_retry_manager_new(10 * CH_SECOND_US, 180 * CH_SECOND_US, 30 * CH_SECOND_US);
}

static int64_t
ask(ChRetryManager *manager, int64_t at_s)
{
    const int64_t delay_us = ch_retry_manager_ask(manager, "uid", at_s * CH_SECOND_US);

    g_assert_cmpint(delay_us % CH_SECOND_US, ==, 0);
    return delay_us / CH_SECOND_US;
}

/* spec:01#60 spec:01#105 spec:02-14.11#10 spec:02-14.11#11 spec:02-14.11#12 */
static void
test_intervals_double(void)
{
    g_autoptr(ChRetryManager) manager = new_manager();

    g_assert_cmpint(ask(manager, 0), ==, 0);
    g_assert_cmpint(ask(manager, 1), ==, 9);
    g_assert_cmpint(ask(manager, 4), ==, 6);
    g_assert_cmpint(ask(manager, 10), ==, 0); /* exactly due: still "before", and no delay left */
    g_assert_cmpint(ask(manager, 11), ==, 0); /* retried; 20 s now */
    g_assert_cmpint(ask(manager, 12), ==, 19);
    g_assert_cmpint(ask(manager, 32), ==, 0); /* 40 s now */
    g_assert_cmpint(ask(manager, 33), ==, 39);
}

static void
test_interval_is_capped(void)
{
    g_autoptr(ChRetryManager) manager = new_manager();
    int64_t at_s = 0;
    int64_t longest_s = 0;

    for (int i = 0; i < 40; i++) {
        const int64_t delay_s = ask(manager, at_s);

        longest_s = MAX(longest_s, delay_s);
        at_s += delay_s + 1;
    }
    g_assert_cmpint(longest_s, ==, 179);
}

/* spec:02-14.11#13 spec:01#60 */
static void
test_failure_after_the_window_is_new(void)
{
    g_autoptr(ChRetryManager) manager = new_manager();

    g_assert_cmpint(ask(manager, 0), ==, 0);
    g_assert_cmpint(ask(manager, 30), ==, 0);
    g_assert_cmpint(ask(manager, 31), ==, 9);
}

/* Due long ago, but within the window: the answer is never negative (trap 11). */
static void
test_no_negative_delay(void)
{
    g_autoptr(ChRetryManager) manager = new_manager();

    g_assert_cmpint(ask(manager, 0), ==, 0);
    g_assert_cmpint(ask(manager, 29), ==, 0);
}

static void
test_sweep_forgets_the_quiet(void)
{
    g_autoptr(ChRetryManager) manager = new_manager();

    ask(manager, 0);
    ch_retry_manager_ask(manager, "other", 0);
    ch_retry_manager_ask(manager, "other", CH_SECOND_US); /* failed: kept */
    ch_retry_manager_sweep(manager, 29 * CH_SECOND_US);
    g_assert_cmpuint(ch_retry_manager_size(manager), ==, 2);
    ch_retry_manager_sweep(manager, 31 * CH_SECOND_US);
    g_assert_cmpuint(ch_retry_manager_size(manager), ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/retry-manager/intervals-double", test_intervals_double);
    g_test_add_func("/retry-manager/interval-is-capped", test_interval_is_capped);
    g_test_add_func("/retry-manager/failure-after-the-window-is-new",
                    test_failure_after_the_window_is_new);
    g_test_add_func("/retry-manager/no-negative-delay", test_no_negative_delay);
    g_test_add_func("/retry-manager/sweep-forgets-the-quiet", test_sweep_forgets_the_quiet);
    return g_test_run();
}
