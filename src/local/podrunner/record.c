/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/record.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stddef.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "local/podrunner/pod-layout.h"

typedef struct {
    const char *key;
    gsize offset;
} Member;

static const Member strings[] = {
    {"uid", offsetof(ChRecord, uid)},
    {"name", offsetof(ChRecord, name)},
    {"namespace", offsetof(ChRecord, namespace_)},
    {"vmiName", offsetof(ChRecord, vmi_name)},
    {"vmiUID", offsetof(ChRecord, vmi_uid)},
};

/* A record without them is of an earlier version, or of a pod without network. */
static const Member optional_strings[] = {
    {"network", offsetof(ChRecord, network)},
    {"ips", offsetof(ChRecord, ips)},
    {"cniResult", offsetof(ChRecord, cni_result)},
    {"attachments", offsetof(ChRecord, attachments)},
    {"hotplugs", offsetof(ChRecord, hotplugs)},
    {"uses", offsetof(ChRecord, uses)},
    {"volumeTroubles", offsetof(ChRecord, volume_troubles)},
    {"troubles", offsetof(ChRecord, troubles)},
};

static const Member numbers[] = {
    {"pid", offsetof(ChRecord, pid)},
    {"startTime", offsetof(ChRecord, start_time)},
    {"stopped", offsetof(ChRecord, stop_us)},
    {"graceSeconds", offsetof(ChRecord, grace_s)},
};

static char **
string_member(const ChRecord *record, gsize i)
{
    return G_STRUCT_MEMBER_P(record, strings[i].offset);
}

static char **
optional_member(const ChRecord *record, gsize i)
{
    return G_STRUCT_MEMBER_P(record, optional_strings[i].offset);
}

static int64_t *
number_member(const ChRecord *record, gsize i)
{
    return G_STRUCT_MEMBER_P(record, numbers[i].offset);
}

void
ch_record_free(ChRecord *record)
{
    if (record == NULL)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(strings); i++)
        g_free(*string_member(record, i));
    for (gsize i = 0; i < G_N_ELEMENTS(optional_strings); i++)
        g_free(*optional_member(record, i));
    g_free(record);
}

ChRecord *
ch_record_dup(const ChRecord *record)
{
    ChRecord *copy = g_memdup2(record, sizeof(*record));

    for (gsize i = 0; i < G_N_ELEMENTS(strings); i++)
        *string_member(copy, i) = g_strdup(*string_member(record, i));
    for (gsize i = 0; i < G_N_ELEMENTS(optional_strings); i++)
        *optional_member(copy, i) = g_strdup(*optional_member(record, i));
    return copy;
}

char *
ch_record_print(const ChRecord *record)
{
    g_autoptr(ChJson) json = ch_json_new_object();

    for (gsize i = 0; i < G_N_ELEMENTS(strings); i++)
        ch_json_set_string(json, strings[i].key, *string_member(record, i));
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        ch_json_set_int(json, numbers[i].key, *number_member(record, i));
    ch_json_set_bool(json, "tidied", record->is_tidied);
    for (gsize i = 0; i < G_N_ELEMENTS(optional_strings); i++)
        ch_json_set_string(json, optional_strings[i].key, *optional_member(record, i));
    ch_json_set_bool(json, "hostPorts", record->has_host_ports);
    ch_json_set_bool(json, "noPodNetwork", record->has_no_pod_network);
    ch_json_set_int(json, "failedDels", record->n_failed_dels);
    return ch_json_print(json, NULL);
}

ChRecord *
ch_record_parse(const char *text, GError **error)
{
    g_autoptr(ChJson) json = ch_json_parse(text, -1, error);
    g_autoptr(ChRecord) record = g_new0(ChRecord, 1);

    if (json == NULL)
        return NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(strings); i++) {
        const char *value = ch_json_string_at(json, strings[i].key);

        if (value == NULL || *value == '\0') {
            ch_fail(error, CH_ERROR_INVALID, "'%s' is missing", strings[i].key);
            return NULL;
        }
        *string_member(record, i) = g_strdup(value);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (!ch_json_int_at(json, number_member(record, i), numbers[i].key) ||
            *number_member(record, i) < 0) {
            ch_fail(error, CH_ERROR_INVALID, "'%s' is missing or wrong", numbers[i].key);
            return NULL;
        }
    }
    record->is_tidied = ch_json_bool_at(json, false, "tidied");
    for (gsize i = 0; i < G_N_ELEMENTS(optional_strings); i++)
        *optional_member(record, i) = g_strdup(ch_json_string_at(json, optional_strings[i].key));
    record->has_host_ports = ch_json_bool_at(json, false, "hostPorts");
    record->has_no_pod_network = ch_json_bool_at(json, false, "noPodNetwork");
    (void)ch_json_int_at(json, &record->n_failed_dels, "failedDels");
    return g_steal_pointer(&record);
}

ChJson *
ch_record_list(const char *member)
{
    ChJson *list = member != NULL ? ch_json_parse(member, -1, NULL) : NULL;

    return list != NULL ? list : ch_json_new_array();
}

void
ch_record_set_list(char **member, const ChJson *list)
{
    g_free(*member);
    *member = ch_json_length(list) > 0 ? ch_json_print(list, NULL) : NULL;
}

static char *
record_path(const char *state_dir, const char *pod_uid)
{
    g_autofree char *dir = ch_pod_run_dir(state_dir, pod_uid);

    return g_build_filename(dir, "record.json", NULL);
}

bool
ch_record_save(const ChRecord *record, const char *state_dir, GError **error)
{
    g_autofree char *dir = ch_pod_run_dir(state_dir, record->uid);
    g_autofree char *path = record_path(state_dir, record->uid);
    g_autofree char *text = ch_record_print(record);

    if (g_mkdir_with_parents(dir, 0700) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", dir);
    return g_file_set_contents(path, text, -1, error);
}

ChRecord *
ch_record_load(const char *state_dir, const char *pod_uid, GError **error)
{
    g_autofree char *path = record_path(state_dir, pod_uid);
    g_autofree char *text = NULL;
    gsize length = 0;
    ChRecord *record;

    if (!g_file_get_contents(path, &text, &length, error))
        return NULL;
    if (length > CH_RECORD_MAX_BYTES) {
        ch_fail(error, CH_ERROR_LIMIT, "'%s' is too large", path);
        return NULL;
    }
    record = ch_record_parse(text, error);
    if (record == NULL)
        g_prefix_error(error, "%s: ", path);
    return record;
}

GPtrArray *
ch_record_load_all(const char *state_dir)
{
    GPtrArray *records = g_ptr_array_new_with_free_func((GDestroyNotify)ch_record_free);
    g_autofree char *parent = g_build_filename(state_dir, "run", NULL);
    g_autoptr(GDir) dir = g_dir_open(parent, 0, NULL);
    const char *uid = NULL;

    while (dir != NULL && (uid = g_dir_read_name(dir)) != NULL) {
        g_autoptr(GError) error = NULL;
        ChRecord *record = ch_record_load(state_dir, uid, &error);

        if (record != NULL && g_str_equal(record->uid, uid)) {
            g_ptr_array_add(records, record);
            continue;
        }
        ch_record_free(record);
        ch_log_warning(NULL, error, "ignoring the unreadable record of pod '%s'", uid);
    }
    return records;
}
