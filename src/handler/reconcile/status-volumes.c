/* SPDX-License-Identifier: Apache-2.0 */

/*
 * volumeStatus: sizes of generated ISOs, targets, hotplugged volumes, memory dumps (02 §6.2, §6.5).
 *
 * virt-controller owns the list: nothing is added or removed here.
 */

#include "handler/reconcile/status-internal.h"

#include "lib/base/time.h"

/* --- ISO images that the launcher makes --- */

/* The phase before this pass decides: a VMI that just started has no sizes yet. */
void
ch_status_volume_sizes(ChStatusPass *pass)
{
    const ChJson *list = ch_json_at(pass->status, "volumeStatus");

    if (pass->old.phase != CH_PHASE_RUNNING)
        return;
    for (gsize i = 0; i < pass->input->n_iso_sizes; i++) {
        const ChVolumeSize *size = &pass->input->iso_sizes[i];

        for (gsize j = 0; j < ch_json_length(list); j++) {
            ChJson *entry = ch_json_item(list, j);

            if (g_strcmp0(ch_json_string_at(entry, "name"), size->volume) == 0)
                ch_json_set_int(entry, "size", size->size_bytes);
        }
    }
}

/* --- hotplugged volumes --- */

/* "" for a volume without disk, and for an empty CD-ROM tray. */
static const char *
target_of(const ChDomain *domain, const char *volume)
{
    const char *target = "";

    for (guint i = 0; domain != NULL && i < domain->disks->len; i++) {
        const ChDomainDisk *disk = &g_array_index(domain->disks, ChDomainDisk, i);

        if (g_str_equal(disk->name, volume) && (disk->file[0] != '\0' || disk->dev[0] != '\0'))
            target = disk->target;
    }
    return target;
}

static bool
is_in_spec(const ChStatusPass *pass, const char *volume)
{
    return ch_json_find(ch_json_at(pass->vmi, "spec", "volumes"), "name", volume) != NULL ||
           ch_json_find(ch_json_at(pass->vmi, "spec", "utilityVolumes"), "name", volume) != NULL;
}

static void
refresh_soon(ChStatusPass *pass)
{
    pass->requeue_us = CH_SECOND_US;
}

/* The volume's name stands between @before and @after. @reason: (nullable): the old one stays */
static void
enter_phase(
    ChJson *entry, const char *phase, const char *reason, const char *before, const char *after)
{
    g_autofree char *message = g_strconcat(before, ch_status_text(entry, "name"), after, NULL);

    ch_json_set_string(entry, "phase", phase);
    if (reason != NULL)
        ch_json_set_string(entry, "reason", reason);
    ch_json_set_string(entry, "message", message);
}

static void
follow_hotplug(ChStatusPass *pass, ChJson *entry)
{
    static const char *const before_mount[] = {"Bound", "Pending", "AttachedToNode", NULL};
    static const char *const after_mount[] = {"Ready", "MountedToPod", "AttachedToNode", NULL};
    const char *const *mounted = pass->input->mounted_volumes;
    const char *name = ch_status_text(entry, "name");
    const char *phase = ch_status_text(entry, "phase");
    const bool is_mounted = mounted != NULL && g_strv_contains(mounted, name);

    if (ch_status_text(entry, "target")[0] != '\0') {
        enter_phase(
            entry, "Ready", "VolumeReady", "Successfully attach hotplugged volume ", " to VM");
        return;
    }
    refresh_soon(pass);
    if (mounted == NULL)
        return;
    if (is_mounted && is_in_spec(pass, name) && g_strv_contains(before_mount, phase))
        enter_phase(entry,
                    "MountedToPod",
                    "VolumeMountedToPod",
                    "Volume ",
                    " has been mounted in virt-launcher pod");
    else if (!is_mounted && !is_in_spec(pass, name) && g_strv_contains(after_mount, phase))
        enter_phase(entry,
                    "UnMountedFromPod",
                    "VolumeUnMountedFromPod",
                    "Volume ",
                    " has been unmounted from virt-launcher pod");
}

/* --- memory dumps --- */

