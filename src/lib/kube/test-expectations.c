/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/expectations.h"

#include "lib/base/time.h"

static void
test_armed_until_the_echo(void)
{
    g_autoptr(ChExpectations) expectations = ch_expectations_new(CH_EXPECTATION_TIMEOUT_US);

    g_assert_true(ch_expectations_are_satisfied(expectations, "ns/a", 0));
    ch_expectations_set(expectations, "ns/a", 1, 0);
    g_assert_false(ch_expectations_are_satisfied(expectations, "ns/a", 1));
    g_assert_true(ch_expectations_are_satisfied(expectations, "ns/b", 1));
    ch_expectations_set(expectations, "ns/a", 0, 2);
    g_assert_true(ch_expectations_are_satisfied(expectations, "ns/a", 3));
}

/* spec:01#90 */
static void
test_times_out_after_five_minutes(void)
{
    g_autoptr(ChExpectations) expectations = ch_expectations_new(CH_EXPECTATION_TIMEOUT_US);
    const int64_t expiry_us = 7 + 300 * CH_SECOND_US;

    ch_expectations_set(expectations, "k", 1, 7);
    g_assert_cmpint(ch_expectations_expiry_us(expectations, "k"), ==, expiry_us);
    g_assert_false(ch_expectations_are_satisfied(expectations, "k", expiry_us - 1));
    g_assert_true(ch_expectations_are_satisfied(expectations, "k", expiry_us));
}

static void
test_nothing_expected_never_expires(void)
{
    g_autoptr(ChExpectations) expectations = ch_expectations_new(CH_EXPECTATION_TIMEOUT_US);

    g_assert_cmpint(ch_expectations_expiry_us(expectations, "k"), ==, -1);
    ch_expectations_set(expectations, "k", 0, 0);
    g_assert_cmpint(ch_expectations_expiry_us(expectations, "k"), ==, -1);
}

static void
test_delete_forgets(void)
{
    g_autoptr(ChExpectations) expectations = ch_expectations_new(CH_EXPECTATION_TIMEOUT_US);

    ch_expectations_set(expectations, "k", 1, 0);
    ch_expectations_delete(expectations, "k");
    ch_expectations_delete(expectations, "k");
    g_assert_true(ch_expectations_are_satisfied(expectations, "k", 0));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/expectations/armed-until-the-echo", test_armed_until_the_echo);
    g_test_add_func("/expectations/times-out-after-five-minutes",
                    test_times_out_after_five_minutes);
    g_test_add_func("/expectations/nothing-expected-never-expires",
                    test_nothing_expected_never_expires);
    g_test_add_func("/expectations/delete-forgets", test_delete_forgets);
    return g_test_run();
}
