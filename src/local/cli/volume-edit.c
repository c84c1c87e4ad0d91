/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/volume-edit.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/quantity.h"
#include "lib/kube/names.h"
#include "local/cli/start-failure.h"
#include "local/cli/vms.h"

#define MAX_NAME_BYTES 40 /* a VM's name goes before it in the claim's, of at most 253 */

#define MAX_LABEL_BYTES 63
#define NANO            1000000000

/* Of the pod that stands for a volume they are directories of their own. */
static bool
is_reserved(const char *name)
{
    static const char *const taken[] = {"dev", "proc", "sys", "usr", "var", NULL};

    return g_strv_contains(taken, name);
}

bool
ch_volume_check_name(const char *name, GError **error)
{
    return (ch_name_is_dns_subdomain(name) && strchr(name, '.') == NULL &&
            strlen(name) <= MAX_LABEL_BYTES && !is_reserved(name)) ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "'%s' cannot be a volume's name: it consists of at most %d lower-case letters, "
                   "digits and '-', begins and ends with a letter or digit, and is not dev, proc, "
                   "sys, usr or var",
                   name,
                   MAX_LABEL_BYTES);
}

char *
ch_volume_name_of_path(const char *path)
{
    g_autofree char *base = g_path_get_basename(path);
    char *dot = strrchr(base, '.');
    GString *name = g_string_new(NULL);

    if (dot != NULL && dot != base)
        *dot = '\0';
    for (const char *c = base; *c != '\0' && name->len < MAX_NAME_BYTES; c++) {
        if (g_ascii_isalnum(*c))
            g_string_append_c(name, g_ascii_tolower(*c));
        else if (name->len > 0 && name->str[name->len - 1] != '-')
            g_string_append_c(name, '-');
    }
    while (name->len > 0 && name->str[name->len - 1] == '-')
        g_string_truncate(name, name->len - 1);
    if (name->len == 0)
        g_string_append(name, "volume");
    if (is_reserved(name->str))
        g_string_prepend(name, "volume-");
    return g_string_free(name, FALSE);
}

bool
ch_vmi_check_name_free(const ChJson *vmi, const char *name, GError **error)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");
    const ChJson *disks = ch_json_at(vmi, "spec", "domain", "devices", "disks");
    const ChJson *interfaces = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");

    if (ch_json_find(volumes, "name", name) != NULL || ch_json_find(disks, "name", name) != NULL)
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "the VM has a volume '%s' already: choose another name by --name",
                       name);
    if (ch_vmi_volume_status(vmi, name) != NULL)
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "the VM's volume '%s' is just being detached: wait, or choose another name "
                       "by --name",
                       name);
    return ch_json_find(interfaces, "name", name) == NULL ||
           ch_fail(error,
                   CH_ERROR_EXISTS,
                   "the VM has a network '%s', and its devices' names are of one set: choose "
                   "another name by --name",
                   name);
}

bool
ch_vmi_check_claim_free(const ChJson *vmi, const char *claim, GError **error)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);

        if (g_strcmp0(ch_json_string_at(volume, "persistentVolumeClaim", "claimName"), claim) == 0)
            return ch_fail(error,
                           CH_ERROR_EXISTS,
                           "the VM has the claim '%s' already, as its volume '%s'",
                           claim,
                           ch_json_string_at(volume, "name"));
    }
    return true;
}

const char *
ch_vmis_find_claim_user(const ChJson *vmis, const char *claim)
{
    const ChJson *items = ch_json_at(vmis, "items");

    for (gsize i = 0; i < ch_json_length(items); i++) {
        const ChJson *vmi = ch_json_item(items, i);

        if (!ch_vmi_check_claim_free(vmi, claim, NULL))
            return ch_json_string_at(vmi, "metadata", "name");
    }
    return NULL;
}

bool
ch_vmi_add_volume(ChJson *vmi, const ChVolumeEdit *edit, GError **error)
{
    ChJson *spec = ch_json_ensure_object(vmi, "spec");
    ChJson *devices = ch_json_ensure_object(ch_json_ensure_object(spec, "domain"), "devices");
    ChJson *volumes = ch_json_ensure_array(spec, "volumes");
    ChJson *disks = ch_json_ensure_array(devices, "disks");
    ChJson *volume;
    ChJson *claim;
    ChJson *disk;

    if (!ch_vmi_check_name_free(vmi, edit->name, error) ||
        !ch_vmi_check_claim_free(vmi, edit->claim, error))
        return false;
    volume = ch_json_new_object();
    ch_json_set_string(volume, "name", edit->name);
    claim = ch_json_ensure_object(volume, "persistentVolumeClaim");
    ch_json_set_string(claim, "claimName", edit->claim);
    ch_json_set_bool(claim, "hotpluggable", true);
    ch_json_append(volumes, volume);
    disk = ch_json_new_object();
    ch_json_set_string(disk, "name", edit->name);
    ch_json_set_string(ch_json_ensure_object(disk, "disk"), "bus", edit->bus);
    if (edit->is_read_only)
        ch_json_set_bool(ch_json_ensure_object(disk, "disk"), "readonly", true);
    if (edit->is_shareable)
        ch_json_set_bool(disk, "shareable", true);
    ch_json_set_string(disk, "serial", edit->name);
    ch_json_append(disks, disk);
    return true;
}

