/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/hotplug-plan.h"

#include <string.h>

#include "handler/hands/protocol.h"

#define DISKS_DIR "/volumes/kubernetes.io~empty-dir/hotplug-disks/"

static const char *
text_of(const char *text)
{
    return text != NULL ? text : "";
}

/* --- kinds --- */

static bool
is_block_mode(const ChJson *pvc_info)
{
    return g_strcmp0(ch_json_string_at(pvc_info, "volumeMode"), "Block") == 0;
}

/* What the volume is here: it may change from file system to block while it migrates. */
static bool
is_block(const ChJson *vmi, const char *node, const char *name)
{
    const ChJson *status = ch_json_at(vmi, "status");
    const ChJson *migrated =
        ch_json_find(ch_json_at(status, "migratedVolumes"), "volumeName", name);
    const char *target = ch_json_string_at(status, "migrationState", "targetNode");
    const ChJson *info =
        ch_json_at(migrated, g_strcmp0(target, node) == 0 ? "destinationPVCInfo" : "sourcePVCInfo");

    if (info == NULL)
        info = ch_json_at(ch_json_find(ch_json_at(status, "volumeStatus"), "name", name),
                          "persistentVolumeClaimInfo");
    return is_block_mode(info);
}

static ChHotplugKind
kind_of(const ChJson *vmi, const char *node, const char *name)
{
    const ChJson *volume = ch_json_find(ch_json_at(vmi, "spec", "volumes"), "name", name);

    if (is_block(vmi, node, name))
        return CH_HOTPLUG_BLOCK;
    return ch_json_at(volume, "memoryDump") != NULL ||
                   ch_json_find(ch_json_at(vmi, "spec", "utilityVolumes"), "name", name) != NULL
               ? CH_HOTPLUG_DIR
               : CH_HOTPLUG_FILE;
}

/* --- lists --- */

static ChHotplugVolume
read_volume(const ChJson *vmi, const char *node, const ChJson *entry, const char *source_uid)
{
    const char *name = ch_json_string_at(entry, "name");
    const bool is_utility =
        ch_json_find(ch_json_at(vmi, "spec", "utilityVolumes"), "name", name) != NULL;
    const ChHotplugKind kind = kind_of(vmi, node, name);

    if (source_uid == NULL)
        source_uid = ch_json_string_at(entry, "hotplugVolume", "attachPodUID");
    return (ChHotplugVolume){
        .name = name,
        .source_uid = text_of(source_uid),
        .phase = text_of(ch_json_string_at(entry, "phase")),
        .kind = kind,
        .is_wanted =
            is_utility || ch_json_find(ch_json_at(vmi, "spec", "volumes"), "name", name) != NULL,
        .is_refused = is_utility && kind == CH_HOTPLUG_BLOCK,
    };
}

/* Its name when @entry is a hotplugged volume's. */
static const char *
hotplugged_name(const ChJson *entry)
{
    return ch_json_at(entry, "hotplugVolume") != NULL ? ch_json_string_at(entry, "name") : NULL;
}

GArray *
ch_hotplug_list(const ChJson *vmi, const char *node, const char *source_uid)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(ChHotplugVolume));
    const ChJson *entries = ch_json_at(vmi, "status", "volumeStatus");

    for (gsize i = 0; i < ch_json_length(entries) && list->len < CH_HOTPLUG_MAX_VOLUMES; i++) {
        const ChJson *entry = ch_json_item(entries, i);
        const char *name = hotplugged_name(entry);
        ChHotplugVolume volume;

        if (name == NULL || !ch_hands_network_name_is_valid(name))
            continue;
        volume = read_volume(vmi, node, entry, source_uid);
        g_array_append_val(list, volume);
    }
    return list;
}

char *
ch_hotplug_left_out(const ChJson *vmi)
{
    const ChJson *entries = ch_json_at(vmi, "status", "volumeStatus");
    const char *odd = NULL;
    guint n_odd = 0, n = 0;

    for (gsize i = 0; i < ch_json_length(entries); i++) {
        const char *name = hotplugged_name(ch_json_item(entries, i));

        if (name == NULL)
            continue;
        if (ch_hands_network_name_is_valid(name)) {
            n++;
            continue;
        }
        odd = n_odd++ == 0 ? name : odd;
    }
    if (n > CH_HOTPLUG_MAX_VOLUMES)
        return g_strdup_printf("%u hotplug volumes are left out: no more than %u are mounted",
                               n - CH_HOTPLUG_MAX_VOLUMES,
                               CH_HOTPLUG_MAX_VOLUMES);
    return n_odd == 0 ? NULL
                      : g_strdup_printf("%u hotplug volumes are left out: no file can have the "
                                        "name '%.64s'",
                                        n_odd,
                                        odd);
}

