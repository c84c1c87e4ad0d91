/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/mount-record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/small-file.h"
#include "lib/json/json.h"

#define MAX_FILE_BYTES (2u << 20) /* of as many entries as there may be, of two paths each */
#define NODE_ROOT      "/proc/1/root"
#define ENTRIES        "mountTargetEntries"
#define SAFE_PATHS     "usesSafePaths"
#define TARGET         "targetFile"
#define SOCKET         "socketFile"

static const struct {
    const char *dir;
    const char *noun;
} kinds[] = {
    [CH_MOUNT_RECORD_DISKS] = {"container-disk-mount-state", "container disk"},
    [CH_MOUNT_RECORD_HOTPLUG] = {"hotplug-volume-mount-state", "hotplug"},
};
G_STATIC_ASSERT(G_N_ELEMENTS(kinds) == CH_MOUNT_RECORD_N);

static void
entry_free(gpointer data)
{
    ChMountEntry *entry = data;

    g_free(entry->target_file);
    g_free(entry->socket_file);
    g_free(entry);
}

static ChMountRecord *
record_new(void)
{
    ChMountRecord *record = g_new0(ChMountRecord, 1);

    record->entries = g_ptr_array_new_with_free_func(entry_free);
    return record;
}

void
ch_mount_record_free(ChMountRecord *record)
{
    if (record == NULL)
        return;
    g_ptr_array_unref(record->entries);
    g_free(record);
}

/* (transfer full): NULL when the UID names no file. @verb: what is not possible then */
static char *
file_path(ChMountRecordKind kind,
          const char *private_dir,
          const char *uid,
          const char *verb,
          GError **error)
{
    if (uid[0] == '\0') {
        ch_fail(error,
                CH_ERROR_INVALID,
                "unable to %s %s mounted directories for vmi without uid",
                verb,
                kinds[kind].noun);
        return NULL;
    }
    if (uid[0] == '.' || strchr(uid, '/') != NULL || strlen(uid) > NAME_MAX) {
        ch_fail(error, CH_ERROR_INVALID, "'%s' is no UID", uid);
        return NULL;
    }
    return g_build_filename(private_dir, kinds[kind].dir, uid, NULL);
}

const ChMountEntry *
ch_mount_record_find(const ChMountRecord *record, const char *target_file)
{
    for (guint i = 0; i < record->entries->len; i++) {
        const ChMountEntry *entry = record->entries->pdata[i];

        if (g_str_equal(entry->target_file, target_file))
            return entry;
    }
    return NULL;
}

bool
ch_mount_record_add(ChMountRecord *record, const char *target_file, const char *socket_file)
{
    ChMountEntry *entry;

    if (ch_mount_record_find(record, target_file) != NULL)
        return false;
    entry = g_new0(ChMountEntry, 1);
    entry->target_file = g_strdup(target_file);
    entry->socket_file = g_strdup(socket_file);
    g_ptr_array_add(record->entries, entry);
    return true;
}

bool
ch_mount_record_drop(ChMountRecord *record, const char *target_file)
{
    for (guint i = 0; i < record->entries->len; i++) {
        const ChMountEntry *entry = record->entries->pdata[i];

        if (g_str_equal(entry->target_file, target_file)) {
            g_ptr_array_remove_index(record->entries, i);
            return true;
        }
    }
    return false;
}

/* (transfer full): the path as this agent, and the Go one since it has safe paths, writes it */
static char *
convert_path(const char *path, bool is_safe, GError **error)
{
    g_autofree char *canonical = NULL;

    if (path == NULL || path[0] != '/') {
        ch_fail(error, CH_ERROR_INVALID, "an entry without an absolute path");
        return NULL;
    }
    if (is_safe)
        return g_strdup(path);
    canonical = g_canonicalize_filename(path, "/");
    if (g_str_has_prefix(canonical, NODE_ROOT "/"))
        return g_strdup(canonical + strlen(NODE_ROOT));
    return g_steal_pointer(&canonical);
}

