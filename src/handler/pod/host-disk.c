/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/host-disk.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/quantity.h"

#define DISKS_DIR "/var/run/kubevirt-private/vmi-disks"
#define MIB       (INT64_C(1) << 20)

/* --- quantities */

/* @out_is_there: whether there is one */
static bool
read_quantity(const ChJson *json, bool *out_is_there, ChQuantity *out_quantity, GError **error)
{
    g_autofree char *number = ch_json_is_number(json) ? ch_json_print(json, NULL) : NULL;
    const char *text = number != NULL ? number : ch_json_as_string(json);

    *out_is_there = text != NULL;
    return text == NULL || ch_quantity_parse(text, out_quantity, error);
}

/* The image's size: what was asked for, unless there is less; printed as the volume's own. */
static char *
size_of(const char *volume, const ChJson *claim, GError **error)
{
    bool has_capacity;
    bool has_request;
    ChQuantity capacity = {.format = CH_QUANTITY_EXPONENT};
    ChQuantity request = {0};
    int64_t bytes;

    if (!read_quantity(ch_json_at(claim, "capacity", "storage"), &has_capacity, &capacity, error) ||
        !read_quantity(ch_json_at(claim, "requests", "storage"), &has_request, &request, error))
        return NULL;
    if (!has_capacity && !has_request) {
        (void)ch_fail(error,
                      CH_ERROR_INVALID,
                      "unable to determine capacity of HostDisk from PVC that provides no storage "
                      "capacity or requests");
        return NULL;
    }
    if (has_request && (!has_capacity || ch_quantity_compare(&capacity, &request) > 0))
        bytes = ch_quantity_units(&request);
    else
        bytes = ch_quantity_units(&capacity);
    if (bytes < MIB) {
        (void)ch_fail(error,
                      CH_ERROR_INVALID,
                      "the size for volume %s is too low, must be at least 1MiB",
                      volume);
        return NULL;
    }
    capacity.nano = (__int128)(bytes - bytes % MIB) * 1000000000;
    return ch_quantity_print(&capacity);
}

/* --- claims */

static bool
is_shared(const ChJson *claim)
{
    return ch_json_contains(ch_json_at(claim, "accessModes"), "ReadWriteMany");
}

/* What is known of the claim of a volume that becomes a host disk; NULL: it does not. */
static const ChJson *
claim_of(const ChJson *vmi, const ChJson *volume)
{
    const char *name = ch_json_string_at(volume, "name");
    const char *data_volume = ch_json_string_at(volume, "dataVolume", "name");
    const ChJson *status;
    const ChJson *claim;

    if (name == NULL || (ch_json_at(volume, "persistentVolumeClaim") == NULL &&
                         (data_volume == NULL || data_volume[0] == '\0')))
        return NULL;
    if (ch_json_find(ch_json_at(vmi, "spec", "domain", "devices", "filesystems"), "name", name) !=
        NULL)
        return NULL;
    status = ch_json_find(ch_json_at(vmi, "status", "volumeStatus"), "name", name);
    claim = ch_json_at(status, "persistentVolumeClaimInfo");
    if (claim == NULL || ch_json_at(status, "hotplugVolume") != NULL ||
        g_strcmp0(ch_json_string_at(claim, "volumeMode"), "Block") == 0)
        return NULL;
    return claim;
}

static bool
replace(ChJson *volume, const ChJson *claim, GError **error)
{
    const char *name = ch_json_string_at(volume, "name");
    g_autofree char *capacity = size_of(name, claim, error);
    g_autofree char *path = g_strconcat(DISKS_DIR "/", name, "/disk.img", NULL);
    ChJson *disk;

    if (capacity == NULL)
        return false;
    disk = ch_json_new_object();
    ch_json_set_string(disk, "path", path);
    ch_json_set_string(disk, "type", "DiskOrCreate");
    ch_json_set_string(disk, "capacity", capacity);
    ch_json_set_bool(disk, "shared", is_shared(claim));
    ch_json_set(volume, "hostDisk", disk);
    ch_json_remove(volume, "persistentVolumeClaim");
    ch_json_remove(volume, "dataVolume");
    return true;
}

bool
ch_host_disk_replace_claims(const ChJson *vmi, ChJson **out_vmi, GError **error)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");
    g_autoptr(ChJson) copy = NULL;

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *claim = claim_of(vmi, ch_json_item(volumes, i));

        if (claim == NULL)
            continue;
        if (copy == NULL)
            copy = ch_json_dup(vmi);
        if (!replace(ch_json_item(ch_json_at(copy, "spec", "volumes"), i), claim, error))
            return false;
    }
    *out_vmi = g_steal_pointer(&copy);
    return true;
}

/* --- host disks */

/* The last component, within @path; "" when there is none. */
static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    return g_str_equal(name, ".") || g_str_equal(name, "..") ? "" : name;
}

bool
ch_host_disk_of(const ChJson *volume, ChHostDisk *out_disk)
{
    const ChJson *disk = ch_json_at(volume, "hostDisk");
    const char *name = ch_json_string_at(volume, "name");
    const char *path = ch_json_string_at(disk, "path");
    ChQuantity capacity;
    bool has_capacity;

    if (disk == NULL || name == NULL)
        return false;
    *out_disk = (ChHostDisk){.volume = name, .file = ""};
    if (path == NULL || path[0] == '\0' ||
        g_strcmp0(ch_json_string_at(disk, "type"), "DiskOrCreate") != 0)
        return true;
    out_disk->file = base_name(path);
    out_disk->makes_image = true;
    if (read_quantity(ch_json_at(disk, "capacity"), &has_capacity, &capacity, NULL) && has_capacity)
        out_disk->capacity = MAX(ch_quantity_units(&capacity), 0);
    return true;
}
