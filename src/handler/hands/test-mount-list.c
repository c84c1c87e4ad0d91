/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/mount-list.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"

typedef struct {
    const char *wanted; /* NULL: none */
    GString *seen;
} Search;

static bool
is_wanted(const char *mount_point, void *data)
{
    Search *search = data;

    g_string_append_printf(search->seen, "%s|", mount_point);
    return g_strcmp0(mount_point, search->wanted) == 0;
}

/* Returns what ch_mount_list_find() does; @expected: the mount points in order */
static int
find(const char *text, gsize n_bytes, const char *wanted, const char *expected)
{
    ch_autofd int fd = open(g_get_tmp_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    Search search = {wanted, g_string_new(NULL)};
    int result;

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, text, n_bytes), ==, (gssize)n_bytes);
    g_assert_cmpint(lseek(fd, 0, SEEK_SET), ==, 0);
    result = ch_mount_list_find(fd, CH_MOUNT_LIST_MAX_BYTES, is_wanted, &search);
    if (expected != NULL)
        g_assert_cmpstr(search.seen->str, ==, expected);
    g_string_free(search.seen, TRUE);
    return result;
}

static const struct {
    const char *text;
    const char *wanted;
    const char *expected;
    int result;
} cases[] = {
    {"", NULL, "", -ENOENT},
    {"1 2 8:1 / / rw - ext4 /dev/sda rw\n", "/", "/|", 0},
    {"1 2 8:1 / / rw - ext4 x rw\n3 1 8:1 /x /y rw - ext4 x rw\n", "/y", "/|/y|", 0},
    {"1 2 8:1 / /a\\040b\\134c rw - ext4 x rw\n", "/a b\\c", "/a b\\c|", 0},
    {"1 2 8:1 / /a\\04 rw\n1 2 8:1 / /a\\ rw\n1 2 8:1 / /\\999 rw\n", NULL, "", -ENOENT},
    {"1 2 8:1 / /a\\000b rw\n1 2 8:1 / /\\777 rw\n", NULL, "", -ENOENT},
    {"1 2 8:1 /\n\n   \n1 2 8:1 / relative rw\n1 2 3 4 /last rw\n", "/last", "/last|", 0},
    {"1 2 8:1 / /no-newline rw", "/no-newline", "", -ENOENT},
};

static void
test_lines(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(
            find(cases[i].text, strlen(cases[i].text), cases[i].wanted, cases[i].expected),
            ==,
            cases[i].result);
}

/* Far more than the buffer holds, with a line that is longer than it. */
static void
test_long(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *garbage = g_strnfill(100 * 1000, 'x');

    for (int i = 0; i < 1000; i++)
        g_string_append_printf(text, "%d 1 8:1 / /m%d rw - ext4 /dev/sda rw\n", i, i);
    g_string_append_printf(text, "1 2 3 / /%s rw\n", garbage);
    g_string_append(text, "1 2 3 / /after rw\n");
    g_assert_cmpint(find(text->str, text->len, "/after", NULL), ==, 0);
    g_assert_cmpint(find(text->str, text->len, "/m999", NULL), ==, 0);
    g_assert_cmpint(find(text->str, text->len, "/none", NULL), ==, -ENOENT);
}

static void
test_limit(void)
{
    g_autofree char *text = g_strnfill(2 * CH_MOUNT_LIST_MAX_BYTES, '\n');

    g_assert_cmpint(find(text, 2 * CH_MOUNT_LIST_MAX_BYTES, "/", ""), ==, -E2BIG);
}

static void
test_own(void)
{
    ch_autofd int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    Search search = {"/proc", g_string_new(NULL)};

    g_assert_cmpint(ch_mount_list_find(fd, CH_MOUNT_LIST_MAX_BYTES, is_wanted, &search), ==, 0);
    g_string_free(search.seen, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mount-list/lines", test_lines);
    g_test_add_func("/mount-list/long", test_long);
    g_test_add_func("/mount-list/limit", test_limit);
    g_test_add_func("/mount-list/own", test_own);
    return g_test_run();
}
