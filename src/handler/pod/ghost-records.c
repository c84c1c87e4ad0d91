/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/ghost-records.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/json/json.h"

#define RECORDS_DIR      "ghost-records"
#define MAX_RECORD_BYTES 16384 /* four names of Kubernetes and a path are below 2 kB */

struct ChGhostRecords {
    char *private_dir;     /* owned */
    char *dir;             /* owned; with the records */
    pthread_mutex_t mutex; /* guards by_key; never held across I/O */
    GHashTable *by_key;    /* "namespace/name" -> ChGhostRecord, both owned */
};

/* Go's MkdirAll: what exists keeps its mode. */
static const struct {
    const char *name;
    int mode;
} private_dirs[] = {
    {RECORDS_DIR, 0755},
    {"container-disk-mount-state", 0700},
    {"hotplug-volume-mount-state", 0700},
};

void
ch_ghost_record_free(ChGhostRecord *record)
{
    if (record == NULL)
        return;
    g_free(record->name);
    g_free(record->namespace_);
    g_free(record->socket_file);
    g_free(record->uid);
    g_free(record);
}

static ChGhostRecord *
record_new(const char *namespace_, const char *name, const char *socket_file, const char *uid)
{
    ChGhostRecord *record = g_new0(ChGhostRecord, 1);

    record->name = g_strdup(name);
    record->namespace_ = g_strdup(namespace_);
    record->socket_file = g_strdup(socket_file);
    record->uid = g_strdup(uid);
    return record;
}

ChGhostRecord *
ch_ghost_record_copy(const ChGhostRecord *record)
{
    return record_new(record->namespace_, record->name, record->socket_file, record->uid);
}

static char *
make_key(const char *namespace_, const char *name)
{
    return g_strconcat(namespace_, "/", name, NULL);
}

static bool
is_empty(const char *text)
{
    return text == NULL || text[0] == '\0';
}

/* A UID names a file: one component, and none of those that are skipped or temporary. */
static bool
uid_names_file(const char *uid)
{
    return uid[0] != '.' && strchr(uid, '/') == NULL && strlen(uid) <= NAME_MAX;
}

static bool
make_private_dirs(const char *private_dir, GError **error)
{
    if (g_mkdir_with_parents(private_dir, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", private_dir);
    for (gsize i = 0; i < G_N_ELEMENTS(private_dirs); i++) {
        g_autofree char *path = g_build_filename(private_dir, private_dirs[i].name, NULL);

        if (g_mkdir_with_parents(path, private_dirs[i].mode) < 0)
            return ch_fail_errno(error, errno, "create directory '%s'", path);
    }
    return true;
}

/* (transfer full): the file's text; of a link there is none. */
static char *
read_file(const char *path, gsize *out_length, GError **error)
{
    ch_autofd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0) {
        ch_fail_errno(error, errno, "open '%s'", path);
        return NULL;
    }
    return ch_small_file_read_fd(fd, path, MAX_RECORD_BYTES, out_length, error);
}

static ChGhostRecord *
parse_record(const char *text, gsize length, const char *file_name, GError **error)
{
    g_autoptr(ChJson) json = ch_json_parse(text, (gssize)length, error);
    const char *name;
    const char *namespace_;
    const char *socket_file;
    const char *uid;

    if (json == NULL)
        return NULL;
    name = ch_json_string_at(json, "name");
    namespace_ = ch_json_string_at(json, "namespace");
    socket_file = ch_json_string_at(json, "socketFile");
    uid = ch_json_string_at(json, "uid");
    if (is_empty(name) || is_empty(namespace_) || is_empty(socket_file) ||
        g_strcmp0(uid, file_name) != 0) {
        ch_fail(error, CH_ERROR_INVALID, "'%s' holds no ghost record of this UID", file_name);
        return NULL;
    }
    return record_new(namespace_, name, socket_file, uid);
}

static void
load_record(ChGhostRecords *records, const char *file_name)
{
    g_autofree char *path = g_build_filename(records->dir, file_name, NULL);
    g_autoptr(ChGhostRecord) record = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    gsize length = 0;
    char *key;

    text = read_file(path, &length, &error);
    if (text != NULL)
        record = parse_record(text, length, file_name, &error);
    if (record == NULL) {
        ch_log_error(NULL, error, "Unable to read ghost record checkpoint, %s", file_name);
        return;
    }
    key = make_key(record->namespace_, record->name);
    ch_log_info(NULL, "Added ghost record for key %s", key);
    g_hash_table_replace(records->by_key, key, g_steal_pointer(&record));
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A directory that cannot be read counts as empty; VMs that run will be missed then. */
static void
load_all(ChGhostRecords *records)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    g_autoptr(GDir) dir = g_dir_open(records->dir, 0, &error);
    const char *name;

    if (dir == NULL)
        ch_log_error(NULL, error, "Unable to read the ghost records, assuming that there are none");
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++)
        load_record(records, names->pdata[i]);
}

