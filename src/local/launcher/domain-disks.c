/* SPDX-License-Identifier: Apache-2.0 */

/* domain-disks: the guest's disks and how they are called. Spec 03 §13.4. */

#include <string.h>

#include "lib/base/errors.h"
#include "local/launcher/domain-internal.h"

#define MAX_DISKS 1024

typedef struct {
    const ChJson *disk; /* in spec.domain.devices.disks */
    const char *name;
    const char *device; /* "disk", "lun", "cdrom" */
    const ChJson *target;
    const char *bus;
    char *target_name; /* owned */
} Disk;

static void
disk_clear(gpointer data)
{
    Disk *disk = data;

    g_free(disk->target_name);
}

/* A disk without a device is a disk, one without a bus is on SATA: the API's own defaults. */
static void
read_disk(const ChJson *json, Disk *out_disk)
{
    static const char *const devices[] = {"disk", "lun", "cdrom"};
    Disk disk = {.disk = json, .device = "disk", .name = ch_json_string_at(json, "name")};

    for (gsize i = 0; i < G_N_ELEMENTS(devices); i++)
        if (ch_json_is_object(ch_json_at(json, devices[i]))) {
            disk.device = devices[i];
            break;
        }
    disk.target = ch_json_at(json, disk.device);
    disk.bus = ch_json_string_at(disk.target, "bus");
    if (disk.bus == NULL || *disk.bus == '\0')
        disk.bus = "sata";
    *out_disk = disk;
}

bool
ch_domain_has_disk_bus(const ChDomainBuild *build, const char *bus)
{
    const ChJson *disks = ch_json_at(build->devices, "disks");

    for (gsize i = 0; i < ch_json_length(disks); i++) {
        Disk disk;

        read_disk(ch_json_item(disks, i), &disk);
        if (g_str_equal(disk.bus, bus))
            return true;
    }
    return false;
}

/* "a" ... "z", "aa" ...: numbers without a zero, base 26. */
static char *
letters(gsize index)
{
    char text[8];
    gsize position = sizeof(text) - 1;

    text[position] = '\0';
    for (gsize rest = index + 1; rest > 0; rest = (rest - 1) / 26)
        text[--position] = (char)('a' + (rest - 1) % 26);
    return g_strdup(text + position);
}

/* The name that the agent saw this volume under: it must stay, or disks would be swapped. */
static const char *
recorded_target(const ChJson *vmi, const char *volume)
{
    const ChJson *status = ch_json_find(ch_json_at(vmi, "status", "volumeStatus"), "name", volume);
    const char *target = ch_json_string_at(status, "target");

    return target == NULL || *target == '\0' ? NULL : target;
}

static bool
name_targets(const ChJson *vmi, GArray *disks, GError **error)
{
    g_autoptr(GHashTable) used = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < disks->len; i++) {
        Disk *disk = &g_array_index(disks, Disk, i);

        disk->target_name = g_strdup(recorded_target(vmi, disk->name));
        if (disk->target_name != NULL)
            g_hash_table_add(used, disk->target_name);
    }
    for (guint i = 0; i < disks->len; i++) {
        Disk *disk = &g_array_index(disks, Disk, i);
        const bool is_virtio = g_str_equal(disk->bus, "virtio");

        if (!is_virtio && !g_str_equal(disk->bus, "sata") && !g_str_equal(disk->bus, "scsi") &&
            !g_str_equal(disk->bus, "usb"))
            return ch_fail(
                error, CH_ERROR_INVALID, "disk %s: unknown bus %s", disk->name, disk->bus);
        for (gsize n = 0; disk->target_name == NULL; n++) {
            g_autofree char *suffix = letters(n);
            g_autofree char *name = g_strconcat(is_virtio ? "vd" : "sd", suffix, NULL);

            if (!g_hash_table_contains(used, name)) {
                disk->target_name = g_steal_pointer(&name);
                g_hash_table_add(used, disk->target_name);
            }
        }
    }
    return true;
}

static bool
is_preallocated(const ChDomainInput *input, const char *volume)
{
    if (input->options != NULL)
        for (size_t i = 0; i < input->options->n_preallocated_volumes; i++)
            if (g_str_equal(input->options->preallocated_volumes[i], volume))
                return true;
    return false;
}

static bool
choose_error_policy(const Disk *disk, const char **out_policy, GError **error)
{
    static const char *const policies[] = {"stop", "ignore", "report", "enospace"};
    const char *policy = ch_json_string_at(disk->disk, "errorPolicy");

    if (policy == NULL)
        policy = "stop";
    for (gsize i = 0; i < G_N_ELEMENTS(policies); i++)
        if (g_str_equal(policy, policies[i])) {
            *out_policy = policies[i];
            return true;
        }
    return ch_fail(error, CH_ERROR_INVALID, "error policy %s not recognized", policy);
}

static const ChDiskFacts *
find_facts(const ChDomainInput *input, const char *volume)
{
    for (gsize i = 0; i < input->n_disks; i++)
        if (g_str_equal(input->disks[i].volume, volume))
            return &input->disks[i];
    return NULL;
}

