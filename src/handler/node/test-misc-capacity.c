/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/misc-capacity.h"

#include <errno.h>

#include "lib/base/errors.h"
#include "lib/linux/test-tree.h"

static const struct Case {
    const char *path, *text;
    bool is_fine;
    int64_t capacity;
} cases[] = {
    /* spec:05-16.5#126 */
    {"/misc-capacity/tdx", "tdx 10\nsev 5\n", true, 10},
    {"/misc-capacity/missing", "sev 5\n", false, 0},
    {"/misc-capacity/one-field", "tdx\n", false, 0},
    {"/misc-capacity/no-number", "tdx abc\n", false, 0},

    {"/misc-capacity/empty", "", false, 0},
    {"/misc-capacity/no-newline", "sev 5\ntdx 7", true, 7},
    {"/misc-capacity/blanks", "  tdx \t 7 \r\n", true, 7},
    {"/misc-capacity/three-fields", "tdx 7 8\n", false, 0},
    {"/misc-capacity/first-good-line", "tdx 7 8\ntdx\ntdx 9\ntdx 10\n", true, 9},
    {"/misc-capacity/prefix", "tdx2 7\nxtdx 8\n", false, 0},
    {"/misc-capacity/zero", "tdx 0\n", true, 0},
    {"/misc-capacity/negative", "tdx -1\n", true, -1},
    {"/misc-capacity/max", "tdx max\n", false, 0},
    {"/misc-capacity/trailing", "tdx 10x\n", false, 0},
    {"/misc-capacity/largest", "tdx 9223372036854775807\n", true, G_MAXINT64},
    {"/misc-capacity/too-large", "tdx 9223372036854775808\n", false, 0},
};

static void
test_parse(gconstpointer data)
{
    const struct Case *c = data;
    g_autoptr(GError) error = NULL;
    int64_t capacity = 77;

    g_assert_cmpint(ch_misc_capacity_parse(c->text, "tdx", &capacity, &error), ==, c->is_fine);
    g_assert_cmpint(capacity, ==, c->capacity);
    g_assert_cmpint(error == NULL, ==, c->is_fine);
}

static void
test_texts(void)
{
    g_autoptr(GError) error = NULL;
    int64_t capacity;

    g_assert_false(ch_misc_capacity_parse("sev 5\n", "tdx", &capacity, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_NOT_FOUND);
    g_assert_cmpstr(error->message, ==, "key tdx not found in misc.capacity");
    g_clear_error(&error);
    g_assert_false(ch_misc_capacity_parse("tdx x\n", "tdx", &capacity, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_file(void)
{
    g_autofree char *dir = test_tree_new();
    g_autofree char *path = g_build_filename(dir, "misc.capacity", NULL);
    g_autofree char *large = g_strnfill(1 << 20, 'x');
    g_autoptr(GError) error = NULL;
    int64_t capacity = 77;

    g_assert_false(ch_misc_capacity_read(path, "sev", &capacity, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_assert_cmpint(capacity, ==, 0);
    g_clear_error(&error);
    test_tree_write(dir, "misc.capacity", "tdx 10\nsev 5\n");
    g_assert_true(ch_misc_capacity_read(path, "sev", &capacity, &error));
    g_assert_no_error(error);
    g_assert_cmpint(capacity, ==, 5);
    test_tree_write(dir, "misc.capacity", large);
    g_assert_false(ch_misc_capacity_read(path, "sev", &capacity, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
    test_tree_remove(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_parse);
    g_test_add_func("/misc-capacity/texts", test_texts);
    g_test_add_func("/misc-capacity/file", test_file);
    return g_test_run();
}
