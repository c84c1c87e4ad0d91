/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is copied from the domain and from the launcher's host: machine, memory, backup, changed
 * block tracking, SELinux context (02 §6.3, §6.7 to §6.9).
 */

#include "handler/reconcile/status-internal.h"

void
ch_status_selinux_context(ChStatusPass *pass)
{
    if (pass->input->selinux_context != NULL)
        ch_status_set_text(pass->status, "selinuxContext", pass->input->selinux_context);
}

void
ch_status_machine(ChStatusPass *pass)
{
    if (pass->domain != NULL && pass->domain->machine[0] != '\0')
        ch_json_set_string(
            ch_json_ensure_object(pass->status, "machine"), "type", pass->domain->machine);
}

/* --- memory --- */

/* libvirt's units; a decimal one is printed with decimal suffixes. */
static const struct {
    const char *name;
    uint64_t factor;
    bool is_decimal;
} units[] = {
    /* clang-format off */
    {"b",   1, false},                          {"bytes", 1, false},
    {"KB",  1000, true},                        {"MB",    1000ull * 1000, true},
    {"GB",  1000ull * 1000 * 1000, true},       {"TB",    1000ull * 1000 * 1000 * 1000, true},
    {"k",   1ull << 10, false},                 {"KiB",   1ull << 10, false},
    {"M",   1ull << 20, false},                 {"MiB",   1ull << 20, false},
    {"G",   1ull << 30, false},                 {"GiB",   1ull << 30, false},
    {"T",   1ull << 40, false},                 {"TiB",   1ull << 40, false},
    /* clang-format on */
};

/* The largest suffix that divides evenly; (transfer full). */
static char *
print_with_suffix(int64_t value, int64_t step, const char *const *suffixes)
{
    gsize i = 0;

    while (value != 0 && value % step == 0 && suffixes[i + 1] != NULL) {
        value /= step;
        i++;
    }
    return g_strdup_printf("%" G_GINT64_FORMAT "%s", value, suffixes[i]);
}

/* Kubernetes' canonical form: below 1024 the decimal one, even for binary quantities (02 §5). */
static char *
print_quantity(int64_t value, bool is_decimal)
{
    static const char *const decimal[] = {"", "k", "M", "G", "T", "P", "E", NULL};
    static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", NULL};

    if (is_decimal || (value > -1024 && value < 1024))
        return print_with_suffix(value, 1000, decimal);
    return print_with_suffix(value, 1024, binary);
}

/* (transfer full) (nullable): NULL when the unit is not known */
static char *
quantity_of(uint64_t value, const char *unit)
{
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++)
        if (g_str_equal(units[i].name, unit))
            return print_quantity((int64_t)(value * units[i].factor), units[i].is_decimal);
    return NULL;
}

void
ch_status_memory(ChStatusPass *pass)
{
    g_autofree char *quantity = NULL;
    ChJson *memory;

    if (pass->domain == NULL || !pass->domain->has_current_memory)
        return;
    quantity = quantity_of(pass->domain->current_memory, pass->domain->current_memory_unit);
    memory = ch_json_ensure_object(pass->status, "memory");
    if (g_strcmp0(ch_json_string_at(memory, "guestCurrent"), quantity) != 0)
        ch_json_set_string(memory, "guestCurrent", quantity);
}

/* --- backup --- */

static bool
is_same_start(const ChJson *backup_status, const ChDomainTime *start)
{
    int64_t own_us;
    const bool has_own = ch_status_get_time(backup_status, "startTimestamp", &own_us);

    return has_own == start->is_set && (!has_own || own_us == start->wall_us);
}

/* A set-but-equal time keeps its text. */
static void
copy_time(ChJson *object, const char *key, const ChDomainTime *time)
{
    int64_t own_us;

    if (time->is_set && !(ch_status_get_time(object, key, &own_us) && own_us == time->wall_us))
        ch_status_set_time(object, key, time->wall_us);
}

static void
copy_text(ChJson *object, const char *key, const char *text)
{
    if (text[0] != '\0')
        ch_json_set_string(object, key, text);
}

/* Go's omitempty: false is not written. */
static void
set_flag(ChJson *object, const char *key, bool value)
{
    if (value)
        ch_json_set_bool(object, key, true);
    else
        ch_json_remove(object, key);
}

