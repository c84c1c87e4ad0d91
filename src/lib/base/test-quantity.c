/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/quantity.h"

#include "lib/base/errors.h"

/* nano = units * 10^9 + rest */
static const struct {
    const char *text;
    int64_t units; /* rounded away from zero */
    int64_t rest;  /* nano minus the units cut towards zero */
    const char *canonical;
} good[] = {
    {"0", 0, 0, "0"},
    {"-0", 0, 0, "0"},
    {"000Ki", 0, 0, "0"},
    {"0e9", 0, 0, "0"},
    {"1", 1, 0, "1"},
    {"+1", 1, 0, "1"},
    {"007", 7, 0, "7"},
    {"1.", 1, 0, "1"},
    {".5", 1, 500000000, "500m"},
    {"-.5", -1, -500000000, "-500m"},
    {"1500m", 2, 500000000, "1500m"},
    {"-1500m", -2, -500000000, "-1500m"},
    {"1.5", 2, 500000000, "1500m"},
    {"100m", 1, 100000000, "100m"},
    {"1n", 1, 1, "1n"},
    {"1u", 1, 1000, "1u"},
    {"0.1n", 1, 1, "1n"},
    {"-0.1n", -1, -1, "-1n"},
    {"1.1n", 1, 2, "2n"},
    {"0.0000000001", 1, 1, "1n"},
    {"1e-1000", 1, 1, "1e-9"},
    {"1k", 1000, 0, "1k"},
    {"1000", 1000, 0, "1k"},
    {"1M", 1000000, 0, "1M"},
    {"1G", 1000000000, 0, "1G"},
    {"1024M", 1024000000, 0, "1024M"},
    {"1T", 1000000000000, 0, "1T"},
    {"1P", 1000000000000000, 0, "1P"},
    {"1E", 1000000000000000000, 0, "1E"},
    {"1e3", 1000, 0, "1e3"},
    {"1E3", 1000, 0, "1e3"},
    {"1e9", 1000000000, 0, "1e9"},
    {"12e+1", 120, 0, "120"},
    {"1e-3", 1, 1000000, "1e-3"},
    {"12345e-2", 124, 450000000, "123450e-3"},
    {"1Ki", 1024, 0, "1Ki"},
    {"1024Ki", 1048576, 0, "1Mi"},
    {"2049Ki", 2098176, 0, "2049Ki"},
    {"1953125Ki", 2000000000, 0, "1953125Ki"},
    {"1025Ki", 1049600, 0, "1025Ki"},
    {"1Mi", 1048576, 0, "1Mi"},
    {"0.5Gi", 536870912, 0, "512Mi"},
    {"1.5Gi", 1610612736, 0, "1536Mi"},
    {"1Ti", 1099511627776, 0, "1Ti"},
    {"1Pi", 1125899906842624, 0, "1Pi"},
    {"1Ei", 1152921504606846976, 0, "1Ei"},
    {"0.5Ki", 512, 0, "512"},
    {"1.0001Ki", 1025, 102400000, "1024102400u"},
    {"0.0001Ki", 1, 102400000, "102400u"},
    {"-1Gi", -1073741824, 0, "-1Gi"},
    {"0.00000000000000000000000000000000000001Gi", 1, 1, "1n"},
    {"0.3333333333333333333333333333333333333333333333Ei",
     384307168202282326,
     333333334,
     "384307168202282325333333334n"},
    {"9223372036854775807", G_MAXINT64, 0, "9223372036854775807"},
    {"-9223372036854775807", -G_MAXINT64, 0, "-9223372036854775807"},
    {"9223372036854775806.5", G_MAXINT64, 500000000, "9223372036854775806500m"},
    {"8Ei", G_MAXINT64, 0, "9223372036854775807"},
    {"100Ei", G_MAXINT64, 0, "9223372036854775807"},
    {"99999999999999999999999999Ki", G_MAXINT64, 0, "9223372036854775807"},
};

/* field:FR-R04 */
static void
test_reads_and_prints(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *canonical = NULL;
        ChQuantity quantity, again;

        g_test_message("%s", good[i].text);
        g_assert_true(ch_quantity_parse(good[i].text, &quantity, &error));
        g_assert_no_error(error);
        g_assert_cmpint(ch_quantity_units(&quantity), ==, good[i].units);
        g_assert_cmpint((int64_t)(quantity.nano % 1000000000), ==, good[i].rest);

        canonical = ch_quantity_print(&quantity);
        g_assert_cmpstr(canonical, ==, good[i].canonical);
        g_assert_true(ch_quantity_parse(canonical, &again, NULL));
        g_assert_cmpint(ch_quantity_compare(&quantity, &again), ==, 0);
    }
}

static void
test_refuses(void)
{
    static const char *const texts[] = {
        "",      "+",     "-",      ".",     "Ki",     "e3",    "1e",        "1e+",
        "1e3.5", "1e3Ki", " 1Gi",   "1.1.M", "1 Ki",   " 1",    "1K",        "1ki",
        "1kI",   "1mi",   "1Kii",   "1Kim",  "1+1.0M", "0.1am", "aoeu",      ".5i",
        "1i",    "--1",   "-3.01i", "0x10",  "1,5",    "1e3e3", "1\xc2\xb5",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        ChQuantity quantity = {.nano = 42};

        g_test_message("%s", texts[i]);
        g_assert_false(ch_quantity_parse(texts[i], &quantity, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        g_assert_true(quantity.nano == 42);
    }
}

static void
test_limits(void)
{
    g_autofree char *longest = g_strnfill(CH_QUANTITY_MAX_TEXT - 1, '0');
    g_autofree char *too_long = g_strnfill(CH_QUANTITY_MAX_TEXT, '0');
    const char *const texts[] = {
        "9223372036854775808",
        "9223372036854775807.1",
        "10E",
        "1e19",
        "1e30",
        "1e99999999999999999999",
        too_long,
    };
    ChQuantity quantity;

    g_assert_true(ch_quantity_parse(longest, &quantity, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", texts[i]);
        g_assert_false(ch_quantity_parse(texts[i], &quantity, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
    }
}

static void
test_compares_by_value(void)
{
    static const struct {
        const char *a, *b;
        int expect;
    } cases[] = {
        {"1Gi", "1024Mi", 0},
        {"1", "1000m", 0},
        {"1e3", "1k", 0},
        {"1G", "1Gi", -1},
        {"1", "999m", 1},
        {"-1", "1n", -1},
        {"8Ei", "7E", 1},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        ChQuantity a, b;

        g_assert_true(ch_quantity_parse(cases[i].a, &a, NULL));
        g_assert_true(ch_quantity_parse(cases[i].b, &b, NULL));
        g_assert_cmpint(ch_quantity_compare(&a, &b), ==, cases[i].expect);
        g_assert_cmpint(ch_quantity_compare(&b, &a), ==, -cases[i].expect);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quantity/reads-and-prints", test_reads_and_prints);
    g_test_add_func("/quantity/refuses", test_refuses);
    g_test_add_func("/quantity/limits", test_limits);
    g_test_add_func("/quantity/compares-by-value", test_compares_by_value);
    return g_test_run();
}
