/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/metrics-disk.h"

#include <glib/gstdio.h>
#include <string.h>

static const char body[] = "<metrics>\n</metrics>\n";

/* What a guest's vm-dump-metrics wants of it. */
static void
test_format(void)
{
    g_autofree char *dir = g_dir_make_tmp("metrics-disk-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "vhostmd0", NULL);
    g_autofree char *disk = NULL;
    g_autoptr(GError) error = NULL;
    gsize n_bytes = 0;

    g_assert_true(ch_metrics_disk_make(path, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(path, &disk, &n_bytes, NULL));
    g_assert_cmpuint(n_bytes, ==, 262144);
    g_assert_true(memcmp(disk, "mvbd\0\0\0\0", 8) == 0);
    g_assert_true(memcmp(disk + 8, "\0\0\x07\x25\0\0\0\x15", 8) == 0);
    g_assert_cmpstr(disk + 16, ==, body);

    g_assert_true(g_file_set_contents(path, "the agent's", -1, NULL));
    g_assert_true(ch_metrics_disk_make(path, NULL));
    g_clear_pointer(&disk, g_free);
    g_assert_true(g_file_get_contents(path, &disk, NULL, NULL));
    g_assert_cmpstr(disk, ==, "the agent's");
    (void)g_unlink(path);
    g_assert_false(ch_metrics_disk_make("/nonexistent/dir/x", &error));
    g_assert_nonnull(error);
    (void)g_rmdir(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/metrics-disk/format", test_format);
    return g_test_run();
}
