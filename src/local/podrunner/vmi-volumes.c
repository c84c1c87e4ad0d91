/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/vmi-volumes.h"

#include "lib/base/errors.h"
#include "local/podrunner/hotplug.h"

/* What chandler-launcher knows. A claim is plugged in. */
static const char *const possible[] = {"containerDisk",
                                       "emptyDisk",
                                       "cloudInitNoCloud",
                                       "cloudInitConfigDrive",
                                       "downwardMetrics",
                                       NULL};

/* (nullable): the source's key */
static const char *
source_of(const ChJson *volume)
{
    ChJsonIter iter;
    const char *key = NULL;
    ChJson *value = NULL;

    ch_json_iter_init(&iter, volume);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (!g_str_equal(key, "name"))
            return key;
    }
    return NULL;
}

bool
ch_vmi_check_volume_name(const ChJson *vmi, const char *name, GError **error)
{
    const ChJson *interfaces = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");

    return ch_json_find(interfaces, "name", name) == NULL ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "the VM has an interface of this name, and its devices' names are of one set");
}

static bool
check_kind(const ChJson *volume, GError **error)
{
    const char *name = ch_json_string_at(volume, "name");
    const char *source = source_of(volume);
    g_autofree char *list = g_strjoinv(", ", (char **)possible);

    if (source == NULL || g_strv_contains(possible, source) || ch_hotplug_is_hotpluggable(volume))
        return true;
    if (g_str_equal(source, "persistentVolumeClaim"))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "volume '%s': a persistentVolumeClaim needs 'hotpluggable: true' on one "
                       "machine: it is plugged in when the VM starts",
                       name);
    return ch_fail(error,
                   CH_ERROR_INVALID,
                   "volume '%s': a %s is not possible on one machine, only %s, and for a file or "
                   "device of the machine a persistentVolumeClaim with 'hotpluggable: true' "
                   "(examples/hotplug.yaml)",
                   name,
                   source,
                   list);
}

bool
ch_vmi_check_volumes(const ChJson *vmi, GError **error)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        const char *name = ch_json_string_at(volume, "name");

        if (!check_kind(volume, error))
            return false;
        if (!ch_vmi_check_volume_name(vmi, name, error)) {
            g_prefix_error(error, "volume '%s': ", name);
            return false;
        }
    }
    return true;
}
