/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/retry.h"

#include "lib/base/time.h"

#define S    CH_SECOND_US
#define POLL (S / 2)

/* One pass at @now_us, in which what failed fails again if it is tried. */
static int64_t
pass(ChRetry *retry, int64_t now_us, int64_t wait_us, int *n_tries)
{
    const bool is_poll = ch_retry_begin(retry, now_us);

    *n_tries += !is_poll;
    return ch_retry_end(retry, !is_poll, wait_us, now_us, 0);
}

/* Of two minutes with something that is waited for: looks twice a second, and few tries. */
static void
test_waiting_does_not_hurry_what_failed(void)
{
    ChRetry retry;
    int n_tries = 0;
    int n_passes = 0;

    ch_retry_init(&retry);
    for (int64_t now_us = S; now_us < 121 * S; n_passes++)
        now_us += pass(&retry, now_us, POLL, &n_tries);
    g_assert_cmpint(n_passes, ==, 240);
    g_assert_cmpint(n_tries, ==, 7); /* after 0, 1, 3, 7, 15, 31, 63 s */
}

static void
test_failure_alone(void)
{
    ChRetry retry;
    int n_tries = 0;

    ch_retry_init(&retry);
    g_assert_cmpint(pass(&retry, 10 * S, -1, &n_tries), ==, S);
    g_assert_cmpint(pass(&retry, 11 * S, -1, &n_tries), ==, 2 * S);
    g_assert_cmpint(n_tries, ==, 2);
}

/* What is waited for came: what failed is not forgotten. */
static void
test_nothing_to_wait_for_any_more(void)
{
    ChRetry retry;
    int n_tries = 0;

    ch_retry_init(&retry);
    g_assert_cmpint(pass(&retry, 10 * S, POLL, &n_tries), ==, POLL);
    g_assert_cmpint(pass(&retry, 10 * S + POLL, -1, &n_tries), ==, POLL);
    g_assert_cmpint(n_tries, ==, 1);
}

static void
test_change_tries_all(void)
{
    ChRetry retry;

    ch_retry_init(&retry);
    g_assert_false(ch_retry_begin(&retry, 10 * S));
    g_assert_cmpint(ch_retry_end(&retry, true, -1, 10 * S, 0), ==, S);
    ch_retry_note_change(&retry);
    g_assert_false(ch_retry_begin(&retry, 10 * S + 1));
    g_assert_cmpint(ch_retry_end(&retry, false, -1, 10 * S + 1, 0), ==, -1);
    g_assert_false(ch_retry_begin(&retry, 10 * S + 2));
    g_assert_cmpint(ch_retry_end(&retry, true, -1, 10 * S + 2, 0), ==, S); /* from the start */
}

/* Between two passes, or while one runs. */
static void
test_change_during_a_pass(void)
{
    ChRetry retry;

    ch_retry_init(&retry);
    g_assert_false(ch_retry_begin(&retry, 10 * S));
    ch_retry_note_change(&retry);
    g_assert_cmpint(ch_retry_end(&retry, true, POLL, 10 * S, 0), ==, POLL);
    g_assert_false(ch_retry_begin(&retry, 10 * S));
    g_assert_cmpint(ch_retry_end(&retry, false, POLL, 10 * S, 0), ==, POLL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/retry/waiting-does-not-hurry-what-failed",
                    test_waiting_does_not_hurry_what_failed);
    g_test_add_func("/retry/failure-alone", test_failure_alone);
    g_test_add_func("/retry/nothing-to-wait-for-any-more", test_nothing_to_wait_for_any_more);
    g_test_add_func("/retry/change-tries-all", test_change_tries_all);
    g_test_add_func("/retry/change-during-a-pass", test_change_during_a_pass);
    return g_test_run();
}
