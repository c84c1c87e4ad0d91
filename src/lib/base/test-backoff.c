/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/backoff.h"
#include "lib/base/time.h"

/* The informers' (spec 01 §3.2). */
static const ChBackoffSpec reflector = {
    .initial_us = 800 * CH_MS_US,
    .cap_us = 30 * CH_SECOND_US,
    .factor = 2,
    .jitter = 1,
    .reset_after_us = 120 * CH_SECOND_US,
};

static void
test_doubles_up_to_the_cap(void)
{
    static const int expect_ms[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    ChBackoff backoff;

    ch_backoff_init(&backoff, &reflector);
    for (gsize i = 0; i < G_N_ELEMENTS(expect_ms); i++)
        g_assert_cmpint(ch_backoff_next(&backoff, 0, 0), ==, expect_ms[i] * CH_MS_US);
}

static void
test_jitter_does_not_accumulate(void)
{
    ChBackoff backoff;

    ch_backoff_init(&backoff, &reflector);
    g_assert_cmpint(ch_backoff_next(&backoff, 0, 0.5), ==, 1200 * CH_MS_US);
    g_assert_cmpint(ch_backoff_next(&backoff, 0, 0.5), ==, 2400 * CH_MS_US);
}

static void
test_a_long_pause_starts_over(void)
{
    ChBackoff backoff;

    ch_backoff_init(&backoff, &reflector);
    ch_backoff_next(&backoff, 0, 0);
    g_assert_cmpint(ch_backoff_next(&backoff, 120 * CH_SECOND_US, 0), ==, 1600 * CH_MS_US);
    g_assert_cmpint(ch_backoff_next(&backoff, 240 * CH_SECOND_US + 1, 0), ==, 800 * CH_MS_US);
}

static void
test_reset_starts_over(void)
{
    ChBackoff backoff;

    ch_backoff_init(&backoff, &reflector);
    ch_backoff_next(&backoff, 0, 0);
    ch_backoff_reset(&backoff);
    g_assert_cmpint(ch_backoff_next(&backoff, 0, 0), ==, 800 * CH_MS_US);
}

static void
test_no_pause_limit_never_starts_over(void)
{
    ChBackoffSpec spec = reflector;
    ChBackoff backoff;

    spec.reset_after_us = 0;
    ch_backoff_init(&backoff, &spec);
    ch_backoff_next(&backoff, 0, 0);
    g_assert_cmpint(ch_backoff_next(&backoff, G_MAXINT64, 0), ==, 1600 * CH_MS_US);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/backoff/doubles-up-to-the-cap", test_doubles_up_to_the_cap);
    g_test_add_func("/backoff/jitter-does-not-accumulate", test_jitter_does_not_accumulate);
    g_test_add_func("/backoff/a-long-pause-starts-over", test_a_long_pause_starts_over);
    g_test_add_func("/backoff/reset-starts-over", test_reset_starts_over);
    g_test_add_func("/backoff/no-pause-limit-never-starts-over",
                    test_no_pause_limit_never_starts_over);
    return g_test_run();
}