/* This one list is read by a decoder that does not mind the case of keys. False: no text. */
static bool
read_any_case(const ChJson *object, const char *wanted, const char **out_text)
{
    const char *key;
    ChJson *value;
    ChJsonIter iter;

    *out_text = "";
    ch_json_iter_init(&iter, object);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (g_ascii_strcasecmp(key, wanted) != 0 || value == NULL)
            continue;
        *out_text = ch_json_as_string(value);
        if (*out_text == NULL)
            return false;
    }
    return true;
}

/* (transfer full) (nullable): NULL: it says no such thing */
static ChJson *
read_backup_volume(const ChJson *item)
{
    const char *name, *target, *data, *map;
    ChJson *volume;

    if ((item != NULL && !ch_json_is_object(item)) || !read_any_case(item, "volumeName", &name) ||
        !read_any_case(item, "diskTarget", &target) ||
        !read_any_case(item, "dataEndpoint", &data) || !read_any_case(item, "mapEndpoint", &map))
        return NULL;
    volume = ch_json_new_object();
    ch_json_set_string(volume, "volumeName", name);
    ch_json_set_string(volume, "diskTarget", target);
    ch_status_set_text(volume, "dataEndpoint", data);
    ch_status_set_text(volume, "mapEndpoint", map);
    return volume;
}

/* What does not parse, or is empty, leaves the volumes as they are. */
static void
copy_backup_volumes(ChJson *backup_status, const char *text)
{
    g_autoptr(ChJson) list = ch_json_parse(text, -1, NULL);
    g_autoptr(ChJson) volumes = NULL;

    if (!ch_json_is_array(list) || ch_json_length(list) == 0)
        return;
    volumes = ch_json_new_array();
    for (gsize i = 0; i < ch_json_length(list); i++) {
        ChJson *volume = read_backup_volume(ch_json_item(list, i));

        if (volume == NULL)
            return;
        ch_json_append(volumes, volume);
    }
    ch_json_set(backup_status, "volumes", g_steal_pointer(&volumes));
}

void
ch_status_backup(ChStatusPass *pass)
{
    ChJson *status = ch_json_at(pass->status, "changedBlockTracking", "backupStatus");
    const ChDomainBackup *backup = pass->domain != NULL ? &pass->domain->backup : NULL;

    /* Metadata of an earlier backup may still be there. */
    if (backup == NULL || !backup->exists || !ch_json_is_object(status) ||
        !g_str_equal(backup->name, ch_status_text(status, "backupName")) ||
        !is_same_start(status, &backup->start))
        return;

    set_flag(status, "completed", backup->completed);
    set_flag(status, "failed", backup->failed);
    copy_time(status, "startTimestamp", &backup->start);
    copy_time(status, "endTimestamp", &backup->end);
    copy_text(status, "backupMsg", backup->message);
    copy_text(status, "checkpointName", backup->checkpoint);
    copy_text(status, "quiesceStatus", backup->quiesce_status);
    copy_backup_volumes(status, backup->volumes);
}

/* --- changed block tracking --- */

static bool
has_data_store(const ChDomain *domain, const char *volume)
{
    for (guint i = 0; i < domain->disks->len; i++) {
        const ChDomainDisk *disk = &g_array_index(domain->disks, ChDomainDisk, i);

        if (g_str_equal(disk->name, volume))
            return disk->has_data_store;
    }
    return false;
}

static bool
is_tracked(const ChJson *volume)
{
    return ch_json_at(volume, "persistentVolumeClaim") != NULL ||
           ch_json_at(volume, "dataVolume") != NULL || ch_json_at(volume, "hostDisk") != NULL;
}

bool
ch_status_wants_trackers_marked(const ChVmiView *vmi, const ChDomain *domain)
{
    const ChJson *volumes = ch_json_at(vmi->document, "spec", "volumes");

    domain = ch_domain_live(domain);
    if (domain == NULL ||
        g_strcmp0(ch_json_string_at(vmi->document, "status", "changedBlockTracking", "state"),
                  "Initializing") != 0)
        return false;
    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);

        if (is_tracked(volume) && !has_data_store(domain, ch_status_text(volume, "name")))
            return false;
    }
    return true;
}

void
ch_status_block_tracking(ChStatusPass *pass)
{
    if (pass->input->trackers_marked && ch_status_wants_trackers_marked(&pass->old, pass->domain))
        ch_json_set_string(
            ch_json_ensure_object(pass->status, "changedBlockTracking"), "state", "Enabled");
}
