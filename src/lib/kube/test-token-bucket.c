/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/token-bucket.h"

#include "lib/base/time.h"

static void
test_starts_full_then_paces(void)
{
    ChTokenBucket bucket;

    ch_token_bucket_init(&bucket, 50, 100, 1000);
    for (int i = 0; i < 100; i++)
        g_assert_cmpint(ch_token_bucket_reserve(&bucket, 1000), ==, 0);
    for (int i = 1; i <= 500; i++)
        g_assert_cmpint(ch_token_bucket_reserve(&bucket, 1000), ==, i * 20 * CH_MS_US);
}

static void
test_take_never_reserves(void)
{
    ChTokenBucket bucket;

    ch_token_bucket_init(&bucket, 1.0 / 300, 25, 0);
    for (int i = 0; i < 25; i++)
        g_assert_true(ch_token_bucket_take(&bucket, 0));
    g_assert_false(ch_token_bucket_take(&bucket, 0));
    g_assert_false(ch_token_bucket_take(&bucket, 299 * CH_SECOND_US));
    g_assert_true(ch_token_bucket_take(&bucket, 300 * CH_SECOND_US));
    g_assert_false(ch_token_bucket_take(&bucket, 300 * CH_SECOND_US));
}

static void
test_rest_refills_up_to_the_burst(void)
{
    ChTokenBucket bucket;

    ch_token_bucket_init(&bucket, 10, 2, 0);
    g_assert_true(ch_token_bucket_take(&bucket, 0));
    g_assert_true(ch_token_bucket_take(&bucket, 3600 * CH_SECOND_US));
    g_assert_true(ch_token_bucket_take(&bucket, 3600 * CH_SECOND_US));
    g_assert_false(ch_token_bucket_take(&bucket, 3600 * CH_SECOND_US));
}

/* Many small refills add up to the same as a large one. */
static void
test_small_steps_lose_nothing(void)
{
    ChTokenBucket bucket;
    int n_taken = 0;

    ch_token_bucket_init(&bucket, 10, 1, 0);
    for (int64_t now_us = 0; now_us <= 10 * CH_SECOND_US; now_us += 7 * CH_MS_US)
        n_taken += ch_token_bucket_take(&bucket, now_us) ? 1 : 0;
    g_assert_cmpint(n_taken, >=, 94); /* each token waits for the next step of 7 ms */
    g_assert_cmpint(n_taken, <=, 101);
}

static void
test_clock_steps_back(void)
{
    ChTokenBucket bucket;

    ch_token_bucket_init(&bucket, 10, 1, 500);
    g_assert_true(ch_token_bucket_take(&bucket, 500));
    g_assert_false(ch_token_bucket_take(&bucket, 0));
    g_assert_cmpint(ch_token_bucket_reserve(&bucket, 500), ==, 100 * CH_MS_US);
}

static void
test_no_rate_no_refill(void)
{
    ChTokenBucket bucket;

    ch_token_bucket_init(&bucket, 0, 1, 0);
    g_assert_cmpint(ch_token_bucket_reserve(&bucket, 0), ==, 0);
    g_assert_cmpint(ch_token_bucket_reserve(&bucket, G_MAXINT64), ==, G_MAXINT64);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/token-bucket/starts-full-then-paces", test_starts_full_then_paces);
    g_test_add_func("/token-bucket/take-never-reserves", test_take_never_reserves);
    g_test_add_func("/token-bucket/rest-refills-up-to-the-burst",
                    test_rest_refills_up_to_the_burst);
    g_test_add_func("/token-bucket/small-steps-lose-nothing", test_small_steps_lose_nothing);
    g_test_add_func("/token-bucket/clock-steps-back", test_clock_steps_back);
    g_test_add_func("/token-bucket/no-rate-no-refill", test_no_rate_no_refill);
    return g_test_run();
}
