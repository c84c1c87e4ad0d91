/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/seccomp-profile.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/linux/test-tree.h"

#define DIR     "seccomp/kubevirt"
#define PROFILE DIR "/kubevirt.json"

/* Spec 05 §12.1 names both. */
static void
test_bytes(void)
{
    g_autofree char *sum =
        g_compute_checksum_for_string(G_CHECKSUM_SHA256, ch_seccomp_profile_text, -1);

    g_assert_cmpuint(strlen(ch_seccomp_profile_text), ==, 12118);
    g_assert_cmpstr(sum, ==, "2719a3758ab6fb07057a8d90522e49dfc7843b5c6abf4d0508622052eb2599d4");
}

static void
assert_installed(const char *root)
{
    g_autofree char *path = g_build_filename(root, PROFILE, NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_seccomp_profile_install(root, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, ch_seccomp_profile_text);
    g_assert_cmpint(test_tree_stat(root, PROFILE).st_mode & 07777, ==, 0700);
}

/* spec:05-16.8#155 */
static void
test_install(void)
{
    static const char *const others[] = {"", "{}", "\xff\xfe"};
    g_autofree char *root = test_tree_new();
    g_autofree char *large = g_strnfill(1 << 20, 'x');
    struct stat first;

    assert_installed(root);
    g_assert_cmpint(test_tree_stat(root, DIR).st_mode & 07777, ==, 0700);
    first = test_tree_stat(root, PROFILE);
    assert_installed(root); /* nothing is written */
    g_assert_cmpuint(test_tree_stat(root, PROFILE).st_ino, ==, first.st_ino);
    g_assert_cmpint(test_tree_stat(root, PROFILE).st_mtim.tv_nsec, ==, first.st_mtim.tv_nsec);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        test_tree_write(root, PROFILE, others[i]);
        assert_installed(root);
    }
    test_tree_write(root, PROFILE, large);
    assert_installed(root);
    test_tree_remove(root);
}

/* spec:05-16.8#155: what cannot be read is an error */
static void
test_unreadable(void)
{
    g_autofree char *root = test_tree_new();
    g_autoptr(GError) error = NULL;

    test_tree_mkdir(root, PROFILE);
    g_assert_false(ch_seccomp_profile_install(root, &error));
    g_assert_true(g_str_has_prefix(error->message, "failed to install default seccomp profile: "));
    g_clear_error(&error);
    test_tree_write(root, "file", "");
    {
        g_autofree char *no_root = g_build_filename(root, "file", NULL);

        g_assert_false(ch_seccomp_profile_install(no_root, &error));
        g_assert_error(error, CH_ERRNO, ENOTDIR);
    }
    test_tree_remove(root);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/seccomp-profile/bytes", test_bytes);
    g_test_add_func("/seccomp-profile/install", test_install);
    g_test_add_func("/seccomp-profile/unreadable", test_unreadable);
    return g_test_run();
}
