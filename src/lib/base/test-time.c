/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/time.h"

#include "lib/base/errors.h"

static const struct {
    const char *text;
    int64_t expect_us;
} times[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"2026-11-29T16:19:40.245147Z", 1795969180245147},
    {"2026-11-29T17:19:40.2451479+01:00", 1795969180245147},
    {"2026-11-29T10:49:40-05:30", 1795969180000000},
    {"2024-02-29T23:59:59Z", 1709251199000000},
    {"1969-12-31T23:59:59.5Z", -500000},
    {"0001-01-01T00:00:00Z", -62135596800000000},
    {"9999-12-31T23:59:59Z", 253402300799000000},
};

static void
test_reads_times(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(times); i++) {
        g_autoptr(GError) error = NULL;
        int64_t us = 1;

        g_test_message("%s", times[i].text);
        g_assert_true(ch_time_parse(times[i].text, &us, &error));
        g_assert_no_error(error);
        g_assert_cmpint(us, ==, times[i].expect_us);
    }
}

static void
test_refuses_what_is_no_time(void)
{
    static const char *const texts[] = {
        "",
        "2026-11-29",
        "2026-11-29T16:19:40",
        "2026-11-29 16:19:40Z",
        "2026-11-29t16:19:40z",
        "2026-11-29T16:19:40.Z",
        "2026-11-29T16:19:40Zjunk",
        "2026-11-29T16:19:40+0100",
        "2026-11-29T16:19:40+24:00",
        "2026-00-29T16:19:40Z",
        "2026-13-29T16:19:40Z",
        "2026-02-29T16:19:40Z",
        "1900-02-29T16:19:40Z",
        "2026-11-00T16:19:40Z",
        "2026-11-31T16:19:40Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T16:60:40Z",
        "2026-11-29T16:19:60Z",
        "+026-11-29T16:19:40Z",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        int64_t us = 42;

        g_test_message("%s", texts[i]);
        g_assert_false(ch_time_parse(texts[i], &us, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        g_assert_cmpint(us, ==, 42);
    }
}

static void
test_prints_times(void)
{
    static const struct {
        int64_t us;
        const char *seconds, *micros;
    } cases[] = {
        {1795969180245147, "2026-11-29T16:19:40Z", "2026-11-29T16:19:40.245147Z"},
        {1000, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001000Z"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z"},
        {-62135596800000000, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *seconds = ch_time_format(cases[i].us);
        g_autofree char *micros = ch_time_format_micro(cases[i].us);

        g_assert_cmpstr(seconds, ==, cases[i].seconds);
        g_assert_cmpstr(micros, ==, cases[i].micros);
    }
}

static const struct {
    const char *text;
    int64_t expect_us;
} durations[] = {
    {"0", 0},
    {"-0", 0},
    {"0s", 0},
    {"30s", 30 * CH_SECOND_US},
    {"1m30s", 90 * CH_SECOND_US},
    {"1.5h", 5400 * CH_SECOND_US},
    {"-1.5h", -5400 * CH_SECOND_US},
    {"+5ms", 5000},
    {".5s", 500000},
    {"1.s", CH_SECOND_US},
    {"3us", 3},
    {"3\u00b5s", 3},
    {"3\u03bcs", 3},
    {"1999ns", 1},
    {"999ns1ns", 1},
    {"0.333333333333333333333333h", 1199999999},
    {"2562047h47m16.854775807s", 9223372036854775},
    {"100h", 360000 * CH_SECOND_US},
};

static void
test_reads_durations(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(durations); i++) {
        g_autoptr(GError) error = NULL;
        int64_t us = 1;

        g_test_message("%s", durations[i].text);
        g_assert_true(ch_duration_parse(durations[i].text, &us, &error));
        g_assert_no_error(error);
        g_assert_cmpint(us, ==, durations[i].expect_us);
    }
}

static void
test_refuses_what_is_no_duration(void)
{
    static const char *const texts[] = {
        "",
        "-",
        "3",
        "s",
        ".s",
        ".",
        "1d",
        "1 s",
        "1s ",
        "1S",
        "--1s",
        "1s-1s",
        "00",
        "2562047h47m16.854775808s",
        "99999999999999999999s",
        "9223372036854775807m",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        int64_t us = 42;

        g_test_message("%s", texts[i]);
        g_assert_false(ch_duration_parse(texts[i], &us, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        g_assert_cmpint(us, ==, 42);
    }
}

static void
test_clocks_run(void)
{
    const int64_t now = ch_time_now_us();

    g_assert_cmpint(now, >, 0);
    g_assert_cmpint(ch_time_now_us(), >=, now);
    g_assert_cmpint(ch_time_wall_us(), >, 1700000000 * CH_SECOND_US);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/time/reads-times", test_reads_times);
    g_test_add_func("/time/refuses-what-is-no-time", test_refuses_what_is_no_time);
    g_test_add_func("/time/prints-times", test_prints_times);
    g_test_add_func("/time/reads-durations", test_reads_durations);
    g_test_add_func("/time/refuses-what-is-no-duration", test_refuses_what_is_no_duration);
    g_test_add_func("/time/clocks-run", test_clocks_run);
    return g_test_run();
}
