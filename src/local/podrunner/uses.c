/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/uses.h"

typedef struct {
    char *vmi_uid;
    char *vm; /* "lab/b" */
    char *purpose;
    char *what;
    char *within; /* (nullable) */
    bool is_shared;
} Entry;

struct ChUses {
    GMutex mutex;
    GPtrArray *entries; /* of all VMs */
};

static void
entry_free(gpointer data)
{
    Entry *entry = data;

    g_free(entry->vmi_uid);
    g_free(entry->vm);
    g_free(entry->purpose);
    g_free(entry->what);
    g_free(entry->within);
    g_free(entry);
}

ChUses *
ch_uses_new(void)
{
    ChUses *uses = g_new0(ChUses, 1);

    g_mutex_init(&uses->mutex);
    uses->entries = g_ptr_array_new_with_free_func(entry_free);
    return uses;
}

void
ch_uses_free(ChUses *uses)
{
    if (uses == NULL)
        return;
    g_ptr_array_unref(uses->entries);
    g_mutex_clear(&uses->mutex);
    g_free(uses);
}

/* --- the table, with the mutex held ----------------------------------------------------------- */

static void
add(ChUses *uses, const ChRecord *record, const char *purpose, const ChUse *use)
{
    Entry *entry = g_new0(Entry, 1);

    *entry = (Entry){
        .vmi_uid = g_strdup(record->vmi_uid),
        .vm = g_strdup_printf("%s/%s", record->namespace_, record->vmi_name),
        .purpose = g_strdup(purpose),
        .what = g_strdup(use->what),
        .within = g_strdup(use->within),
        .is_shared = use->is_shared,
    };
    g_ptr_array_add(uses->entries, entry);
}

static bool
overlaps(const Entry *entry, const ChUse *use)
{
    return g_str_equal(entry->what, use->what) || g_strcmp0(entry->within, use->what) == 0 ||
           g_strcmp0(entry->what, use->within) == 0;
}

static bool
is_of(const Entry *entry, const ChRecord *record, const char *purpose)
{
    return g_str_equal(entry->vmi_uid, record->vmi_uid) &&
           (purpose == NULL || g_str_equal(entry->purpose, purpose));
}

/* Borrowed (nullable): who keeps @record's VM from the use. @out_own: set when it has it already */
static const Entry *
find_rival(const ChUses *uses,
           const ChRecord *record,
           const char *purpose,
           const ChUse *use,
           Entry **out_own)
{
    for (guint i = 0; i < uses->entries->len; i++) {
        Entry *entry = uses->entries->pdata[i];

        if (!overlaps(entry, use))
            continue;
        if (is_of(entry, record, purpose)) {
            if (g_str_equal(entry->what, use->what))
                *out_own = entry;
        } else if (!entry->is_shared || !use->is_shared) {
            return entry;
        }
    }
    return NULL;
}

/* What the VM has, as it is kept on record. */
static void
write_record(const ChUses *uses, ChRecord *record)
{
    g_autoptr(ChJson) list = ch_json_new_array();

    for (guint i = 0; i < uses->entries->len; i++) {
        const Entry *entry = uses->entries->pdata[i];
        ChJson *item;

        if (!is_of(entry, record, NULL))
            continue;
        item = ch_json_new_object();
        ch_json_set_string(item, "purpose", entry->purpose);
        ch_json_set_string(item, "what", entry->what);
        ch_json_set_string(item, "within", entry->within);
        ch_json_set_bool(item, "shared", entry->is_shared);
        ch_json_append(list, item);
    }
    g_free(record->uses);
    record->uses = ch_json_length(list) > 0 ? ch_json_print(list, NULL) : NULL;
}

/* --- for all threads -------------------------------------------------------------------------- */

bool
ch_uses_take(ChUses *uses, ChRecord *record, const char *purpose, const ChUse *use, char **out_user)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&uses->mutex);
    Entry *own = NULL;
    const Entry *rival = find_rival(uses, record, purpose, use, &own);

    if (rival != NULL) {
        *out_user = g_strdup_printf("the VM %s (%s)", rival->vm, rival->purpose);
        return false;
    }
    if (own == NULL)
        add(uses, record, purpose, use);
    else
        own->is_shared = use->is_shared;
    write_record(uses, record);
    return true;
}

bool
ch_uses_release(ChUses *uses, ChRecord *record, const char *purpose)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&uses->mutex);
    const guint n_before = uses->entries->len;

    for (guint i = n_before; i > 0; i--) {
        if (is_of(uses->entries->pdata[i - 1], record, purpose))
            g_ptr_array_remove_index(uses->entries, i - 1);
    }
    write_record(uses, record);
    return uses->entries->len != n_before;
}

void
ch_uses_adopt(ChUses *uses, const ChRecord *record)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&uses->mutex);
    g_autoptr(ChJson) list = ch_record_list(record->uses);

    for (gsize i = 0; i < ch_json_length(list); i++) {
        const ChJson *item = ch_json_item(list, i);
        const char *purpose = ch_json_string_at(item, "purpose");
        const ChUse use = {.what = ch_json_string_at(item, "what"),
                           .within = ch_json_string_at(item, "within"),
                           .is_shared = ch_json_bool_at(item, false, "shared")};

        if (purpose != NULL && use.what != NULL)
            add(uses, record, purpose, &use);
    }
}

char **
ch_uses_purposes(ChUses *uses, const ChRecord *record)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&uses->mutex);
    g_autoptr(GStrvBuilder) purposes = g_strv_builder_new();

    for (guint i = 0; i < uses->entries->len; i++) {
        const Entry *entry = uses->entries->pdata[i];

        if (is_of(entry, record, NULL))
            g_strv_builder_add(purposes, entry->purpose);
    }
    return g_strv_builder_end(purposes);
}
