/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/workqueue.h"

#include "lib/base/time.h"

/* @expect: NULL: the queue is empty */
static void
assert_next(ChWorkqueue *queue, const char *expect)
{
    g_autofree char *key = ch_workqueue_get(queue);

    g_assert_cmpstr(key, ==, expect);
}

static void
test_first_in_first_out_each_once(void)
{
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();

    ch_workqueue_add(queue, "a");
    ch_workqueue_add(queue, "b");
    ch_workqueue_add(queue, "a");
    ch_workqueue_add(queue, "");
    g_assert_cmpuint(ch_workqueue_length(queue), ==, 3);
    assert_next(queue, "a");
    assert_next(queue, "b");
    assert_next(queue, "");
    assert_next(queue, NULL);
    g_assert_cmpuint(ch_workqueue_n_processing(queue), ==, 3);
}

static void
test_adds_while_it_runs_cause_one_more_run(void)
{
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();

    ch_workqueue_add(queue, "a");
    assert_next(queue, "a");
    ch_workqueue_add(queue, "a");
    ch_workqueue_add(queue, "a");
    assert_next(queue, NULL); /* never out twice */
    ch_workqueue_done(queue, "a");
    assert_next(queue, "a");
    ch_workqueue_done(queue, "a");
    assert_next(queue, NULL);
    ch_workqueue_done(queue, "a"); /* once too often */
    g_assert_cmpuint(ch_workqueue_n_processing(queue), ==, 0);
}

static void
test_delayed_keeps_the_earlier_time(void)
{
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();

    ch_workqueue_add_after(queue, "a", 100, 0);
    ch_workqueue_add_after(queue, "b", 70, 0);
    ch_workqueue_add_after(queue, "a", 50, 0);
    ch_workqueue_add_after(queue, "a", 90, 0);
    g_assert_cmpint(ch_workqueue_advance(queue, 49), ==, 50);
    assert_next(queue, NULL);
    g_assert_cmpint(ch_workqueue_advance(queue, 50), ==, 70);
    assert_next(queue, "a");
    g_assert_cmpint(ch_workqueue_advance(queue, 1000), ==, -1);
    assert_next(queue, "b");
    assert_next(queue, NULL);
}

/* Trap 10. */
static void
test_immediate_add_does_not_cancel_a_delayed_one(void)
{
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();

    ch_workqueue_add_after(queue, "a", 100, 0);
    ch_workqueue_add(queue, "a");
    assert_next(queue, "a");
    ch_workqueue_done(queue, "a");
    g_assert_cmpint(ch_workqueue_advance(queue, 100), ==, -1);
    assert_next(queue, "a");
}

/* Trap 11. */
static void
test_no_delay_is_now(void)
{
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();

    ch_workqueue_add_after(queue, "a", 0, 7);
    ch_workqueue_add_after(queue, "b", -5, 7);
    assert_next(queue, "a");
    assert_next(queue, "b");
    ch_workqueue_add_after(queue, "c", G_MAXINT64, 7);
    g_assert_cmpint(ch_workqueue_advance(queue, 8), ==, G_MAXINT64);
}

static void
test_failures_double_per_key(void)
{
    static const int64_t expect_us[] = {
        5000,     10000,     20000,     40000,     80000,      160000,     320000,
        640000,   1280000,   2560000,   5120000,   10240000,   20480000,   40960000,
        81920000, 163840000, 327680000, 655360000, 1000000000, 1000000000,
    };
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();
    int64_t now_us = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(expect_us); i++) {
        g_assert_cmpuint(ch_workqueue_n_requeues(queue, "a"), ==, i);
        ch_workqueue_add_rate_limited(queue, "a", now_us);
        g_assert_cmpint(ch_workqueue_advance(queue, now_us), ==, now_us + expect_us[i]);
        now_us += expect_us[i];
        ch_workqueue_advance(queue, now_us);
        assert_next(queue, "a");
        ch_workqueue_done(queue, "a");
    }
    ch_workqueue_add_rate_limited(queue, "b", now_us);
    g_assert_cmpint(ch_workqueue_advance(queue, now_us), ==, now_us + 5000);
    ch_workqueue_forget(queue, "a");
    g_assert_cmpuint(ch_workqueue_n_requeues(queue, "a"), ==, 0);
}

