/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/selinux.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/linux/test-tree.h"

#define ENFORCE "sys/fs/selinux/enforce"

/* spec:05-16.8#152 spec:02-14.13#15 field:FR-Q03: without policy, and unclear */
static void
test_modes(void)
{
    g_autofree char *dir = test_tree_new();
    g_autofree char *label = g_build_filename(dir, "label", NULL);

    g_assert_cmpint(ch_selinux_mode(dir, label), ==, CH_SELINUX_ABSENT);
    test_tree_mkdir(dir, "sys/fs/selinux");
    g_assert_cmpint(ch_selinux_mode(dir, label), ==, CH_SELINUX_ABSENT);
    test_tree_write(dir, ENFORCE, "0");
    g_assert_cmpint(ch_selinux_mode(dir, label), ==, CH_SELINUX_PERMISSIVE);
    test_tree_write(dir, ENFORCE, "1");
    g_assert_cmpint(ch_selinux_mode(dir, label), ==, CH_SELINUX_ENFORCING);
    test_tree_write(dir, ENFORCE, "what?");
    g_assert_cmpint(ch_selinux_mode(dir, label), ==, CH_SELINUX_PERMISSIVE);
    test_tree_write(dir, "label", "system_u:system_r:spc_t:s0");
    test_tree_write(dir, ENFORCE, "1\n");
    g_assert_cmpint(ch_selinux_mode(dir, label), ==, CH_SELINUX_ENFORCING);
    test_tree_write(dir, "label", "kernel\n");
    g_assert_cmpint(ch_selinux_mode(dir, label), ==, CH_SELINUX_ABSENT);
    test_tree_remove(dir);
}

/* A root that cannot be entered says nothing: our own does. */
static void
test_root_out_of_reach(void)
{
    g_assert_cmpint(ch_selinux_mode("/nonexistent", CH_SELINUX_OWN_LABEL),
                    ==,
                    ch_selinux_mode("/", CH_SELINUX_OWN_LABEL));
}

/* One that cannot be read or written, as of a device or socket. */
static void
test_by_descriptor(const char *file)
{
    const int fd = open(file, O_PATH | O_CLOEXEC);
    char text[64] = "";

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ch_selinux_label_fd(fd, "a:b:c:s1"), ==, 0);
    g_assert_cmpint(ch_selinux_label_fd(fd, "a:b:c:s1"), ==, 0); /* it has it */
    g_assert_cmpint(getxattr(file, "security.selinux", text, sizeof(text)), ==, 9);
    g_assert_cmpstr(text, ==, "a:b:c:s1");
    close(fd);
    g_assert_cmpint(ch_selinux_label_fd(fd, "a:b:c:s1"), ==, -ENOENT);
}

static void
test_label(void)
{
    g_autofree char *dir = test_tree_new();
    g_autofree char *file = g_build_filename(dir, "file", NULL);
    g_autofree char *link = g_build_filename(dir, "link", NULL);
    char text[64] = "";
    int result;

    test_tree_write(dir, "file", "");
    test_tree_link(dir, "link", "file");
    result = ch_selinux_label_file(file, "a:b:c:s0");
    if (result == -EOPNOTSUPP || result == -EPERM) {
        g_test_skip("needs root, and a file system that keeps security attributes");
    } else {
        g_assert_cmpint(result, ==, 0);
        g_assert_cmpint(getxattr(file, "security.selinux", text, sizeof(text)), ==, 9);
        g_assert_cmpstr(text, ==, "a:b:c:s0");
        test_by_descriptor(file);
    }
    g_assert_cmpint(ch_selinux_label_file(link, "a:b:c:s0"), ==, -ELOOP);
    g_assert_cmpint(ch_selinux_label_file("/nonexistent", "a:b:c:s0"), ==, -ENOENT);
    test_tree_remove(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/selinux/modes", test_modes);
    g_test_add_func("/selinux/root-out-of-reach", test_root_out_of_reach);
    g_test_add_func("/selinux/label", test_label);
    return g_test_run();
}