static bool
is_hotpluggable(const ChJson *volume)
{
    return ch_json_bool_at(volume, false, "persistentVolumeClaim", "hotpluggable") ||
           ch_json_bool_at(volume, false, "dataVolume", "hotpluggable") ||
           ch_json_bool_at(volume, false, "memoryDump", "hotpluggable");
}

char *
ch_hotplug_target_name(const char *volume, ChHotplugKind kind)
{
    return kind == CH_HOTPLUG_FILE ? g_strconcat(volume, ".img", NULL) : g_strdup(volume);
}

static void
keep(GHashTable *set, const ChJson *vmi, const char *node, const ChJson *volume, bool is_utility)
{
    const char *name = ch_json_string_at(volume, "name");
    const ChHotplugKind kind = name != NULL ? kind_of(vmi, node, name) : CH_HOTPLUG_INVALID;

    if (name != NULL && !(is_utility && kind == CH_HOTPLUG_BLOCK))
        g_hash_table_add(set, ch_hotplug_target_name(name, kind));
}

GHashTable *
ch_hotplug_keep_set(const ChJson *vmi, const char *node)
{
    GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");
    const ChJson *utilities = ch_json_at(vmi, "spec", "utilityVolumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++)
        if (is_hotpluggable(ch_json_item(volumes, i)))
            keep(set, vmi, node, ch_json_item(volumes, i), false);
    for (gsize i = 0; i < ch_json_length(utilities); i++)
        keep(set, vmi, node, ch_json_item(utilities, i), true);
    return set;
}

/* --- what depends on them --- */

bool
ch_hotplug_is_ready(const ChJson *vmi)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");
    const ChJson *entries = ch_json_at(vmi, "status", "volumeStatus");
    bool has_any = ch_json_length(ch_json_at(vmi, "spec", "utilityVolumes")) > 0;

    for (gsize i = 0; !has_any && i < ch_json_length(volumes); i++)
        has_any = is_hotpluggable(ch_json_item(volumes, i));
    if (!has_any)
        return true;
    for (gsize i = 0; i < ch_json_length(entries); i++) {
        const ChJson *entry = ch_json_item(entries, i);
        const char *phase = ch_json_string_at(entry, "phase");

        if (ch_json_at(entry, "hotplugVolume") != NULL && g_strcmp0(phase, "Ready") != 0 &&
            g_strcmp0(phase, "MountedToPod") != 0)
            return false;
    }
    return ch_json_length(entries) > 0;
}

bool
ch_hotplug_wants_look(const ChHotplugVolume *volume)
{
    static const char *const before_mount[] = {"Bound", "Pending", "AttachedToNode", NULL};
    static const char *const after_mount[] = {"Ready", "MountedToPod", "AttachedToNode", NULL};

    return g_strv_contains(volume->is_wanted ? before_mount : after_mount, volume->phase);
}

/* --- paths --- */

char *
ch_hotplug_path(const char *dir, const char *pod_uid, const char *target_name)
{
    return g_strconcat(dir, "/", pod_uid, DISKS_DIR, target_name, NULL);
}

bool
ch_hotplug_path_split(const char *path, const char *dir, char **out_pod_uid, char **out_target_name)
{
    const gsize length = strlen(dir);
    g_autofree char *uid = NULL;
    const char *rest, *name;

    if (!g_str_has_prefix(path, dir) || path[length] != '/')
        return false;
    rest = path + length + 1;
    name = strstr(rest, DISKS_DIR);
    if (name == NULL)
        return false;
    uid = g_strndup(rest, (gsize)(name - rest));
    name += strlen(DISKS_DIR);
    if (!ch_hands_uid_is_valid(uid) || !ch_hands_network_name_is_valid(name))
        return false;
    *out_pod_uid = g_steal_pointer(&uid);
    *out_target_name = g_strdup(name);
    return true;
}