ChGhostRecords *
ch_ghost_records_load(const char *private_dir, GError **error)
{
    ChGhostRecords *records;

    if (!make_private_dirs(private_dir, error))
        return NULL;
    records = g_new0(ChGhostRecords, 1);
    records->private_dir = g_strdup(private_dir);
    records->dir = g_build_filename(private_dir, RECORDS_DIR, NULL);
    records->by_key = g_hash_table_new_full(
        g_str_hash, g_str_equal, g_free, (GDestroyNotify)ch_ghost_record_free);
    pthread_mutex_init(&records->mutex, NULL);
    load_all(records);
    return records;
}

void
ch_ghost_records_free(ChGhostRecords *records)
{
    if (records == NULL)
        return;
    pthread_mutex_destroy(&records->mutex);
    g_hash_table_unref(records->by_key);
    g_free(records->private_dir);
    g_free(records->dir);
    g_free(records);
}

static char *
print_record(const ChGhostRecord *record)
{
    g_autoptr(ChJson) json = ch_json_new_object();

    ch_json_set_string(json, "name", record->name);
    ch_json_set_string(json, "namespace", record->namespace_);
    ch_json_set_string(json, "socketFile", record->socket_file);
    ch_json_set_string(json, "uid", record->uid);
    return ch_json_print(json, NULL);
}

static bool
write_text(const char *path, const char *text, GError **error)
{
    ch_autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return ch_fail_errno(error, errno, "create '%s'", path);
    return ch_small_file_write_fd(fd, path, text, error);
}

/* Whole or not at all. No fsync: the directory is on tmpfs, and what must be survived is the end of
 * this process, not of the machine (whose VMs end with it). */
static bool
store_record(const ChGhostRecords *records, const ChGhostRecord *record, GError **error)
{
    g_autofree char *text = print_record(record);
    g_autofree char *path = g_build_filename(records->dir, record->uid, NULL);
    g_autofree char *temp_name = g_strconcat(".", record->uid, ".tmp", NULL);
    g_autofree char *temp_path = g_build_filename(records->private_dir, temp_name, NULL);

    if (write_text(temp_path, text, error)) {
        CH_CRASH_POINT("record/written");
        if (rename(temp_path, path) == 0)
            return true;
        ch_fail_errno(error, errno, "rename '%s'", temp_path);
    }
    (void)unlink(temp_path); /* what is left of it is overwritten by the next try */
    g_prefix_error(error, "failed to checkpoint %s, ", record->uid);
    return false;
}

static bool
check_arguments(const char *namespace_,
                const char *name,
                const char *socket_file,
                const char *uid,
                GError **error)
{
    const char *problem = NULL;

    if (is_empty(name))
        problem = "can not add ghost record when 'name' is not provided";
    else if (is_empty(namespace_))
        problem = "can not add ghost record when 'namespace' is not provided";
    else if (is_empty(uid))
        problem = "unable to add ghost record with empty UID";
    else if (is_empty(socket_file))
        problem = "unable to add ghost record without a socketFile";
    else if (!uid_names_file(uid))
        problem = "unable to add ghost record with a UID that names no file";
    return problem == NULL || ch_fail(error, CH_ERROR_INVALID, "%s", problem);
}

static bool
paths_are_equal(const char *stored, const char *asked)
{
    g_autofree char *normalised = g_canonicalize_filename(stored, "/");

    return g_str_equal(normalised, asked);
}

