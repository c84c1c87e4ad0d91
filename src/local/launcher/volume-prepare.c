/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/volume-prepare.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/quantity.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"
#include "local/launcher/cloud-init.h"
#include "local/launcher/metrics-disk.h"

#define HELPER_TIMEOUT_US (60 * CH_SECOND_US)

#define NANO_PER_MIB ((__int128)(1 << 20) * 1000000000)

static bool
make_parent(const char *path, GError **error)
{
    g_autofree char *dir = g_path_get_dirname(path);

    if (g_mkdir_with_parents(dir, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", dir);
    return true;
}

static bool
run_helper(const char *const *argv, bool reads_hostile_input, char **out_stdout, GError **error)
{
    const ChCommand command = {argv, HELPER_TIMEOUT_US, .reads_hostile_input = reads_hostile_input};

    return ch_command_run(&command, out_stdout, error);
}

/* What a complete file is called before it has its name. */
static char *
staging_path(const char *path)
{
    return g_strconcat(path, ".staging", NULL);
}

static bool
publish(const char *staging, const char *path, GError **error)
{
    if (g_rename(staging, path) < 0)
        return ch_fail_errno(error, errno, "rename '%s'", staging);
    return true;
}

/* An image that names another file would make QEMU open it: refused, whoever built the image. */
static bool
inspect_image(const char *path, const char *volume, char **out_format, GError **error)
{
    const char *const argv[] = {"qemu-img", "info", "--output=json", "-U", path, NULL};
    g_autofree char *text = NULL;

    if (!run_helper(argv, true, &text, error)) {
        g_prefix_error(error, "failed to get container disk info: ");
        return false;
    }
    g_autoptr(ChJson) info = ch_json_parse(text, -1, error);
    if (info == NULL) {
        g_prefix_error(error, "failed to get container disk info: ");
        return false;
    }
    const char *format = ch_json_string_at(info, "format");
    if (ch_json_at(info, "backing-filename") != NULL ||
        ch_json_at(info, "format-specific", "data", "data-file") != NULL)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "invalid image in containerDisk %s: it has a backing file or a data file",
                       volume);
    if (g_strcmp0(format, "raw") != 0 && g_strcmp0(format, "qcow2") != 0)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "invalid image in containerDisk %s: format %s is not supported",
                       volume,
                       format == NULL ? "unknown" : format);
    *out_format = g_strdup(format);
    return true;
}