static bool
choose_cache(const Disk *disk, const ChDiskFacts *facts, const char **out_cache, GError **error)
{
    const char *cache = ch_json_string_at(disk->disk, "cache");
    const bool has_cache = cache != NULL && *cache != '\0';
    const bool is_shareable = ch_json_bool_at(disk->disk, false, "shareable");

    if (is_shareable && has_cache && !g_str_equal(cache, "none"))
        return ch_fail(
            error, CH_ERROR_INVALID, "a sharable disk requires cache = none got: %s", cache);
    if (has_cache)
        *out_cache = cache;
    else if (is_shareable)
        *out_cache = "none";
    else
        *out_cache = facts == NULL ? NULL : facts->cache;
    return true;
}

static bool
add_driver(const ChDomainBuild *build,
           xmlNode *node,
           const Disk *disk,
           const ChVolume *volume,
           GError **error)
{
    const ChDiskFacts *facts = find_facts(build->input, disk->name);
    const bool discards =
        (!g_str_equal(disk->device, "cdrom") && !is_preallocated(build->input, disk->name)) ||
        ch_volume_discards(volume->kind);
    const char *io = ch_json_string_at(disk->disk, "io");
    const char *policy = NULL;
    const char *cache = NULL;

    if (!choose_error_policy(disk, &policy, error) || !choose_cache(disk, facts, &cache, error))
        return false;
    xmlNode *driver = ch_xml_add(node,
                                 "driver",
                                 "name",
                                 "qemu",
                                 "type",
                                 ch_volume_format(volume->kind),
                                 "cache",
                                 cache,
                                 "error_policy",
                                 policy,
                                 "io",
                                 io == NULL || *io == '\0' ? NULL : io,
                                 "discard",
                                 discards ? "unmap" : NULL,
                                 NULL);
    if (g_str_equal(disk->bus, "virtio") &&
        ch_json_bool_at(build->devices, false, "blockMultiQueue"))
        ch_xml_set_uint(driver, "queues", build->n_vcpus);
    return true;
}

static bool
is_read_only(const Disk *disk, const ChVolume *volume)
{
    return volume->kind == CH_VOLUME_DOWNWARD_METRICS ||
           ch_json_bool_at(disk->target, g_str_equal(disk->device, "cdrom"), "readonly");
}

static void
add_scsi_address(xmlNode *node, guint index)
{
    g_autofree char *unit = g_strdup_printf("%u", index);

    ch_xml_add(node, "address", "type", "drive", "controller", "0", "bus", "0", "unit", unit, NULL);
}

static bool
add_disk(
    const ChDomainBuild *build, xmlNode *devices, const Disk *disk, guint index, GError **error)
{
    const bool is_virtio = g_str_equal(disk->bus, "virtio");
    const char *serial = ch_json_string_at(disk->disk, "serial");
    int64_t boot_order = 0;
    ChVolume volume;

    if (!ch_volume_find(build->input->vmi, disk->name, &volume, error))
        return false;
    if (ch_json_at(disk->target, "pciAddress") != NULL)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "disk %s: a PCI address is not supported by this launcher",
                       disk->name);
    g_autofree char *path = ch_volume_path(&volume, &build->input->paths, build->input->vmi);
    const bool is_block = volume.kind == CH_VOLUME_PLUGGED_BLOCK;
    xmlNode *node = ch_xml_add(devices,
                               "disk",
                               "type",
                               is_block ? "block" : "file",
                               "device",
                               disk->device,
                               "model",
                               is_virtio ? build->virtio : NULL,
                               NULL);
    ch_xml_add(node, "source", is_block ? "dev" : "file", path, NULL);
    ch_xml_add(node,
               "target",
               "bus",
               disk->bus,
               "dev",
               disk->target_name,
               "tray",
               ch_json_string_at(disk->target, "tray"),
               NULL);
    if (!add_driver(build, node, disk, &volume, error))
        return false;
    if (serial != NULL && *serial != '\0')
        ch_xml_add_text(node, "serial", serial);
    ch_domain_add_alias(node, disk->name);
    if (ch_json_int_at(disk->disk, &boot_order, "bootOrder") && boot_order > 0)
        ch_xml_set_uint(ch_xml_add(node, "boot", NULL), "order", (guint64)boot_order);
    if (is_read_only(disk, &volume))
        ch_xml_add(node, "readonly", NULL);
    if (ch_json_bool_at(disk->disk, false, "shareable"))
        ch_xml_add(node, "shareable", NULL);
    if (g_str_equal(disk->bus, "scsi"))
        add_scsi_address(node, index);
    return true;
}

bool
ch_domain_build_disks(ChDomainBuild *build, xmlNode *devices, GError **error)
{
    const ChJson *list = ch_json_at(build->devices, "disks");
    const gsize n_disks = ch_json_length(list);
    g_autoptr(GArray) disks = g_array_new(FALSE, FALSE, sizeof(Disk));

    g_array_set_clear_func(disks, disk_clear);
    if (n_disks > MAX_DISKS)
        return ch_fail(error, CH_ERROR_LIMIT, "more than %d disks", MAX_DISKS);
    for (gsize i = 0; i < n_disks; i++) {
        Disk disk;

        read_disk(ch_json_item(list, i), &disk);
        if (disk.name == NULL)
            return ch_fail(error, CH_ERROR_INVALID, "disk %zu has no name", i);
        g_array_append_val(disks, disk);
    }
    if (!name_targets(build->input->vmi, disks, error))
        return false;
    for (guint i = 0; i < disks->len; i++) {
        const Disk *disk = &g_array_index(disks, Disk, i);

        if (ch_volume_is_there(build->input->vmi, disk->name) &&
            !add_disk(build, devices, disk, i, error))
            return false;
    }
    return true;
}
