/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/vcpu-mask.h"

#include "lib/base/errors.h"

/* (transfer full): "0,2": those in the set, of the first 64 */
static char *
print(const ChCpuSet *set)
{
    GString *text = g_string_new("");

    for (unsigned cpu = 0; cpu < 64; cpu++)
        if (ch_cpu_set_has(set, cpu))
            g_string_append_printf(text, "%s%u", text->len > 0 ? "," : "", cpu);
    return g_string_free(text, FALSE);
}

/* spec:05-16.9#177 */
static const char *const accepted[][2] = {
    {"0-0", "0"},
    {"0-2", "0,1,2"},
    {"0-2,5-6", "0,1,2,5,6"},
    {"0-2,2-3", "0,1,2,3"},
    {"10-12", "10,11,12"},
    {"10-12,20,21", "10,11,12,20,21"},
    {" 10-12 , 20 , 21 ", "10,11,12,20,21"},
    {"  0-2  ", "0,1,2"},
    {"0", "0"},
    {"0,1,2", "0,1,2"},
    {"10", "10"},
    {"^3", ""},
    {"^0,^1", ""},
    {"^0,^1,^0", ""},
    {"^13", ""},
    {"^13,^15", ""},
    {"0-2,3", "0,1,2,3"},
    {"0-2,1", "0,1,2"},
    {"5,1-2,6", "1,2,5,6"},
    {" 6 , 1-2 , 5 ", "1,2,5,6"},
    {"0,^1", "0"},
    {"0,1,2,^3,^4", "0,1,2"},
    {"0,^0,1", "1"},
    {"^0,0", ""},
    {"0-2,^3", "0,1,2"},
    {"0-2,^1", "0,2"},
    {"^1,0-2, 3-6,^4 ", "0,2,3,5,6"},
    {"^10,0-2,3", "0,1,2,3"},
    {"^1,0-2,^5,3,10,6-6", "0,2,3,6,10"},
    {"^1,0-3,^3,4,5,6-8,^7", "0,2,4,5,6,8"},
};

static void
test_accepted(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(accepted); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *found = NULL;
        ChCpuSet set;

        g_assert_true(ch_vcpu_mask_parse(accepted[i][0], &set, &error));
        g_assert_no_error(error);
        found = print(&set);
        g_assert_cmpstr(found, ==, accepted[i][1]);
    }
}

/* spec:05-16.9#178 */
static const char *const refused[][2] = {
    {"  ", "invalid mask value '  ' in '  '"},
    {"a-b,33_", "invalid mask value 'a-b' in 'a-b,33_'"},
    {"3,3a", "invalid mask value '3a' in '3,3a'"},
    {"  ,   ", "invalid mask value '  ' in '  ,   '"},
    {"^-1", "invalid mask value '^-1' in '^-1'"},
    {"^3,^-1", "invalid mask value '^-1' in '^3,^-1'"},
    {"1-0", "invalid mask range `1-0`"},
    {"1-", "invalid mask value '1-' in '1-'"},
    {"-1", "invalid mask value '-1' in '-1'"},
    {"0,-1", "invalid mask value '-1' in '0,-1'"},
    {"^1-2", "invalid mask value '^1-2' in '^1-2'"},
    {"8192", "invalid mask value '8192' in '8192'"},
    {"0-99999999999999999999",
     "invalid mask value '0-99999999999999999999' in '0-99999999999999999999'"},
};

static void
test_refused(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;
        ChCpuSet set;

        g_assert_false(ch_vcpu_mask_parse(refused[i][0], &set, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        g_assert_cmpstr(error->message, ==, refused[i][1]);
    }
}

/* spec:05-16.9#176: without a mask all are meant, with one those that it does not name are not. */
static void
test_look_up(void)
{
    ChCpuSet set;

    g_assert_true(ch_vcpu_mask_parse("", &set, NULL));
    g_assert_true(ch_cpu_set_has(&set, 77));
    g_assert_true(ch_vcpu_mask_parse(NULL, &set, NULL));
    g_assert_true(ch_cpu_set_has(&set, 0));
    g_assert_true(ch_vcpu_mask_parse("0,^1", &set, NULL));
    g_assert_true(ch_cpu_set_has(&set, 0));
    g_assert_false(ch_cpu_set_has(&set, 1));
    g_assert_false(ch_cpu_set_has(&set, 2));
    g_assert_false(ch_cpu_set_has(&set, CH_CPU_SET_SIZE * 8));
}

static void
test_list(void)
{
    static const char *const good[][2] = {{"3", "3"}, {"0-2,7", "0,1,2,7"}, {"5,5", "5"}};
    static const char *const bad[] = {"", "^1", "1-", "2-1", " 1", "a", "1,,2"};
    g_autoptr(GError) error = NULL;
    ChCpuSet set;

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autofree char *found = NULL;

        g_assert_true(ch_cpu_list_parse(good[i][0], &set, NULL));
        found = print(&set);
        g_assert_cmpstr(found, ==, good[i][1]);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ch_cpu_list_parse(bad[i], &set, NULL));
    g_assert_true(ch_cpu_list_parse("0-100", &set, NULL));
    g_assert_false(ch_cpu_list_parse("0-101", &set, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
    g_assert_cmpstr(
        error->message, ==, "rejecting expanding CPU array for safety reasons, limit is 100");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vcpu-mask/accepted", test_accepted);
    g_test_add_func("/vcpu-mask/refused", test_refused);
    g_test_add_func("/vcpu-mask/look-up", test_look_up);
    g_test_add_func("/vcpu-mask/list", test_list);
    return g_test_run();
}
