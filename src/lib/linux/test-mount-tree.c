/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/mount-tree.h"

#include <sched.h>

#include "lib/base/fd.h"
#include "lib/linux/test-tree.h"

static bool
is_root(const char *path)
{
    ch_autofd int fd = open(path, O_PATH | O_CLOEXEC);
    bool result = false;

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ch_mount_is_root(fd, &result), ==, 0);
    return result;
}

/* spec:05-16.2#27 */
static void
test_is_root(void)
{
    bool result;

    g_assert_true(is_root("/"));
    g_assert_true(is_root("/proc"));
    g_assert_false(is_root("/proc/self"));
    g_assert_cmpint(ch_mount_is_root(-1, &result), ==, -EBADF);
}

/* Of a file, in one namespace; the fallback for old kernels does the same. */
static void
test_clone(gconstpointer data)
{
    const bool is_old_kernel = GPOINTER_TO_INT(data);
    g_autofree char *dir = NULL;
    g_autofree char *source = NULL;
    g_autofree char *target = NULL;
    ch_autofd int source_fd = -EBADF;
    ch_autofd int target_fd = -EBADF;
    ch_autofd int tree_fd = -EBADF;

    if (geteuid() != 0) {
        g_test_skip("needs root: mounts");
        return;
    }
    g_assert_cmpint(unshare(CLONE_NEWNS), ==, 0);
    g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
    dir = test_tree_new();
    test_tree_write(dir, "source", "text");
    test_tree_write(dir, "target", "");
    source = g_build_filename(dir, "source", NULL);
    target = g_build_filename(dir, "target", NULL);
    source_fd = open(source, O_PATH | O_CLOEXEC);
    target_fd = open(target, O_PATH | O_CLOEXEC);

    tree_fd = ch_mount_tree_clone(source_fd);
    g_assert_cmpint(tree_fd, >=, 0);
    if (!is_old_kernel)
        g_assert_cmpint(ch_mount_tree_restrict(tree_fd, true), ==, 0);
    g_assert_cmpint(ch_mount_tree_attach(tree_fd, target_fd), ==, 0);
    if (is_old_kernel)
        g_assert_cmpint(ch_mount_tree_restrict_attached(tree_fd), ==, 0);
    g_assert_true(is_root(target));
    g_assert_cmpint(open(target, O_RDWR | O_CLOEXEC), ==, -1);
    g_assert_cmpint(errno, ==, EROFS);
    g_assert_cmpint(ch_mount_detach_root(tree_fd), ==, 0);
    g_assert_false(is_root(target));
    test_tree_remove(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mount-tree/is-root", test_is_root);
    g_test_add_data_func("/mount-tree/clone", GINT_TO_POINTER(0), test_clone);
    g_test_add_data_func("/mount-tree/clone-before-5.12", GINT_TO_POINTER(1), test_clone);
    return g_test_run();
}
