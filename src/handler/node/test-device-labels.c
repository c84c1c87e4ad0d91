/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/device-labels.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/linux/test-tree.h"

typedef struct {
    char *dir, *first, *second;
    const char *paths[3];
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = test_tree_new();
    f->first = g_build_filename(f->dir, "first", NULL);
    f->second = g_build_filename(f->dir, "second", NULL);
    test_tree_write(f->dir, "first", "");
    test_tree_write(f->dir, "second", "");
    f->paths[0] = f->first;
    f->paths[1] = f->second;
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    test_tree_remove(f->dir);
    g_free(f->dir);
    g_free(f->first);
    g_free(f->second);
}

static bool
is_labelled(const char *path)
{
    char text[64] = "";

    return getxattr(path, "security.selinux", text, sizeof(text)) > 0 &&
           g_str_equal(text, "system_u:object_r:container_file_t:s0");
}

static void
test_sets(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_device_labels_set("/nonexistent", f->paths, CH_SELINUX_ABSENT, &error));
    g_assert_false(is_labelled(f->first));
    g_assert_true(ch_device_labels_set("/nonexistent", f->paths, CH_SELINUX_ENFORCING, &error));
    g_assert_no_error(error);
    if (ch_selinux_label_file(f->first, "x") < 0) {
        g_test_skip("needs root, and a file system that keeps security attributes");
        return;
    }
    g_assert_true(ch_device_labels_set("/nonexistent", f->paths, CH_SELINUX_PERMISSIVE, &error));
    g_assert_true(is_labelled(f->first));
    g_assert_true(is_labelled(f->second));
}

/* Those of the host are others' too. */
static void
test_hosts_own(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_device_labels_set("", f->paths, CH_SELINUX_ENFORCING, &error));
    g_assert_no_error(error);
    g_assert_false(is_labelled(f->first));
    g_assert_false(is_labelled(f->second));
}

/* field:FR-Q03: a device that is not there ends an enforcing node's agent, no other's */
static void
test_missing(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    f->paths[0] = "/nonexistent";
    g_assert_true(ch_device_labels_set("/nonexistent", f->paths, CH_SELINUX_PERMISSIVE, &error));
    g_assert_false(ch_device_labels_set("/nonexistent", f->paths, CH_SELINUX_ENFORCING, &error));
    g_assert_true(g_str_has_prefix(error->message, "error relabeling required files: "));
}

/* field:FR-Q04: nothing can be labelled there */
static void
test_file_system_without_labels(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    const int errnum = -ch_selinux_label_file("/proc/version", "x");

    g_assert_true(errnum == EOPNOTSUPP || errnum == EPERM || errnum == EROFS || errnum == EACCES);
    f->paths[0] = "/proc/version";
    g_assert_true(ch_device_labels_set("/nonexistent", f->paths, CH_SELINUX_ENFORCING, &error));
    g_assert_no_error(error);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ch_log_init("test");
    g_test_add("/device-labels/sets", Fixture, NULL, set_up, test_sets, tear_down);
    g_test_add("/device-labels/hosts-own", Fixture, NULL, set_up, test_hosts_own, tear_down);
    g_test_add("/device-labels/missing", Fixture, NULL, set_up, test_missing, tear_down);
    g_test_add("/device-labels/file-system-without-labels",
               Fixture,
               NULL,
               set_up,
               test_file_system_without_labels,
               tear_down);
    return g_test_run();
}