static void
test_bucket_is_shared_by_rate_limited_adds_only(void)
{
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();

    for (int i = 0; i < 100; i++) {
        g_autofree char *key = g_strdup_printf("k%d", i);

        ch_workqueue_add_rate_limited(queue, key, 0);
    }
    g_assert_cmpint(ch_workqueue_advance(queue, 5000), ==, -1);
    ch_workqueue_add_rate_limited(queue, "late", 5000); /* 0.05 tokens were refilled */
    g_assert_cmpint(ch_workqueue_advance(queue, 5000), ==, 100000);
    ch_workqueue_add_after(queue, "other", 10, 5000);
    g_assert_cmpint(ch_workqueue_advance(queue, 5000), ==, 5010);
}

static void
test_shut_down_hands_out_the_rest(void)
{
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();

    ch_workqueue_add(queue, "a");
    ch_workqueue_add(queue, "b");
    ch_workqueue_add_after(queue, "c", 5, 0);
    assert_next(queue, "a");
    ch_workqueue_add(queue, "a");
    ch_workqueue_shut_down(queue);
    ch_workqueue_add(queue, "d");
    ch_workqueue_add_after(queue, "e", 1, 0);
    ch_workqueue_add_rate_limited(queue, "f", 0);
    g_assert_cmpint(ch_workqueue_advance(queue, G_MAXINT64), ==, -1);
    ch_workqueue_done(queue, "a");
    assert_next(queue, "b");
    assert_next(queue, "a");
    assert_next(queue, NULL);
}

/* The rules against a model that is as naive as can be. */
static void
test_random_operations_keep_the_rules(void)
{
    static const char *const keys[] = {"a", "b", "c"};
    g_autoptr(ChWorkqueue) queue = ch_workqueue_new();
    bool is_out[3] = {false}, is_wanted[3] = {false};

    for (int round = 0; round < 20000; round++) {
        const int k = g_test_rand_int_range(0, 3);
        g_autofree char *got = NULL;

        switch (g_test_rand_int_range(0, 3)) {
        case 0:
            ch_workqueue_add(queue, keys[k]);
            is_wanted[k] = true;
            break;
        case 1:
            ch_workqueue_done(queue, keys[k]);
            is_out[k] = false;
            break;
        default:
            got = ch_workqueue_get(queue);
            if (got != NULL) {
                g_assert_true(is_wanted[got[0] - 'a'] && !is_out[got[0] - 'a']);
                is_wanted[got[0] - 'a'] = false;
                is_out[got[0] - 'a'] = true;
            } else {
                for (int i = 0; i < 3; i++)
                    g_assert_true(!is_wanted[i] || is_out[i]);
            }
            break;
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/workqueue/first-in-first-out-each-once", test_first_in_first_out_each_once);
    g_test_add_func("/workqueue/adds-while-it-runs-cause-one-more-run",
                    test_adds_while_it_runs_cause_one_more_run);
    g_test_add_func("/workqueue/delayed-keeps-the-earlier-time",
                    test_delayed_keeps_the_earlier_time);
    g_test_add_func("/workqueue/immediate-add-does-not-cancel-a-delayed-one",
                    test_immediate_add_does_not_cancel_a_delayed_one);
    g_test_add_func("/workqueue/no-delay-is-now", test_no_delay_is_now);
    g_test_add_func("/workqueue/failures-double-per-key", test_failures_double_per_key);
    g_test_add_func("/workqueue/bucket-is-shared-by-rate-limited-adds-only",
                    test_bucket_is_shared_by_rate_limited_adds_only);
    g_test_add_func("/workqueue/shut-down-hands-out-the-rest", test_shut_down_hands_out_the_rest);
    g_test_add_func("/workqueue/random-operations-keep-the-rules",
                    test_random_operations_keep_the_rules);
    return g_test_run();
}