static bool
check_existing(const ChGhostRecord *existing,
               const char *socket_file,
               const char *uid,
               GError **error)
{
    if (!g_str_equal(existing->uid, uid))
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "can not add ghost record when entry already exists with differing UID");
    if (!paths_are_equal(existing->socket_file, socket_file))
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "can not add ghost record when entry already exists with differing socket "
                       "file location");
    return true;
}

bool
ch_ghost_records_add(ChGhostRecords *records,
                     const char *namespace_,
                     const char *name,
                     const char *socket_file,
                     const char *uid,
                     GError **error)
{
    g_autoptr(ChGhostRecord) existing = NULL;
    g_autoptr(ChGhostRecord) record = NULL;

    if (!check_arguments(namespace_, name, socket_file, uid, error))
        return false;
    existing = ch_ghost_records_find(records, namespace_, name);
    if (existing != NULL)
        return check_existing(existing, socket_file, uid, error);

    record = record_new(namespace_, name, socket_file, uid);
    if (!store_record(records, record, error))
        return false;
    CH_CRASH_POINT("record/added");
    pthread_mutex_lock(&records->mutex);
    g_hash_table_replace(records->by_key, make_key(namespace_, name), g_steal_pointer(&record));
    pthread_mutex_unlock(&records->mutex);
    return true;
}

bool
ch_ghost_records_remove(ChGhostRecords *records,
                        const char *namespace_,
                        const char *name,
                        GError **error)
{
    g_autoptr(ChGhostRecord) record = ch_ghost_records_find(records, namespace_, name);
    g_autofree char *key = make_key(namespace_, name);
    g_autofree char *path = NULL;

    if (record == NULL)
        return true;
    path = g_build_filename(records->dir, record->uid, NULL);
    if (unlink(path) < 0 && errno != ENOENT) {
        ch_fail_errno(error, errno, "remove '%s'", path);
        g_prefix_error(error, "failed to delete checkpoint %s, ", record->uid);
        return false;
    }
    CH_CRASH_POINT("record/removed");
    pthread_mutex_lock(&records->mutex);
    g_hash_table_remove(records->by_key, key);
    pthread_mutex_unlock(&records->mutex);
    return true;
}

ChGhostRecord *
ch_ghost_records_find(ChGhostRecords *records, const char *namespace_, const char *name)
{
    g_autofree char *key = make_key(namespace_, name);
    const ChGhostRecord *record;
    ChGhostRecord *copy = NULL;

    pthread_mutex_lock(&records->mutex);
    record = g_hash_table_lookup(records->by_key, key);
    if (record != NULL)
        copy = ch_ghost_record_copy(record);
    pthread_mutex_unlock(&records->mutex);
    return copy;
}

ChGhostRecord *
ch_ghost_records_find_by_socket(ChGhostRecords *records, const char *socket_file)
{
    ChGhostRecord *copy = NULL;
    GHashTableIter iter;
    gpointer record;

    pthread_mutex_lock(&records->mutex);
    g_hash_table_iter_init(&iter, records->by_key);
    while (copy == NULL && g_hash_table_iter_next(&iter, NULL, &record))
        if (paths_are_equal(((const ChGhostRecord *)record)->socket_file, socket_file))
            copy = ch_ghost_record_copy(record);
    pthread_mutex_unlock(&records->mutex);
    return copy;
}

static int
compare_records(gconstpointer a, gconstpointer b)
{
    const ChGhostRecord *const *left = a;
    const ChGhostRecord *const *right = b;
    const int order = strcmp((*left)->namespace_, (*right)->namespace_);

    return order != 0 ? order : strcmp((*left)->name, (*right)->name);
}

GPtrArray *
ch_ghost_records_list(ChGhostRecords *records)
{
    GPtrArray *list = g_ptr_array_new_with_free_func((GDestroyNotify)ch_ghost_record_free);
    GHashTableIter iter;
    gpointer record;

    pthread_mutex_lock(&records->mutex);
    g_hash_table_iter_init(&iter, records->by_key);
    while (g_hash_table_iter_next(&iter, NULL, &record))
        g_ptr_array_add(list, ch_ghost_record_copy(record));
    pthread_mutex_unlock(&records->mutex);
    g_ptr_array_sort(list, compare_records);
    return list;
}