static bool
prepare_container_disk(const ChVolume *volume,
                       const ChPaths *paths,
                       const char *path,
                       GError **error)
{
    g_autofree char *base = ch_volume_container_disk_path(paths, volume->index);
    g_autofree char *staging = staging_path(path);
    g_autofree char *format = NULL;

    if (!g_file_test(base, G_FILE_TEST_IS_REGULAR)) /* whoever opens a FIFO would wait for ever */
        return ch_fail(
            error,
            CH_ERROR_NOT_FOUND,
            "preparing ephemeral container disk images failed: the image of containerDisk "
            "%s is not there, or no file: '%s'",
            volume->name,
            base);
    if (g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    if (!inspect_image(base, volume->name, &format, error))
        return false;
    const char *const argv[] = {
        "qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", format, staging, NULL};
    if (!run_helper(argv, true, NULL, error) || !publish(staging, path, error)) {
        g_prefix_error(error, "preparing ephemeral container disk images failed: ");
        return false;
    }
    return true;
}

static bool
prepare_empty_disk(const ChVolume *volume, const char *path, GError **error)
{
    g_autofree char *staging = staging_path(path);
    const char *capacity = ch_json_string_at(volume->source, "capacity");
    ChQuantity quantity;

    if (g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    if (!ch_quantity_parse(capacity == NULL ? "" : capacity, &quantity, error)) {
        g_prefix_error(error, "creating empty disks failed: volume %s: ", volume->name);
        return false;
    }
    if (quantity.nano < NANO_PER_MIB)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "creating empty disks failed: the size for volume %s is too low: at least "
                       "1Mi is possible",
                       volume->name);
    g_autofree char *size =
        g_strdup_printf("%" G_GINT64_FORMAT "M", (int64_t)(quantity.nano / NANO_PER_MIB));
    const char *const argv[] = {"qemu-img", "create", "-q", "-f", "qcow2", staging, size, NULL};
    if (!run_helper(argv, false, NULL, error) || !publish(staging, path, error)) {
        g_prefix_error(error, "creating empty disks failed: ");
        return false;
    }
    return true;
}

static bool
write_files(const GArray *files, const char *dir, GError **error)
{
    for (guint i = 0; i < files->len; i++) {
        const ChCloudInitFile *file = &g_array_index(files, ChCloudInitFile, i);
        g_autofree char *path = g_build_filename(dir, file->path, NULL);

        if (!make_parent(path, error) ||
            !g_file_set_contents(path, file->text, (gssize)file->length, error))
            return false;
    }
    return true;
}

bool
ch_volume_is_usable(ChVolumeKind kind, const char *path)
{
    const bool is_block = kind == CH_VOLUME_PLUGGED_BLOCK;
    ch_autofd int fd =
        open(path, (is_block ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && (is_block ? S_ISBLK(st.st_mode) : S_ISREG(st.st_mode));
}

static bool
prepare_cloud_init(const ChVolume *volume, const ChJson *vmi, const char *path, GError **error)
{
    g_autofree char *staging = staging_path(path);
    g_autofree char *dir = g_strconcat(path, ".d", NULL);
    g_autoptr(GArray) files = ch_cloud_init_files(volume, vmi, error);
    const char *const argv[] = {"xorrisofs",
                                "-quiet",
                                "-output",
                                staging,
                                "-volid",
                                ch_cloud_init_label(volume->kind),
                                "-joliet",
                                "-rock",
                                "-partition_cyl_align",
                                "on",
                                dir,
                                NULL};

    if (files == NULL) {
        g_prefix_error(error, "ReadCloudInitVolumeDataSource failed: ");
        return false;
    }
    if (!write_files(files, dir, error) || !run_helper(argv, false, NULL, error) ||
        !publish(staging, path, error)) {
        g_prefix_error(error, "PrepareLocalPath failed: ");
        return false;
    }
    return true;
}

static bool
prepare_metrics_disk(const char *path, GError **error)
{
    if (ch_metrics_disk_make(path, error))
        return true;
    g_prefix_error(error, "failed to create downwardMetrics disk: ");
    return false;
}

/* The agent made it, and waits itself until it is there. */
static bool
check_plugged(const ChVolume *volume, const char *path, GError **error)
{
    return ch_volume_is_usable(volume->kind, path) ||
           ch_fail(error,
                   CH_ERROR_NOT_FOUND,
                   "volume %s is not there, or cannot be opened: '%s'",
                   volume->name,
                   path);
}

static bool
prepare(const ChVolume *volume,
        const ChJson *vmi,
        const ChPaths *paths,
        const char *path,
        GError **error)
{
    if (!make_parent(path, error))
        return false;
    switch (volume->kind) {
    case CH_VOLUME_CONTAINER_DISK:
        return prepare_container_disk(volume, paths, path, error);
    case CH_VOLUME_EMPTY_DISK:
        return prepare_empty_disk(volume, path, error);
    case CH_VOLUME_CLOUD_INIT_NO_CLOUD:
    case CH_VOLUME_CLOUD_INIT_CONFIG_DRIVE:
        return prepare_cloud_init(volume, vmi, path, error);
    case CH_VOLUME_DOWNWARD_METRICS:
        return prepare_metrics_disk(path, error);
    case CH_VOLUME_PLUGGED_FILE:
    case CH_VOLUME_PLUGGED_BLOCK:
        return check_plugged(volume, path, error);
    case CH_VOLUME_INVALID:
    case CH_VOLUME_N:
        break;
    }
    g_return_val_if_reached(false);
}

/* File systems without direct I/O refuse the flag with EINVAL. */
static bool
supports_direct_io(const char *path)
{
    ch_autofd int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);

    return fd >= 0;
}

static bool
examine(const ChJson *disk,
        const ChVolume *volume,
        const ChPaths *paths,
        const char *path,
        GArray *facts,
        GError **error)
{
    g_autofree char *base = volume->kind == CH_VOLUME_CONTAINER_DISK
                                ? ch_volume_container_disk_path(paths, volume->index)
                                : NULL;
    const bool is_direct = supports_direct_io(path) && (base == NULL || supports_direct_io(base));

    if (!is_direct && g_strcmp0(ch_json_string_at(disk, "cache"), "none") == 0)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "Unable to use 'none' cache mode, file system where %s is stored does not "
                       "support direct I/O",
                       path);
    const ChDiskFacts fact = {g_strdup(volume->name), is_direct ? "none" : "writethrough"};
    g_array_append_val(facts, fact);
    return true;
}

static bool
prepare_disk(
    const ChJson *disk, const ChJson *vmi, const ChPaths *paths, GArray *facts, GError **error)
{
    const char *name = ch_json_string_at(disk, "name");
    ChVolume volume;

    if (name == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "a disk has no name");
    if (!ch_volume_find(vmi, name, &volume, error))
        return false;
    g_autofree char *path = ch_volume_path(&volume, paths, vmi);
    return prepare(&volume, vmi, paths, path, error) &&
           examine(disk, &volume, paths, path, facts, error);
}

static bool
check_kernel_boot(const ChJson *vmi, const ChPaths *paths, GError **error)
{
    static const char *const keys[] = {"kernelPath", "initrdPath"};
    const ChJson *boot = ch_json_at(vmi, "spec", "domain", "firmware", "kernelBoot", "container");

    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *artifact = ch_json_string_at(boot, keys[i]);

        if (artifact == NULL || *artifact == '\0')
            continue;
        g_autofree char *path = ch_volume_kernel_path(paths, artifact);
        if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return ch_fail(
                error, CH_ERROR_NOT_FOUND, "kernelBoot: %s is not there: '%s'", keys[i], path);
    }
    return true;
}

