/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/vmi-defaults.h"

#include "lib/base/errors.h"
#include "lib/base/quantity.h"

static void
default_string(ChJson *object, const char *key, const char *text)
{
    const char *old = ch_json_string_at(object, key);

    if (old == NULL || *old == '\0')
        ch_json_set_string(object, key, text);
}

static void
default_int(ChJson *object, const char *key, int64_t value)
{
    int64_t old = 0;

    if (!ch_json_int_at(object, &old, key) || old == 0)
        ch_json_set_int(object, key, value);
}

static void
set_metadata(ChJson *vmi)
{
    ChJson *metadata = ch_json_ensure_object(vmi, "metadata");
    ChJson *annotations = ch_json_ensure_object(metadata, "annotations");
    ChJson *finalizers = ch_json_ensure_array(metadata, "finalizers");

    default_string(annotations, "kubevirt.io/latest-observed-api-version", "v1");
    default_string(annotations, "kubevirt.io/storage-observed-api-version", "v1");
    if (!ch_json_contains(finalizers, CH_VMI_FINALIZER))
        ch_json_append(finalizers, ch_json_new_string(CH_VMI_FINALIZER));
}

static void
set_cpu(ChJson *domain)
{
    ChJson *cpu = ch_json_ensure_object(domain, "cpu");

    default_int(cpu, "cores", 1);
    default_int(cpu, "sockets", 1);
    default_int(cpu, "threads", 1);
    default_string(cpu, "model", "host-model");
}

/* Without ACPI a guest does not hear that it shall shut down. */
static void
set_features(ChJson *domain)
{
    ChJson *acpi = ch_json_ensure_object(ch_json_ensure_object(domain, "features"), "acpi");

    if (!ch_json_has(acpi, "enabled"))
        ch_json_set_bool(acpi, "enabled", true);
}

static bool
check_size(const char *path, const char *size, GError **error)
{
    ChQuantity quantity = {0};

    return (ch_quantity_parse(size, &quantity, NULL) && quantity.nano > 0) ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "%s is '%s': it must be a size greater than 0, such as 128Mi",
                   path,
                   size);
}

/* Request and guest memory each default to the other. */
static bool
set_memory(ChJson *domain, GError **error)
{
    ChJson *memory = ch_json_ensure_object(domain, "memory");
    ChJson *requests =
        ch_json_ensure_object(ch_json_ensure_object(domain, "resources"), "requests");
    const char *limit = ch_json_string_at(domain, "resources", "limits", "memory");
    const char *guest = ch_json_string_at(memory, "guest");
    const char *request = ch_json_string_at(requests, "memory");
    const char *path = guest != NULL     ? "spec.domain.memory.guest"
                       : request != NULL ? "spec.domain.resources.requests.memory"
                                         : "spec.domain.resources.limits.memory";
    g_autofree char *size = g_strdup(guest != NULL ? guest : request != NULL ? request : limit);

    if (size == NULL && ch_json_string_at(memory, "hugepages", "pageSize") == NULL)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "no memory requested: set spec.domain.memory.guest or "
                       "spec.domain.resources.requests.memory");
    if (size != NULL) {
        if (!check_size(path, size, error))
            return false;
        default_string(memory, "guest", size);
        default_string(requests, "memory", size);
    }
    return true;
}

/* A volume that nothing uses becomes a disk; a disk that says not how it is attached, a SATA one.
 */
static void
set_disks(ChJson *spec, ChJson *devices, const char *architecture)
{
    const ChJson *volumes = ch_json_at(spec, "volumes");
    const char *bus = g_str_equal(architecture, "amd64") ? "sata" : "virtio";
    ChJson *disks = ch_json_ensure_array(devices, "disks");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const char *name = ch_json_string_at(ch_json_item(volumes, i), "name");

        if (name == NULL || ch_json_find(disks, "name", name) != NULL ||
            ch_json_find(ch_json_at(devices, "filesystems"), "name", name) != NULL)
            continue;
        ChJson *disk = ch_json_new_object();
        ch_json_set_string(disk, "name", name);
        ch_json_append(disks, disk);
    }
    for (gsize i = 0; i < ch_json_length(disks); i++) {
        static const char *const kinds[] = {"cdrom", "lun"};
        ChJson *disk = ch_json_item(disks, i);
        ChJson *target = NULL;

        for (gsize k = 0; k < G_N_ELEMENTS(kinds) && target == NULL; k++)
            target = ch_json_at(disk, kinds[k]);
        if (target == NULL)
            target = ch_json_ensure_object(disk, "disk");
        default_string(target, "bus", bus);
    }
}

bool
ch_vmi_set_defaults(ChJson *vmi,
                    const char *architecture,
                    const char *firmware_uuid,
                    GError **error)
{
    ChJson *spec = ch_json_ensure_object(vmi, "spec");
    ChJson *domain = ch_json_ensure_object(spec, "domain");
    ChJson *devices = ch_json_ensure_object(domain, "devices");

    set_metadata(vmi);
    default_string(spec, "architecture", architecture);
    set_cpu(domain);
    set_features(domain);
    default_string(ch_json_ensure_object(domain, "machine"), "type", "q35");
    default_string(ch_json_ensure_object(domain, "firmware"), "uuid", firmware_uuid);
    set_disks(spec, devices, ch_json_string_at(spec, "architecture"));
    (void)ch_json_ensure_array(devices, "interfaces");
    (void)ch_json_ensure_array(spec, "networks");
    return set_memory(domain, error);
}