static bool
parse_entries(const ChJson *json, ChMountRecord *record, GError **error)
{
    const ChJson *entries = ch_json_at(json, ENTRIES);
    const bool is_safe = ch_json_bool_at(json, false, SAFE_PATHS);

    if (!ch_json_is_object(json) || (entries != NULL && !ch_json_is_array(entries)))
        return ch_fail(error, CH_ERROR_INVALID, "no record of mounts");
    if (ch_json_length(entries) > CH_MOUNT_RECORD_MAX_ENTRIES)
        return ch_fail(error, CH_ERROR_LIMIT, "more than %u mounts", CH_MOUNT_RECORD_MAX_ENTRIES);
    for (gsize i = 0; i < ch_json_length(entries); i++) {
        const ChJson *entry = ch_json_item(entries, i);
        g_autofree char *path = convert_path(ch_json_string_at(entry, TARGET), is_safe, error);

        if (path == NULL) {
            if (!is_safe)
                g_prefix_error(error, "failed converting legacy path to safepath: ");
            return false;
        }
        (void)ch_mount_record_add(record, path, ch_json_string_at(entry, SOCKET));
    }
    return true;
}

static ChMountRecord *
read_record(const char *path, GError **error)
{
    ch_autofd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    g_autoptr(ChMountRecord) record = record_new();
    g_autoptr(ChJson) json = NULL;
    g_autofree char *text = NULL;
    gsize length = 0;

    if (fd < 0 && errno == ENOENT)
        return g_steal_pointer(&record);
    if (fd < 0) {
        ch_fail_errno(error, errno, "open '%s'", path);
        return NULL;
    }
    text = ch_small_file_read_fd(fd, path, MAX_FILE_BYTES, &length, error);
    json = text != NULL ? ch_json_parse(text, (gssize)length, error) : NULL;
    if (json == NULL || !parse_entries(json, record, error))
        return NULL;
    record->is_stored = true;
    return g_steal_pointer(&record);
}

ChMountRecord *
ch_mount_record_load(ChMountRecordKind kind,
                     const char *private_dir,
                     const char *uid,
                     GError **error)
{
    g_autofree char *path = file_path(kind, private_dir, uid, "find", error);
    ChMountRecord *record;

    if (path == NULL)
        return NULL;
    record = read_record(path, error);
    if (record == NULL)
        g_prefix_error(error, "failed to get checkpoint %s, ", uid);
    return record;
}

/* (transfer full): as Go prints it: without entries they are null */
static char *
print_record(const ChMountRecord *record)
{
    g_autoptr(ChJson) json = ch_json_new_object();
    ChJson *entries = record->entries->len > 0 ? ch_json_new_array() : NULL;

    for (guint i = 0; i < record->entries->len; i++) {
        const ChMountEntry *entry = record->entries->pdata[i];
        ChJson *object = ch_json_new_object();

        ch_json_set_string(object, TARGET, entry->target_file);
        if (entry->socket_file != NULL)
            ch_json_set_string(object, SOCKET, entry->socket_file);
        ch_json_append(entries, object);
    }
    ch_json_set(json, ENTRIES, entries);
    ch_json_set_bool(json, SAFE_PATHS, true);
    return ch_json_print(json, NULL);
}

static bool
write_file(const char *path, const char *text, GError **error)
{
    ch_autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return ch_fail_errno(error, errno, "create '%s'", path);
    return ch_small_file_write_fd(fd, path, text, error);
}

/* Whole or not at all. No fsync: the directory is on tmpfs, and what must be survived is the end of
 * this process, not of the machine. The temporary file is where nobody lists. */
bool
ch_mount_record_store(ChMountRecordKind kind,
                      const char *private_dir,
                      const char *uid,
                      ChMountRecord *record,
                      GError **error)
{
    g_autofree char *path = file_path(kind, private_dir, uid, "set", error);
    g_autofree char *temporary = NULL;
    g_autofree char *text = NULL;

    if (path == NULL)
        return false;
    temporary = g_strdup_printf("%s/.%s-%s.tmp", private_dir, kinds[kind].dir, uid);
    text = print_record(record);
    if (write_file(temporary, text, error)) {
        if (rename(temporary, path) == 0) {
            record->is_stored = true;
            return true;
        }
        ch_fail_errno(error, errno, "rename '%s'", temporary);
    }
    (void)unlink(temporary); /* what is left of it is overwritten by the next try */
    g_prefix_error(error, "failed to checkpoint %s, ", uid);
    return false;
}

bool
ch_mount_record_remove(ChMountRecordKind kind,
                       const char *private_dir,
                       const char *uid,
                       GError **error)
{
    g_autofree char *path = file_path(kind, private_dir, uid, "find", error);

    if (path == NULL)
        return false;
    if (unlink(path) == 0 || errno == ENOENT)
        return true;
    ch_fail_errno(error, errno, "remove '%s'", path);
    g_prefix_error(error, "failed to delete checkpoint %s, ", uid);
    return false;
}