static bool
fail_no_volume(const ChJson *vmi, const char *name, GError **error)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");
    g_autoptr(GString) plugged = g_string_new(NULL);

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);

        if (ch_json_bool_at(volume, false, "persistentVolumeClaim", "hotpluggable"))
            g_string_append_printf(
                plugged, "%s%s", plugged->len > 0 ? ", " : "", ch_json_string_at(volume, "name"));
    }
    return ch_fail(error,
                   CH_ERROR_NOT_FOUND,
                   "the VM has no volume '%s': %s%s",
                   name,
                   plugged->len > 0 ? "attached are " : "none is attached",
                   plugged->str);
}

bool
ch_vmi_remove_volume(ChJson *vmi, const char *name, char **out_claim, GError **error)
{
    ChJson *volumes = ch_json_at(vmi, "spec", "volumes");
    ChJson *disks = ch_json_at(vmi, "spec", "domain", "devices", "disks");
    gsize index = 0;
    const ChJson *volume = ch_json_find_index(volumes, "name", name, &index);
    const ChJson *claim = ch_json_at(volume, "persistentVolumeClaim");

    if (volume == NULL)
        return ch_vmi_volume_status(vmi, name) != NULL || fail_no_volume(vmi, name, error);
    if (!ch_json_bool_at(claim, false, "hotpluggable"))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "the volume '%s' is part of the VM: only what was attached can be detached",
                       name);
    *out_claim = g_strdup(ch_json_string_at(claim, "claimName"));
    ch_json_remove_item(volumes, index);
    if (ch_json_find_index(disks, "name", name, &index) != NULL)
        ch_json_remove_item(disks, index);
    return true;
}

const ChJson *
ch_vmi_volume_status(const ChJson *vmi, const char *name)
{
    return ch_json_find(ch_json_at(vmi, "status", "volumeStatus"), "name", name);
}

/* What is in the way of the VM comes first, then what is in the way of the volume. */
char *
ch_vmi_volume_progress(const ChJson *vmi, const char *name, bool attaches)
{
    const ChJson *status = ch_vmi_volume_status(vmi, name);
    const char *phase = ch_json_string_at(status, "phase");
    const char *message = ch_json_string_at(status, "message");
    const char *failure = ch_start_failure_now(vmi);

    if (failure != NULL)
        return g_strdup(failure);
    if (!g_str_equal(ch_vm_phase(vmi), "Running") && attaches)
        return g_strdup_printf("the VM does not run yet: it is %s",
                               *ch_vm_phase(vmi) != '\0' ? ch_vm_phase(vmi) : "new");
    if (status == NULL || phase == NULL)
        return g_strdup("the pod runner has not seen it yet");
    if (message == NULL || *message == '\0')
        return g_strdup(phase);
    return g_strdup_printf("%s: %s", phase, message);
}

ChJson *
ch_claim_new(
    const char *namespace_, const char *name, const char *path, bool is_block, guint64 n_bytes)
{
    ChJson *claim = ch_json_new_object();
    ChJson *metadata = ch_json_ensure_object(claim, "metadata");
    ChJson *spec = ch_json_ensure_object(claim, "spec");
    ChJson *modes = ch_json_new_array();
    ChJson *requests = ch_json_ensure_object(ch_json_ensure_object(spec, "resources"), "requests");
    const ChQuantity n_units = {.nano = (__int128)MAX(n_bytes, 1) * NANO,
                                .format = CH_QUANTITY_BINARY};
    g_autofree char *size = ch_quantity_print(&n_units);

    ch_json_set_string(claim, "apiVersion", "v1");
    ch_json_set_string(claim, "kind", "PersistentVolumeClaim");
    ch_json_set_string(metadata, "name", name);
    ch_json_set_string(metadata, "namespace", namespace_);
    ch_json_set_string(
        ch_json_ensure_object(metadata, "labels"), CH_CLAIM_MAKER_LABEL, CH_CLAIM_MAKER);
    ch_json_set_string(
        ch_json_ensure_object(metadata, "annotations"), CH_CLAIM_PATH_ANNOTATION, path);
    ch_json_append(modes, ch_json_new_string("ReadWriteOnce"));
    ch_json_set(spec, "accessModes", modes);
    ch_json_set_string(requests, "storage", size);
    ch_json_set_string(spec, "volumeMode", is_block ? "Block" : "Filesystem");
    return claim;
}
