/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/shared-mounts.h"

#include <sched.h>
#include <sys/mount.h>

#include "lib/linux/test-tree.h"

static const struct Case {
    const char *path, *text;
    bool is_found, is_shared;
    const char *point;
} cases[] = {
    {"/shared-mounts/find/shared",
     "36 35 8:1 / /a rw shared:7 - ext4 /dev/sda1 rw\n",
     true,
     true,
     "/a"},
    {"/shared-mounts/find/private", "36 35 8:1 / /a rw - ext4 /dev/sda1 rw\n", true, false, "/a"},
    {"/shared-mounts/find/slave",
     "36 35 8:1 / /a rw master:7 - ext4 /dev/sda1 rw\n",
     true,
     false,
     "/a"},
    {"/shared-mounts/find/slave-and-shared",
     "36 35 8:1 / /a rw master:7 shared:8 - ext4 x rw\n",
     true,
     true,
     "/a"},
    {"/shared-mounts/find/not-a-tag",
     "36 35 8:1 / /a rw - ext4 shared:8 shared:9\n",
     true,
     false,
     "/a"},
    {"/shared-mounts/find/second-line",
     "35 1 8:1 / / rw shared:1 - ext4 x rw\n36 35 8:1 / /a\\040b rw - ext4 x rw\n",
     true,
     false,
     "/a\\040b"},
    {"/shared-mounts/find/other-number", "361 35 8:1 / /a rw - ext4 x rw\n", false, false, NULL},
    {"/shared-mounts/find/short", "36 35 8:1 / /a\n36\n\n", false, false, NULL},
    {"/shared-mounts/find/empty", "", false, false, NULL},
};

static void
test_find(gconstpointer data)
{
    const struct Case *c = data;
    ChSharedMount mount = {0};

    g_assert_cmpint(ch_shared_mount_find(c->text, 36, &mount), ==, c->is_found);
    g_assert_cmpint(mount.is_shared, ==, c->is_shared);
    g_assert_cmpstr(mount.point, ==, c->point);
    ch_shared_mount_clear(&mount);
}

/* field:FR-E05: the real thing, in this program's own mount namespace; kubelet's directory may be a
 * link. */
static void
test_check(void)
{
    g_autofree char *dir = test_tree_new();
    g_autofree char *mounted = g_build_filename(dir, "kubelet", NULL);
    g_autofree char *pods = g_build_filename(mounted, "pods", NULL);
    g_autofree char *link = g_build_filename(dir, "link/pods", NULL);
    g_autofree char *none = g_build_filename(dir, "none", NULL);

    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        g_test_skip("needs a mount namespace");
        test_tree_remove(dir);
        return;
    }
    test_tree_mkdir(dir, "kubelet");
    test_tree_link(dir, "link", "kubelet");
    g_assert_cmpint(mount("kubelet", mounted, "tmpfs", 0, "mode=0755"), ==, 0);
    test_tree_mkdir(mounted, "pods");
    g_assert_false(ch_shared_mounts_check("/", "/proc/self/mountinfo", pods));
    g_assert_false(ch_shared_mounts_check("/", "/proc/self/mountinfo", link));
    g_assert_cmpint(mount(NULL, mounted, NULL, MS_SHARED, NULL), ==, 0);
    g_assert_true(ch_shared_mounts_check("/", "/proc/self/mountinfo", pods));
    g_assert_true(ch_shared_mounts_check("/", "/proc/self/mountinfo", link));
    g_assert_true(ch_shared_mounts_check("/", "/proc/self/mountinfo", none)); /* not there yet */
    g_assert_true(ch_shared_mounts_check("/nonexistent", "/proc/self/mountinfo", pods));
    g_assert_cmpint(umount2(mounted, MNT_DETACH), ==, 0);
    test_tree_remove(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_find);
    g_test_add_func("/shared-mounts/check", test_check);
    return g_test_run();
}