static void
start_dump(ChStatusPass *pass, ChJson *entry, ChJson *dump)
{
    g_autofree char *file = NULL;

    if (pass->input->local_timestamp == NULL)
        return;
    file = g_strdup_printf("%s-%s-%s.memory.dump",
                           pass->old.name,
                           ch_status_text(entry, "name"),
                           pass->input->local_timestamp);
    ch_json_set_string(dump, "targetFileName", file);
    enter_phase(entry,
                "MemoryDumpInProgress",
                "VolumeMountedToPod",
                "Memory dump Volume ",
                " is attached, getting memory dump");
    refresh_soon(pass);
}

static void
end_dump(ChJson *entry, ChJson *dump, const ChDomainMemoryDump *report)
{
    g_autofree char *why = g_strconcat(" failed: ", report->failure_reason, NULL);

    if (report->start.is_set)
        ch_status_set_time(dump, "startTimestamp", report->start.wall_us);
    if (report->end.is_set)
        ch_status_set_time(dump, "endTimestamp", report->end.wall_us);
    if (report->end.is_set && report->failed) /* the old reason stays (02 trap 10) */
        enter_phase(entry, "MemoryDumpFailed", NULL, "Memory dump to pvc ", why);
    else
        enter_phase(entry,
                    "MemoryDumpCompleted",
                    "VolumeReady",
                    "Memory dump to Volume ",
                    " has completed successfully");
}

static void
follow_dump(ChStatusPass *pass, ChJson *entry)
{
    ChJson *dump = ch_json_at(entry, "memoryDumpVolume");
    const ChDomainMemoryDump *report = pass->domain != NULL ? &pass->domain->memory_dump : NULL;
    const char *phase = ch_status_text(entry, "phase");

    if (g_str_equal(phase, "MountedToPod")) {
        start_dump(pass, entry, dump);
        return;
    }
    if (!g_str_equal(phase, "MemoryDumpInProgress") || report == NULL || !report->exists ||
        !g_str_equal(report->file_name, ch_status_text(dump, "targetFileName")))
        return;

    refresh_soon(pass);
    if ((report->end.is_set && report->failed) || report->completed)
        end_dump(entry, dump, report);
    else if (report->start.is_set)
        ch_status_set_time(dump, "startTimestamp", report->start.wall_us);
}

/* --- the list --- */

/* Hotplug first, then the dump: both in one pass, one event, with the last words (02 trap 10). */
static void
follow_entry(ChStatusPass *pass, ChJson *entry)
{
    g_autofree char *old_phase = g_strdup(ch_status_text(entry, "phase"));

    ch_json_set_string(entry, "target", target_of(pass->domain, ch_status_text(entry, "name")));
    if (ch_json_at(entry, "hotplugVolume") != NULL)
        follow_hotplug(pass, entry);
    if (ch_json_is_object(ch_json_at(entry, "memoryDumpVolume")))
        follow_dump(pass, entry);

    if (!g_str_equal(old_phase, ch_status_text(entry, "phase")))
        ch_status_record(pass,
                         ch_event_new_custom("Normal",
                                             ch_status_text(entry, "reason"),
                                             ch_status_text(entry, "message")));
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(ch_status_text(*(ChJson *const *)a, "name"),
                  ch_status_text(*(ChJson *const *)b, "name"));
}

static void
sort_by_name(ChStatusPass *pass, const ChJson *list)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new();
    ChJson *sorted = ch_json_new_array();

    for (gsize i = 0; i < ch_json_length(list); i++)
        g_ptr_array_add(entries, ch_json_item(list, i));
    g_ptr_array_sort(entries, compare_names); /* stable */
    for (guint i = 0; i < entries->len; i++)
        ch_json_append(sorted, ch_json_ref(entries->pdata[i]));
    ch_json_set(pass->status, "volumeStatus", sorted);
}

void
ch_status_volumes(ChStatusPass *pass)
{
    const ChJson *list = ch_json_at(pass->status, "volumeStatus");

    if (!ch_json_is_array(list) || ch_json_length(list) == 0)
        return;
    for (gsize i = 0; i < ch_json_length(list); i++)
        if (!ch_json_is_object(ch_json_item(list, i)))
            return; /* no list that the API server would have stored */
    for (gsize i = 0; i < ch_json_length(list); i++)
        follow_entry(pass, ch_json_item(list, i));
    sort_by_name(pass, list);
}
