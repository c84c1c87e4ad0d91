/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/token-source.h"

#include <glib/gstdio.h>

#include "lib/base/errors.h"

#define S G_GINT64_CONSTANT(1000000)

typedef struct {
    char *directory, *file;
} Fixture;

static void
write_token(Fixture *f, const char *text)
{
    g_assert_true(g_file_set_contents(f->file, text, -1, NULL));
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->directory = g_dir_make_tmp("token-XXXXXX", NULL);
    f->file = g_build_filename(f->directory, "token", NULL);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_remove(f->file);
    g_rmdir(f->directory);
    g_free(f->file);
    g_free(f->directory);
}

static void
test_reread(Fixture *f, gconstpointer data)
{
    g_autoptr(ChTokenSource) source = ch_token_source_new(NULL, f->file);
    g_autoptr(GError) error = NULL;

    write_token(f, " one\n");
    g_assert_true(ch_token_source_load(source, 100 * S, &error));
    g_assert_cmpstr(ch_token_source_get(source, 100 * S), ==, "one");
    write_token(f, "two");
    g_assert_cmpstr(ch_token_source_get(source, 149 * S), ==, "one");
    g_assert_cmpstr(ch_token_source_get(source, 150 * S), ==, "two");
    g_remove(f->file);
    g_assert_cmpstr(ch_token_source_get(source, 300 * S), ==, "two");
    write_token(f, "bad\r\ntoken: x");
    g_assert_cmpstr(ch_token_source_get(source, 400 * S), ==, "two");
    write_token(f, "three");
    g_assert_cmpstr(ch_token_source_get(source, 401 * S), ==, "three");
}

static void
test_refused(Fixture *f, gconstpointer data)
{
    g_autoptr(ChTokenSource) source = ch_token_source_new("fixed", f->file);

    write_token(f, "one");
    g_assert_cmpstr(ch_token_source_get(source, 100 * S), ==, "one");
    write_token(f, "two");
    ch_token_source_refused(source, 99 * S); /* that request carried an older one */
    g_assert_cmpstr(ch_token_source_get(source, 101 * S), ==, "one");
    ch_token_source_refused(source, 101 * S);
    g_assert_cmpstr(ch_token_source_get(source, 102 * S), ==, "two");
}

static void
test_unreadable(Fixture *f, gconstpointer data)
{
    g_autoptr(ChTokenSource) source = ch_token_source_new("fixed", f->file);
    g_autoptr(ChTokenSource) none = ch_token_source_new(NULL, NULL);
    g_autofree char *huge = g_strnfill(70000, 'x');
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_token_source_load(source, 0, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);
    g_assert_cmpstr(ch_token_source_get(source, 0), ==, "fixed");
    write_token(f, "");
    g_assert_false(ch_token_source_load(source, 0, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_true(g_file_set_contents(f->file, "a\0b", 3, NULL));
    g_assert_false(ch_token_source_load(source, 0, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    write_token(f, huge);
    g_assert_false(ch_token_source_load(source, 0, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);

    g_assert_true(ch_token_source_load(none, 0, NULL));
    g_assert_null(ch_token_source_get(none, 0));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/token-source/reread", Fixture, NULL, set_up, test_reread, tear_down);
    g_test_add("/token-source/refused", Fixture, NULL, set_up, test_refused, tear_down);
    g_test_add("/token-source/unreadable", Fixture, NULL, set_up, test_unreadable, tear_down);
    return g_test_run();
}
