/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/line-reader.h"

#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/linux/test-tree.h"

/* (transfer full): the lines of @text, joined by '|'. */
static char *
read_lines(const char *text, gsize length)
{
    g_autofree char *dir = test_tree_new();
    g_autofree char *path = g_build_filename(dir, "file", NULL);
    g_autofree ChLineReader *reader = g_new0(ChLineReader, 1);
    GString *joined = g_string_new("");
    ch_autofd int fd = -EBADF;
    const char *line;
    gsize n;
    int result;

    g_assert_true(g_file_set_contents(path, text, (gssize)length, NULL));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ch_line_reader_init(reader, fd);
    while ((result = ch_line_reader_next(reader, &line, &n)) == 1) {
        g_string_append_len(joined, line, (gssize)n);
        g_string_append_c(joined, '|');
    }
    g_assert_cmpint(result, ==, 0);
    test_tree_remove(dir);
    return g_string_free(joined, FALSE);
}

static void
test_lines(void)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"a\n", "a|"},
        {"a", "a|"},
        {"a\nb\n", "a|b|"},
        {"a\n\nb", "a||b|"},
        {"\n", "|"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *lines = read_lines(cases[i][0], strlen(cases[i][0]));

        g_assert_cmpstr(lines, ==, cases[i][1]);
    }
}

/* More than fits into the buffer, and lines across its end. */
static void
test_long_file(void)
{
    g_autoptr(GString) text = g_string_new("");
    g_autofree char *expected = NULL;
    g_autofree char *lines = NULL;

    for (int i = 0; i < 40000; i++)
        g_string_append_printf(text, "line %d\n", i);
    expected = g_strdup(text->str);
    g_strdelimit(expected, "\n", '|');
    lines = read_lines(text->str, text->len);
    g_assert_cmpstr(lines, ==, expected);
}

/* A line that is too long is passed over, the next one is whole. */
static void
test_long_line(void)
{
    static const gsize lengths[] = {CH_LINE_MAX, CH_LINE_MAX + 1, 3 * CH_LINE_MAX + 5};

    for (gsize i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autofree char *line = g_strnfill(lengths[i], 'x');
        g_autofree char *text = g_strconcat("a\n", line, "\nb\n", NULL);
        g_autofree char *last = g_strconcat("a\n", line, NULL);
        g_autofree char *lines = read_lines(text, strlen(text));
        g_autofree char *last_lines = read_lines(last, strlen(last));

        g_assert_cmpstr(lines, ==, "a|b|");
        g_assert_cmpstr(last_lines, ==, "a|");
    }
}

static void
test_longest_line(void)
{
    g_autofree char *line = g_strnfill(CH_LINE_MAX - 1, 'x');
    g_autofree char *text = g_strconcat(line, "\nb\n", NULL);
    g_autofree char *expected = g_strconcat(line, "|b|", NULL);
    g_autofree char *lines = read_lines(text, strlen(text));

    g_assert_cmpstr(lines, ==, expected);
}

static void
test_whole(void)
{
    g_autofree char *dir = test_tree_new();
    g_autofree char *path = g_build_filename(dir, "file", NULL);
    char buffer[8];

    test_tree_write(dir, "file", "1234567");
    g_assert_cmpint(ch_read_whole(AT_FDCWD, path, buffer, sizeof(buffer)), ==, 7);
    g_assert_cmpstr(buffer, ==, "1234567");
    g_assert_cmpint(ch_read_whole(AT_FDCWD, path, buffer, 7), ==, -EFBIG);
    g_assert_cmpint(ch_read_whole(AT_FDCWD, dir, buffer, sizeof(buffer)), ==, -EISDIR);
    test_tree_remove(dir);
    g_assert_cmpint(ch_read_whole(AT_FDCWD, path, buffer, sizeof(buffer)), ==, -ENOENT);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/line-reader/lines", test_lines);
    g_test_add_func("/line-reader/long-file", test_long_file);
    g_test_add_func("/line-reader/long-line", test_long_line);
    g_test_add_func("/line-reader/longest-line", test_longest_line);
    g_test_add_func("/line-reader/whole", test_whole);
    return g_test_run();
}
