/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/disk-use.h"

#include <errno.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/json/test-text.h"
#include "lib/linux/command.h"

/* The same disk, whichever way it is named; another one is another. */
static void
test_files(void)
{
    g_autofree char *dir = g_dir_make_tmp("disk-use-XXXXXX", NULL);
    g_autofree char *image = g_build_filename(dir, "disk.img", NULL);
    g_autofree char *link = g_build_filename(dir, "link.img", NULL);
    g_autofree char *other = g_build_filename(dir, "other.img", NULL);
    const char *const argv[] = {"rm", "-rf", "--", dir, NULL};
    g_auto(ChDiskUse) of_dir = {0}, of_image = {0}, of_link = {0}, of_other = {0};

    g_assert_true(g_file_set_contents(image, "x", 1, NULL));
    g_assert_true(g_file_set_contents(other, "x", 1, NULL));
    g_assert_cmpint(symlink("disk.img", link), ==, 0);
    g_assert_true(ch_disk_use_read(&(ChClaim){dir, "u", false}, &of_dir, NULL));
    g_assert_true(ch_disk_use_read(&(ChClaim){image, "u", false}, &of_image, NULL));
    g_assert_true(ch_disk_use_read(&(ChClaim){link, "u", false}, &of_link, NULL));
    g_assert_true(ch_disk_use_read(&(ChClaim){other, "u", false}, &of_other, NULL));
    g_assert_cmpstr(of_image.within, ==, of_dir.what);
    g_assert_cmpstr(of_image.what, ==, of_link.what);
    g_assert_cmpstr(of_image.what, !=, of_other.what);
    g_assert_null(of_other.within);
    g_assert_null(of_dir.within);
    g_assert_true(ch_command_run(&(ChCommand){argv, G_USEC_PER_SEC * 10, 0, 0}, NULL, NULL));
}

static void
test_what_is_none(void)
{
    g_auto(ChDiskUse) use = {0};
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_disk_use_read(&(ChClaim){"/nonexistent/x", "u", false}, &use, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);
    g_assert_false(ch_disk_use_read(&(ChClaim){"/dev/null", "u", false}, &use, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_false(ch_disk_use_read(&(ChClaim){"/", "u", true}, &use, &error));
    g_assert_cmpstr(error->message, ==, "'/' is no block device");
    g_assert_null(use.what);
}

#define DISK(text) "{\"spec\":{\"domain\":{\"devices\":{\"disks\":[{\"name\":\"v\"," text "}]}}}}"

static const struct SharedCase {
    const char *vmi;
    bool is_shared;
} shared[] = {
    {DISK("\"disk\":{}"), false},
    {DISK("\"disk\":{\"readonly\":true}"), true},
    {DISK("\"disk\":{\"readonly\":false}"), false},
    {DISK("\"disk\":{},\"shareable\":true"), true},
    {DISK("\"lun\":{\"readonly\":true}"), true},
    {DISK("\"cdrom\":{}"), true},
    {DISK("\"cdrom\":{\"readonly\":false}"), false},
    {"{}", false},
};

static void
test_shared(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(shared); i++) {
        g_autoptr(ChJson) vmi = parse_json(shared[i].vmi);

        g_assert_cmpint(ch_disk_use_is_shared(vmi, "v"), ==, shared[i].is_shared);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/disk-use/files", test_files);
    g_test_add_func("/disk-use/what-is-none", test_what_is_none);
    g_test_add_func("/disk-use/shared", test_shared);
    return g_test_run();
}
