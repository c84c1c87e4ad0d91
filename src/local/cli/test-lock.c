/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/lock.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/errors.h"

static void
test_one_per_directory(void)
{
    g_autofree char *dir = g_dir_make_tmp("lock-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "lock", NULL);
    g_autoptr(GError) error = NULL;
    pid_t pid = 0;
    int fd;

    g_assert_false(ch_lock_is_held(dir, &pid));
    fd = ch_lock_take(dir, &error);
    g_assert_no_error(error);
    g_assert_true(ch_lock_is_held(dir, &pid));
    g_assert_cmpint(pid, ==, getpid());
    g_assert_cmpint(ch_lock_take(dir, &error), <, 0);
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_nonnull(strstr(error->message, "chandler down"));
    close(fd);
    g_assert_false(ch_lock_is_held(dir, NULL));
    g_unlink(path);
    g_rmdir(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lock/one-per-directory", test_one_per_directory);
    return g_test_run();
}
