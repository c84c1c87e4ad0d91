/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/volume.h"

#include <limits.h>
#include <string.h>

#include "lib/base/errors.h"

typedef struct {
    const char *key; /* in the volume object */
    const char *format;
    bool discards;
} Kind;

/* clang-format off */
static const Kind kinds[CH_VOLUME_N] = {
    [CH_VOLUME_CONTAINER_DISK]          = { "containerDisk",         "qcow2", true  },
    [CH_VOLUME_EMPTY_DISK]              = { "emptyDisk",             "qcow2", true  },
    [CH_VOLUME_CLOUD_INIT_NO_CLOUD]     = { "cloudInitNoCloud",      "raw",   false },
    [CH_VOLUME_CLOUD_INIT_CONFIG_DRIVE] = { "cloudInitConfigDrive",  "raw",   false },
    [CH_VOLUME_DOWNWARD_METRICS]        = { "downwardMetrics",       "raw",   false },
    [CH_VOLUME_PLUGGED_FILE]            = { NULL,                    "raw",   true  },
    [CH_VOLUME_PLUGGED_BLOCK]           = { NULL,                    "raw",   true  },
};
/* clang-format on */

/* A claim that comes and goes. Others are given to a VM by what this launcher's pod has not. */
static bool
is_pluggable(const ChJson *volume)
{
    return ch_json_bool_at(volume, false, "persistentVolumeClaim", "hotpluggable");
}

bool
ch_volume_is_there(const ChJson *vmi, const char *name)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");
    const ChJson *status = ch_json_find(ch_json_at(vmi, "status", "volumeStatus"), "name", name);
    const char *phase = ch_json_string_at(status, "phase");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);

        if (g_strcmp0(ch_json_string_at(volume, "name"), name) == 0 && is_pluggable(volume))
            return g_strcmp0(phase, "MountedToPod") == 0 || g_strcmp0(phase, "Ready") == 0;
    }
    return true;
}

static void
take_pluggable(const ChJson *vmi, const ChJson *volume, ChVolume *out_volume)
{
    const ChJson *status =
        ch_json_find(ch_json_at(vmi, "status", "volumeStatus"), "name", out_volume->name);
    const char *mode = ch_json_string_at(status, "persistentVolumeClaimInfo", "volumeMode");

    out_volume->kind =
        g_strcmp0(mode, "Block") == 0 ? CH_VOLUME_PLUGGED_BLOCK : CH_VOLUME_PLUGGED_FILE;
    out_volume->source = ch_json_at(volume, "persistentVolumeClaim");
}

static bool
classify(const ChJson *vmi, const ChJson *volume, ChVolume *out_volume, GError **error)
{
    ChJsonIter iter;
    const char *key = NULL;
    ChJson *value = NULL;

    if (is_pluggable(volume)) {
        take_pluggable(vmi, volume, out_volume);
        return true;
    }
    for (guint kind = CH_VOLUME_INVALID + 1; kind < CH_VOLUME_N; kind++) {
        const char *source_key = kinds[kind].key;
        const ChJson *source = source_key != NULL ? ch_json_at(volume, source_key) : NULL;

        if (ch_json_is_object(source)) {
            out_volume->kind = (ChVolumeKind)kind;
            out_volume->source = source;
            return true;
        }
    }

    ch_json_iter_init(&iter, volume);
    while (ch_json_iter_next(&iter, &key, &value))
        if (!g_str_equal(key, "name"))
            return ch_fail(error,
                           CH_ERROR_INVALID,
                           "volume %s: this launcher does not support the source %s",
                           out_volume->name,
                           key);
    return ch_fail(error, CH_ERROR_INVALID, "volume %s has no source", out_volume->name);
}

bool
ch_volume_find(const ChJson *vmi, const char *name, ChVolume *out_volume, GError **error)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    if (!ch_volume_name_is_safe(name))
        return ch_fail(error, CH_ERROR_INVALID, "volume name '%s' is not valid", name);
    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        ChVolume found = {.name = ch_json_string_at(volume, "name"), .index = i};

        if (g_strcmp0(found.name, name) != 0)
            continue;
        if (!classify(vmi, volume, &found, error))
            return false;
        *out_volume = found;
        return true;
    }
    return ch_fail(error, CH_ERROR_NOT_FOUND, "no matching volume with name %s found", name);
}

static char *
cloud_init_path(const ChPaths *paths, const ChJson *vmi, const char *file)
{
    return g_build_filename(paths->ephemeral_dir,
                            "cloud-init-data",
                            ch_json_string_at(vmi, "metadata", "namespace"),
                            ch_json_string_at(vmi, "metadata", "name"),
                            file,
                            NULL);
}

char *
ch_volume_path(const ChVolume *volume, const ChPaths *paths, const ChJson *vmi)
{
    g_autofree char *file = NULL;

    switch (volume->kind) {
    case CH_VOLUME_CONTAINER_DISK:
        return g_build_filename(
            paths->ephemeral_dir, "disk-data", volume->name, "disk.qcow2", NULL);
    case CH_VOLUME_EMPTY_DISK:
        file = g_strconcat(volume->name, ".qcow2", NULL);
        return g_build_filename(paths->empty_disk_dir, file, NULL);
    case CH_VOLUME_CLOUD_INIT_NO_CLOUD:
        return cloud_init_path(paths, vmi, "noCloud.iso");
    case CH_VOLUME_CLOUD_INIT_CONFIG_DRIVE:
        return cloud_init_path(paths, vmi, "configdrive.iso");
    case CH_VOLUME_DOWNWARD_METRICS:
        return g_build_filename(paths->private_dir, "downwardapi-disks", "vhostmd0", NULL);
    case CH_VOLUME_PLUGGED_FILE:
        file = g_strconcat(volume->name, ".img", NULL);
        return g_build_filename(paths->hotplug_dir, file, NULL);
    case CH_VOLUME_PLUGGED_BLOCK:
        return g_build_filename(paths->hotplug_dir, volume->name, NULL);
    case CH_VOLUME_INVALID:
    case CH_VOLUME_N:
        break;
    }
    g_return_val_if_reached(NULL);
}

const char *
ch_volume_format(ChVolumeKind kind)
{
    return kinds[kind].format;
}

bool
ch_volume_discards(ChVolumeKind kind)
{
    return kinds[kind].discards;
}

char *
ch_volume_container_disk_path(const ChPaths *paths, gsize index)
{
    g_autofree char *file = g_strdup_printf("disk_%zu.img", index);

    return g_build_filename(paths->container_disk_dir, file, NULL);
}

char *
ch_volume_kernel_path(const ChPaths *paths, const char *artifact)
{
    g_autofree char *file = g_path_get_basename(artifact);

    return g_build_filename(paths->container_disk_dir, "kernel-boot", file, NULL);
}

bool
ch_volume_name_is_safe(const char *name)
{
    return *name != '\0' && !g_str_equal(name, ".") && !g_str_equal(name, "..") &&
           strchr(name, '/') == NULL && strlen(name) <= NAME_MAX - sizeof(".qcow2");
}
