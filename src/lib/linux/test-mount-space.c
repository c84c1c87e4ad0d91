/* SPDX-License-Identifier: Apache-2.0 */

/* Needs root; every test makes its mounts in namespaces of this process. */

#include "lib/linux/mount-space.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char *top, *shared, *below, *odd;
} Tree;

static void
tree_init(Tree *tree)
{
    tree->top = g_dir_make_tmp("test-mount-space-XXXXXX", NULL);
    g_assert_nonnull(tree->top);
    tree->shared = g_build_filename(tree->top, "shared", NULL);
    tree->below = g_build_filename(tree->shared, "below", NULL);
    tree->odd = g_build_filename(tree->shared, "with a blank\\and more", NULL);
    g_assert_cmpint(g_mkdir_with_parents(tree->below, 0755), ==, 0);
    g_assert_cmpint(g_mkdir(tree->odd, 0755), ==, 0);
}

/* Fails where something is still mounted. */
static void
tree_clear(Tree *tree)
{
    g_assert_cmpint(g_rmdir(tree->odd), ==, 0);
    g_assert_cmpint(g_rmdir(tree->below), ==, 0);
    g_assert_cmpint(g_rmdir(tree->shared), ==, 0);
    g_assert_cmpint(g_rmdir(tree->top), ==, 0);
    g_free(tree->top);
    g_free(tree->shared);
    g_free(tree->below);
    g_free(tree->odd);
}

static bool
has_file(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "file", NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void
mount_with_file(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "file", NULL);

    g_assert_cmpint(ch_mount_tmpfs(dir, "64k"), ==, 0);
    g_assert_true(g_file_set_contents(path, "x", 1, NULL));
}

/* What is mounted outside later appears inside; what is mounted inside stays there. */
static void
test_shared_directory(void)
{
    Tree tree;
    int to_child[2], to_parent[2];
    char c = 0;
    pid_t pid;
    int status = 0;

    tree_init(&tree);
    g_assert_cmpint(ch_mount_share(tree.shared), ==, 0);
    g_assert_cmpint(ch_mount_share(tree.shared), ==, 0);
    g_assert_true(pipe2(to_child, O_CLOEXEC) == 0 && pipe2(to_parent, O_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0) {
        if (ch_mount_space_enter() < 0 || write(to_parent[1], "e", 1) != 1 ||
            read(to_child[0], &c, 1) != 1 || !has_file(tree.below) ||
            ch_mount_tmpfs(tree.odd, "64k") < 0)
            _exit(1);
        _exit(write(to_parent[1], "m", 1) == 1 && read(to_child[0], &c, 1) == 1 ? 0 : 2);
    }
    g_assert_cmpint(read(to_parent[0], &c, 1), ==, 1);
    mount_with_file(tree.below);
    g_assert_cmpint(write(to_child[1], "m", 1), ==, 1);
    g_assert_cmpint(read(to_parent[0], &c, 1), ==, 1);
    g_assert_cmpint(umount2(tree.odd, 0), ==, -1); /* nothing came out */
    g_assert_cmpint(write(to_child[1], "e", 1), ==, 1);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpint(ch_mount_unshare(tree.shared), ==, 0); /* with what lies on it */
    g_assert_cmpint(ch_mount_unshare(tree.shared), ==, 0);
    g_assert_false(has_file(tree.below));
    tree_clear(&tree);
}

static void
test_detach_below(void)
{
    Tree tree;

    tree_init(&tree);
    g_assert_cmpint(ch_mount_detach_below(tree.shared), ==, 0);
    mount_with_file(tree.below);
    mount_with_file(tree.below); /* on top */
    mount_with_file(tree.odd);
    g_assert_cmpint(ch_mount_detach_below(tree.below), ==, 0); /* not what lies on it itself */
    g_assert_true(has_file(tree.below));
    g_assert_cmpint(ch_mount_detach_below(tree.shared), ==, 0);
    g_assert_false(has_file(tree.below));
    g_assert_false(has_file(tree.odd));
    tree_clear(&tree);
}

static void
test_detach_below_a_link(void)
{
    Tree tree;

    tree_init(&tree);
    g_autofree char *link = g_build_filename(tree.top, "link", NULL);
    g_assert_cmpint(symlink(tree.shared, link), ==, 0);
    mount_with_file(tree.below);
    g_assert_cmpint(ch_mount_detach_below(link), ==, 0);
    g_assert_false(has_file(tree.below));
    g_assert_cmpint(g_unlink(link), ==, 0);
    tree_clear(&tree);
}

static void
test_nothing_there(void)
{
    g_assert_cmpint(ch_mount_share("/nonexistent/x"), ==, -ENOENT);
    g_assert_cmpint(ch_mount_unshare("/nonexistent/x"), ==, -ENOENT);
    g_assert_cmpint(ch_mount_detach_below("/nonexistent/x"), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 77; /* needs root */
    g_test_add_func("/mount-space/shared-directory", test_shared_directory);
    g_test_add_func("/mount-space/detach-below", test_detach_below);
    g_test_add_func("/mount-space/detach-below-a-link", test_detach_below_a_link);
    g_test_add_func("/mount-space/nothing-there", test_nothing_there);
    return g_test_run();
}