static void
facts_clear(gpointer data)
{
    ChDiskFacts *facts = data;

    g_free(facts->volume);
}

static bool
is_there(const ChJson *vmi, const ChJson *disk)
{
    const char *name = ch_json_string_at(disk, "name");

    return name == NULL || ch_volume_is_there(vmi, name);
}

GArray *
ch_volume_prepare_all(const ChJson *vmi, const ChPaths *paths, GError **error)
{
    const ChJson *disks = ch_json_at(vmi, "spec", "domain", "devices", "disks");
    g_autoptr(GArray) facts = g_array_new(FALSE, FALSE, sizeof(ChDiskFacts));

    g_array_set_clear_func(facts, facts_clear);
    if (!check_kernel_boot(vmi, paths, error))
        return NULL;
    for (gsize i = 0; i < ch_json_length(disks); i++)
        if (is_there(vmi, ch_json_item(disks, i)) &&
            !prepare_disk(ch_json_item(disks, i), vmi, paths, facts, error))
            return NULL;
    return g_steal_pointer(&facts);
}

GArray *
ch_volume_examine_all(const ChJson *vmi, const ChPaths *paths, GError **error)
{
    const ChJson *disks = ch_json_at(vmi, "spec", "domain", "devices", "disks");
    g_autoptr(GArray) facts = g_array_new(FALSE, FALSE, sizeof(ChDiskFacts));

    g_array_set_clear_func(facts, facts_clear);
    for (gsize i = 0; i < ch_json_length(disks); i++) {
        const ChJson *disk = ch_json_item(disks, i);
        const char *name = ch_json_string_at(disk, "name");
        ChVolume volume;

        if (name == NULL || !ch_volume_is_there(vmi, name))
            continue;
        if (!ch_volume_find(vmi, name, &volume, error))
            return NULL;
        g_autofree char *path = ch_volume_path(&volume, paths, vmi);
        if (!examine(disk, &volume, paths, path, facts, error))
            return NULL;
    }
    return g_steal_pointer(&facts);
}
