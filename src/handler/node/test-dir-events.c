/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/dir-events.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/linux/test-tree.h"

#define NAME "multipathd.socket"

typedef struct {
    char *dir; /* owned */
    int fd;    /* owned */
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = test_tree_new();
    f->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    g_assert_cmpint(f->fd, >=, 0);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    test_tree_remove(f->dir);
    g_free(f->dir);
    if (f->fd >= 0)
        close(f->fd);
}

static void
begin(const Fixture *f)
{
    g_assert_cmpint(inotify_add_watch(f->fd,
                                      f->dir,
                                      IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                          IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR),
                    >=,
                    0);
}

static unsigned
take(const Fixture *f)
{
    return ch_dir_events_read(f->fd, NAME);
}

static void
make(const Fixture *f, const char *name)
{
    g_autofree char *path = g_build_filename(f->dir, name, NULL);

    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
}

static void
drop(const Fixture *f, const char *name)
{
    g_autofree char *path = g_build_filename(f->dir, name, NULL);

    g_assert_cmpint(g_remove(path), ==, 0);
}

static void
move(const Fixture *f, const char *from, const char *to)
{
    g_autofree char *old_path = g_build_filename(f->dir, from, NULL);
    g_autofree char *new_path = g_build_filename(f->dir, to, NULL);

    g_assert_cmpint(g_rename(old_path, new_path), ==, 0);
}

/* spec:05-16.8#157: it is there; it goes, comes, is replaced; others do. */
static void
test_one_name(Fixture *f, gconstpointer data)
{
    make(f, NAME);
    begin(f);
    g_assert_cmpuint(take(f), ==, 0);
    drop(f, NAME);
    g_assert_cmpuint(take(f), ==, CH_DIR_CHANGED);
    g_assert_cmpuint(take(f), ==, 0);
    make(f, NAME);
    g_assert_cmpuint(take(f), ==, CH_DIR_CHANGED);
    make(f, "other");
    make(f, NAME ".new");
    make(f, "multipathd");
    g_assert_cmpuint(take(f), ==, 0);
    move(f, NAME ".new", NAME); /* another inode under the name */
    g_assert_cmpuint(take(f), ==, CH_DIR_CHANGED);
    drop(f, "other");
    drop(f, "multipathd");
    g_assert_cmpuint(take(f), ==, 0);
    move(f, NAME, "away");
    g_assert_cmpuint(take(f), ==, CH_DIR_CHANGED);
}

static void
test_among_many(Fixture *f, gconstpointer data)
{
    g_autofree char *long_name = g_strnfill(255, 'n');

    begin(f);
    for (int i = 0; i < 500; i++) {
        make(f, long_name);
        drop(f, long_name);
    }
    g_assert_cmpuint(take(f), ==, 0);
    for (int i = 0; i < 1000; i++) {
        make(f, i == 500 ? NAME : "other");
        drop(f, i == 500 ? NAME : "other");
    }
    g_assert_cmpuint(take(f), ==, CH_DIR_CHANGED);
}

/* The queue's end: nobody knows what came after it. */
static void
test_too_many(Fixture *f, gconstpointer data)
{
    begin(f);
    for (int i = 0; i < 20000; i++) {
        make(f, i % 2 == 0 ? "a" : "b"); /* the same event twice in a row would be one */
        drop(f, i % 2 == 0 ? "a" : "b");
    }
    g_assert_cmpuint(take(f), ==, CH_DIR_CHANGED);
    g_assert_cmpuint(take(f), ==, 0);
}

static void
test_directory_goes(Fixture *f, gconstpointer data)
{
    begin(f);
    test_tree_remove(f->dir);
    g_assert_cmpuint(take(f), ==, CH_DIR_LOST);
    test_tree_mkdir(f->dir, ".");
}

static void
test_directory_is_moved(Fixture *f, gconstpointer data)
{
    g_autofree char *away = g_strconcat(f->dir, ".away", NULL);

    begin(f);
    g_assert_cmpint(g_rename(f->dir, away), ==, 0);
    g_assert_cmpuint(take(f), ==, CH_DIR_LOST);
    g_assert_cmpint(g_rename(away, f->dir), ==, 0);
}

static void
test_no_inotify(Fixture *f, gconstpointer data)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    g_assert_cmpuint(ch_dir_events_read(fd, NAME), ==, CH_DIR_CHANGED | CH_DIR_LOST);
    close(fd);
    g_assert_cmpuint(ch_dir_events_read(-1, NAME), ==, CH_DIR_CHANGED | CH_DIR_LOST);
}

#define ADD(name, func) g_test_add("/dir-events/" name, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("one-name", test_one_name);
    ADD("among-many", test_among_many);
    ADD("too-many", test_too_many);
    ADD("directory-goes", test_directory_goes);
    ADD("directory-is-moved", test_directory_is_moved);
    ADD("no-inotify", test_no_inotify);
    return g_test_run();
}
