/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/disk-use.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/errors.h"
#include "lib/base/small-file.h"
#include "lib/linux/block-device.h"

#define VOLUME_FILE         "disk.img"
#define MAX_ATTRIBUTE_BYTES 8192

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

/* (transfer full) (nullable): what sysfs says of a block device */
static char *
read_attribute(dev_t device, const char *attribute)
{
    g_autofree char *path =
        g_strdup_printf("/sys/dev/block/%u:%u/%s", major(device), minor(device), attribute);
    char *text = ch_small_file_read(path, MAX_ATTRIBUTE_BYTES, NULL, NULL);

    return text != NULL ? g_strchomp(text) : NULL;
}

static bool
check_idle(const char *path, GError **error)
{
    return ch_block_device_is_idle(path) ||
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

static void
identify_file(const char *path, const struct stat *st, ChDiskUse *out_use)
{
    *out_use = (ChDiskUse){
        .what = file_name(st),
        .within = S_ISREG(st->st_mode) ? parent_of_volume(path) : NULL,
    };
}

/* As sysfs writes it: "8:1". */
static bool
parse_device(const char *text, dev_t *out_device)
{
    char *colon = NULL;
    const guint64 n_major = g_ascii_strtoull(text, &colon, 10);

    if (*colon != ':')
        return false;
    *out_device = makedev((unsigned)n_major, (unsigned)g_ascii_strtoull(colon + 1, NULL, 10));
    return true;
}

/* A loop device is the file behind it. sysfs: a partition's directory has a file `partition`, and
 * lies in its disk's. */
static void
identify_device(dev_t device, ChDiskUse *out_use)
{
    g_autofree char *backing = read_attribute(device, "loop/backing_file");
    g_autofree char *partition = read_attribute(device, "partition");
    g_autofree char *disk = partition != NULL ? read_attribute(device, "../dev") : NULL;
    g_auto(ChDiskUse) whole = {0};
    dev_t disk_device;
    struct stat st;

    if (backing != NULL && stat(backing, &st) == 0) {
        if (S_ISBLK(st.st_mode))
            identify_device(st.st_rdev, out_use);
        else
            identify_file(backing, &st, out_use);
        return;
    }
    if (disk != NULL && parse_device(disk, &disk_device))
        identify_device(disk_device, &whole);
    *out_use = (ChDiskUse){
        .what = g_strdup_printf("block %u:%u", major(device), minor(device)),
        .within = g_steal_pointer(&whole.what),
    };
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
        identify_device(st.st_rdev, out_use);
    else
        identify_file(claim->path, &st, out_use);
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
