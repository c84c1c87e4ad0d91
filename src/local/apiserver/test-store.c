/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/store.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "local/apiserver/test-support.h"

typedef struct {
    char *dir;
    char *path;
} Fixture;

static void
fixture_init(Fixture *f)
{
    f->dir = g_dir_make_tmp("chandler-store-XXXXXX", NULL);
    f->path = g_build_filename(f->dir, "objects.db", NULL);
}

static void
fixture_clear(Fixture *f)
{
    test_remove_dir(f->dir);
    g_free(f->dir);
    g_free(f->path);
}

static ChStore *
open_store(const Fixture *f)
{
    g_autoptr(GError) error = NULL;
    ChStore *store = ch_store_open(f->path, &error);

    g_assert_no_error(error);
    return store;
}

static void
put(ChStore *store, const char *namespace_, const char *name, const char *text)
{
    const ChStoreKey key = {"pods", namespace_, name};
    g_autoptr(GError) error = NULL;

    ch_store_put(store, &key, text, 1, &error);
    g_assert_no_error(error);
}

static char *
get(ChStore *store, const char *namespace_, const char *name)
{
    const ChStoreKey key = {"pods", namespace_, name};
    g_autoptr(GError) error = NULL;
    char *text = NULL;

    ch_store_get(store, &key, &text, &error);
    g_assert_no_error(error);
    return text;
}

static void
test_objects_and_revision_survive_reopening(void)
{
    Fixture f;
    ChStore *store;
    const ChStoreKey gone = {"pods", "a", "y"};
    g_autofree char *x = NULL;
    struct stat about;

    fixture_init(&f);
    store = open_store(&f);
    g_assert_cmpint(ch_store_revision(store), ==, 1);
    put(store, "a", "x", "one");
    put(store, "a", "y", "two");
    put(store, "a", "x", "three");
    g_assert_true(ch_store_remove(store, &gone, NULL));
    g_assert_cmpint(ch_store_revision(store), ==, 5);
    ch_store_close(store);

    g_assert_cmpint(stat(f.path, &about), ==, 0);
    g_assert_cmpint(about.st_mode & 0777, ==, 0600);
    store = open_store(&f);
    g_assert_cmpint(ch_store_revision(store), ==, 5);
    x = get(store, "a", "x");
    g_assert_cmpstr(x, ==, "three");
    g_assert_null(get(store, "a", "y"));
    ch_store_close(store);
    fixture_clear(&f);
}

static bool
append_name(const ChStoreKey *key, const char *text, gsize length, gpointer data)
{
    g_string_append_printf(data, "%s/%s=%.*s ", key->namespace_, key->name, (int)length, text);
    return true;
}

static char *
list(ChStore *store, const char *namespace_, const ChStoreKey *after)
{
    GString *names = g_string_new(NULL);

    g_assert_true(ch_store_list(store, "pods", namespace_, after, append_name, names, NULL));
    return g_string_free(names, FALSE);
}

static void
test_lists_are_ordered_and_can_start_anywhere(void)
{
    Fixture f;
    ChStore *store;
    const ChStoreKey after = {"pods", "a", "2"};
    const ChStoreKey other = {"nodes", "", "n"};
    g_autofree char *all = NULL;
    g_autofree char *rest = NULL;
    g_autofree char *one = NULL;
    g_autofree char *none = NULL;

    fixture_init(&f);
    store = open_store(&f);
    put(store, "b", "1", "B1");
    put(store, "a", "2", "A2");
    put(store, "a", "1", "A1");
    put(store, "a-b", "1", "AB1");
    g_assert_true(ch_store_put(store, &other, "N", 1, NULL));
    all = list(store, NULL, NULL);
    g_assert_cmpstr(all, ==, "a/1=A1 a/2=A2 a-b/1=AB1 b/1=B1 ");
    rest = list(store, NULL, &after);
    g_assert_cmpstr(rest, ==, "a-b/1=AB1 b/1=B1 ");
    one = list(store, "a", NULL);
    g_assert_cmpstr(one, ==, "a/1=A1 a/2=A2 ");
    none = list(store, "a", &after);
    g_assert_cmpstr(none, ==, "");
    ch_store_close(store);
    fixture_clear(&f);
}

static void
test_age_is_that_of_the_last_write(void)
{
    Fixture f;
    ChStore *store;
    const ChStoreKey old = {"pods", "a", "old"}, renewed = {"pods", "a", "renewed"};
    g_autoptr(GString) names = g_string_new(NULL);

    fixture_init(&f);
    store = open_store(&f);
    g_assert_true(ch_store_put(store, &old, "1", 100, NULL));
    g_assert_true(ch_store_put(store, &renewed, "1", 100, NULL));
    g_assert_true(ch_store_put(store, &renewed, "2", 200, NULL));
    g_assert_true(ch_store_list_older(store, "pods", 200, append_name, names, NULL));
    g_assert_cmpstr(names->str, ==, "a/old=1 ");
    ch_store_close(store);
    fixture_clear(&f);
}

