/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/small-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"

#define LIMIT 8192

typedef struct {
    char *dir, *path;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = g_dir_make_tmp("small-file-XXXXXX", NULL);
    f->path = g_build_filename(f->dir, "file", NULL);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    (void)g_remove(f->path);
    (void)g_rmdir(f->dir);
    g_free(f->dir);
    g_free(f->path);
}

static void
assert_fails(const Fixture *f, GQuark domain, int code)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_small_file_read(f->path, LIMIT, NULL, &error));
    g_assert_error(error, domain, code);
}

static void
test_limit(Fixture *f, gconstpointer data)
{
    g_autofree char *full = g_strnfill(LIMIT + 1, 'x');
    g_autofree char *text = NULL;
    gsize length = 0;

    g_assert_true(g_file_set_contents(f->path, full, LIMIT, NULL));
    text = ch_small_file_read(f->path, LIMIT, &length, NULL);
    g_assert_cmpuint(length, ==, LIMIT);
    g_assert_cmpuint(strlen(text), ==, LIMIT);
    g_assert_true(g_file_set_contents(f->path, full, LIMIT + 1, NULL));
    assert_fails(f, CH_ERROR, CH_ERROR_LIMIT);
    (void)g_remove(f->path);
    g_assert_cmpint(symlink("/dev/zero", f->path), ==, 0); /* without end */
    assert_fails(f, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_nul(Fixture *f, gconstpointer data)
{
    g_assert_true(g_file_set_contents(f->path, "a\0b", 3, NULL));
    assert_fails(f, CH_ERROR, CH_ERROR_INVALID);
}

/* None of them may make the reader wait. */
static void
test_no_file(Fixture *f, gconstpointer data)
{
    g_autofree char *empty = NULL;
    ch_autofd int writer = -EBADF;

    assert_fails(f, CH_ERRNO, ENOENT);
    g_assert_cmpint(mkdir(f->path, 0755), ==, 0);
    assert_fails(f, CH_ERRNO, EISDIR);
    g_assert_cmpint(g_rmdir(f->path), ==, 0);

    g_assert_cmpint(mkfifo(f->path, 0600), ==, 0);
    empty = ch_small_file_read(f->path, LIMIT, NULL, NULL);
    g_assert_cmpstr(empty, ==, "");
    writer = open(f->path, O_RDWR | O_CLOEXEC); /* and says nothing */
    g_assert_cmpint(writer, >=, 0);
    assert_fails(f, CH_ERRNO, EAGAIN);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/small-file/limit", Fixture, NULL, set_up, test_limit, tear_down);
    g_test_add("/small-file/nul", Fixture, NULL, set_up, test_nul, tear_down);
    g_test_add("/small-file/what-is-no-file", Fixture, NULL, set_up, test_no_file, tear_down);
    return g_test_run();
}
