/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/disk-use.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/small-file.h"

#define VOLUME_FILE      "disk.img"
#define MAX_NUMBER_BYTES 64

void
ch_disk_use_clear(ChDiskUse *use)
{
    g_clear_pointer(&use->what, g_free);
    g_clear_pointer(&use->within, g_free);
}

static char *
file_name(const struct stat *st)
{
    return g_strdup_printf(
        "file %" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT, (guint64)st->st_dev, (guint64)st->st_ino);
}

/* (transfer full) (nullable): of a partition, the disk that it is a part of. sysfs: a partition's
 * directory has a file `partition`, and lies in its disk's. */
static char *
whole_disk(dev_t device)
{
    g_autofree char *dir = g_strdup_printf("/sys/dev/block/%u:%u", major(device), minor(device));
    g_autofree char *mark = g_build_filename(dir, "partition", NULL);
    g_autofree char *path = g_build_filename(dir, "..", "dev", NULL);
    g_autofree char *number = NULL;

    if (!g_file_test(mark, G_FILE_TEST_EXISTS))
        return NULL;
    number = ch_small_file_read(path, MAX_NUMBER_BYTES, NULL, NULL);
    return number != NULL ? g_strconcat("block ", g_strchomp(number), NULL) : NULL;
}

/* The kernel lets nobody have it alone while it is mounted, or part of another device. */
static bool
check_idle(const char *path, GError **error)
{
    ch_autofd int fd = g_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_EXCL, 0);

    return fd >= 0 || errno != EBUSY ||
           ch_fail(error,
                   CH_ERROR_EXISTS,
                   "the device '%s' is in use by this machine: mounted, or part of another device",
                   path);
}

/* A directory stands for its disk.img, which the agent makes if it is not there yet. */
static char *
parent_of_volume(const char *path)
{
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *dir = g_path_get_dirname(path);
    struct stat st;

    return g_str_equal(base, VOLUME_FILE) && stat(dir, &st) == 0 ? file_name(&st) : NULL;
}

bool
ch_disk_use_read(const ChClaim *claim, ChDiskUse *out_use, GError **error)
{
    struct stat st;

    if (stat(claim->path, &st) < 0)
        return ch_fail_errno(error, errno, "look at '%s'", claim->path);
    if (claim->is_block ? !S_ISBLK(st.st_mode) : !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "'%s' is no %s",
                       claim->path,
                       claim->is_block ? "block device" : "file or directory");
    if (claim->is_block && !check_idle(claim->path, error))
        return false;
    if (claim->is_block)
        *out_use = (ChDiskUse){
            .what = g_strdup_printf("block %u:%u", major(st.st_rdev), minor(st.st_rdev)),
            .within = whole_disk(st.st_rdev),
        };
    else
        *out_use = (ChDiskUse){
            .what = file_name(&st),
            .within = S_ISREG(st.st_mode) ? parent_of_volume(claim->path) : NULL,
        };
    return true;
}

bool
ch_disk_use_is_shared(const ChJson *vmi, const char *volume)
{
    const ChJson *disk =
        ch_json_find(ch_json_at(vmi, "spec", "domain", "devices", "disks"), "name", volume);

    return ch_json_bool_at(disk, false, "shareable") ||
           ch_json_bool_at(disk, false, "disk", "readonly") ||
           ch_json_bool_at(disk, false, "lun", "readonly") ||
           (ch_json_has(disk, "cdrom") && ch_json_bool_at(disk, true, "cdrom", "readonly"));
}
