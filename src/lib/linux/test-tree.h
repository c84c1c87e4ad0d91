/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-tree: a temporary directory tree for tests. For test programs only.
 */

#pragma once

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* (transfer full): path of a fresh directory, 0755 */
static inline char *
test_tree_new(void)
{
    char *dir = g_dir_make_tmp("ch-test-XXXXXX", NULL);

    g_assert_nonnull(dir);
    g_assert_cmpint(g_chmod(dir, 0755), ==, 0);
    return dir;
}

/* Makes the directory @path (and its parents) in @base. */
static inline void
test_tree_mkdir(const char *base, const char *path)
{
    g_autofree char *full = g_build_filename(base, path, NULL);

    g_assert_cmpint(g_mkdir_with_parents(full, 0755), ==, 0);
}

static inline void
test_tree_write(const char *base, const char *path, const char *text)
{
    g_autofree char *full = g_build_filename(base, path, NULL);

    g_assert_true(g_file_set_contents(full, text, -1, NULL));
}

static inline void
test_tree_link(const char *base, const char *path, const char *target)
{
    g_autofree char *full = g_build_filename(base, path, NULL);

    g_assert_cmpint(symlink(target, full), ==, 0);
}

static inline struct stat
test_tree_stat(const char *base, const char *path)
{
    g_autofree char *full = g_build_filename(base, path, NULL);
    struct stat st;

    g_assert_cmpint(lstat(full, &st), ==, 0);
    return st;
}

static inline bool
test_tree_has(const char *base, const char *path)
{
    g_autofree char *full = g_build_filename(base, path, NULL);
    struct stat st;

    return lstat(full, &st) == 0;
}

/* Removes it with all that is in it, following no link. */
static inline void
test_tree_remove(const char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *child = g_build_filename(path, name, NULL);
        struct stat st;

        /* Others may remove things at the same time. */
        if (lstat(child, &st) == 0 && S_ISDIR(st.st_mode))
            test_tree_remove(child);
        else
            (void)g_unlink(child);
    }
    if (dir != NULL)
        g_dir_close(dir);
    (void)g_rmdir(path);
}