/* Writes objects "0", "1", ... and reports each on @fd once it is acknowledged. Does not return. */
static void
write_until_killed(const char *path, int fd)
{
    ChStore *store = ch_store_open(path, NULL);

    for (int i = 0;; i++) {
        g_autofree char *name = g_strdup_printf("%d", i);

        put(store, "a", name, name);
        if (write(fd, &i, sizeof(i)) != sizeof(i))
            _exit(1);
    }
}

static void
test_kill_loses_nothing_acknowledged(void)
{
    Fixture f;

    fixture_init(&f);
    for (int round = 0; round < 3; round++) {
        int ends[2], last = -1, number;
        const int wanted = 5 + 20 * round;
        ChStore *store;
        pid_t child;

        g_assert_cmpint(pipe(ends), ==, 0);
        child = fork();
        if (child == 0)
            write_until_killed(f.path, ends[1]);
        close(ends[1]);
        while (last < wanted && read(ends[0], &number, sizeof(number)) == sizeof(number))
            last = number;
        g_assert_cmpint(last, ==, wanted);
        kill(child, SIGKILL);
        while (read(ends[0], &number, sizeof(number)) == sizeof(number))
            last = number; /* acknowledged before the kill arrived */
        close(ends[0]);
        waitpid(child, NULL, 0);

        store = open_store(&f); /* checks the database too */
        for (int i = 0; i <= last; i++) {
            g_autofree char *name = g_strdup_printf("%d", i);
            g_autofree char *text = get(store, "a", name);

            g_assert_cmpstr(text, ==, name);
        }
        g_assert_cmpint(ch_store_revision(store), >=, last + 2);
        ch_store_close(store);
    }
    fixture_clear(&f);
}

static void
test_failed_write_changes_nothing(void)
{
    Fixture f;
    ChStore *store;
    const ChStoreKey key = {"pods", "a", "x"};
    g_autofree char *huge = g_strnfill(1u << 20, 'x');
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    struct rlimit before, tight;

    fixture_init(&f);
    store = open_store(&f);
    put(store, "a", "x", "one");
    /* as a full disk does, but for this process alone */
    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    tight = before;
    tight.rlim_cur = 128u << 10;
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &tight), ==, 0);
    g_assert_false(ch_store_put(store, &key, huge, 1, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_FAILED);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    g_assert_cmpint(ch_store_revision(store), ==, 2);
    text = get(store, "a", "x");
    g_assert_cmpstr(text, ==, "one");
    put(store, "a", "x", "two"); /* and it goes on afterwards */
    g_assert_cmpint(ch_store_revision(store), ==, 3);
    ch_store_close(store);
    fixture_clear(&f);
}

static void
assert_refused(const Fixture *f, const char *words)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_store_open(f->path, &error));
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, words));
}

static void
test_unusable_files_are_named(void)
{
    Fixture f;
    ChStore *store;
    FILE *file;

    fixture_init(&f);
    store = open_store(&f);
    assert_refused(&f, "another process");
    for (int i = 0; i < 100; i++) {
        g_autofree char *name = g_strdup_printf("%d", i);

        put(store, "a", name, "some text that takes its place in a page of the database");
    }
    ch_store_close(store);

    file = fopen(f.path, "r+");
    fseek(file, 4096, SEEK_SET);
    for (int i = 0; i < 8192; i++)
        fputc(0xa5, file);
    fclose(file);
    assert_refused(&f, f.path);

    g_assert_true(g_file_set_contents(f.path, "this is no database, but long enough", -1, NULL));
    assert_refused(&f, f.path);
    g_unlink(f.path);
    g_assert_cmpint(g_mkdir(f.path, 0700), ==, 0);
    assert_refused(&f, "is a directory");
    g_rmdir(f.path);
    fixture_clear(&f);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/store/reopen", test_objects_and_revision_survive_reopening);
    g_test_add_func("/store/list", test_lists_are_ordered_and_can_start_anywhere);
    g_test_add_func("/store/age", test_age_is_that_of_the_last_write);
    g_test_add_func("/store/kill-loses-nothing", test_kill_loses_nothing_acknowledged);
    g_test_add_func("/store/failed-write-changes-nothing", test_failed_write_changes_nothing);
    g_test_add_func("/store/unusable-files", test_unusable_files_are_named);
    return g_test_run();
}
