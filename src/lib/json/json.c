/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/json/json.h"

#include "lib/json/json-internal.h"

#include <string.h>

bool
ch_json_is_object(const ChJson *json)
{
    return ch_json_kind(json) == CH_JSON_KIND_OBJECT;
}

bool
ch_json_is_array(const ChJson *json)
{
    return ch_json_kind(json) == CH_JSON_KIND_ARRAY;
}

bool
ch_json_is_string(const ChJson *json)
{
    return ch_json_kind(json) == CH_JSON_KIND_STRING;
}

bool
ch_json_is_bool(const ChJson *json)
{
    return ch_json_kind(json) == CH_JSON_KIND_FALSE || ch_json_kind(json) == CH_JSON_KIND_TRUE;
}

bool
ch_json_is_number(const ChJson *json)
{
    return ch_json_kind(json) == CH_JSON_KIND_NUMBER;
}

bool
ch_json_is_integer(const ChJson *json)
{
    int64_t as_signed;
    guint64 as_unsigned;

    if (!ch_json_is_number(json))
        return false;
    return ch_json_as_int(json, &as_signed) ||
           g_ascii_string_to_unsigned(ch_json_text(json), 10, 0, G_MAXUINT64, &as_unsigned, NULL);
}

/* --- members */

static ChJsonMember *
find_indexed(const ChJsonObject *object, const char *name)
{
    gpointer slot;

    if (!g_tree_lookup_extended(object->index, name, NULL, &slot))
        return NULL;
    return &object->slots[GPOINTER_TO_UINT(slot)];
}

/* @json: an object */
static ChJsonMember *
find(const ChJson *json, const char *name)
{
    const ChJsonObject *object = (const ChJsonObject *)json;

    return object->index != NULL
               ? find_indexed(object, name)
               : ch_json_member_find(object->slots, object->n_slots, name, strlen(name));
}

static void
close_holes(ChJsonObject *object)
{
    guint n = 0;

    for (guint i = 0; i < object->n_slots; i++) {
        if (object->slots[i].name != NULL)
            object->slots[n++] = object->slots[i];
    }
    object->n_slots = n;
    object->n_holes = 0;
    if (object->index != NULL)
        ch_json_object_index(object);
}

/* (transfer full): what an arena has stays there. */
static void *
grow(void *old, bool is_own, gsize n_used_bytes, gsize n_bytes)
{
    void *grown;

    if (is_own)
        return g_realloc(old, n_bytes);
    grown = g_malloc(n_bytes);
    if (old != NULL && n_used_bytes > 0)
        memcpy(grown, old, n_used_bytes);
    return grown;
}

/* Many holes are closed; otherwise it grows, so that this is rare either way. */
static void
make_room(ChJsonObject *object)
{
    if (object->n_slots < object->size)
        return;
    if (object->n_holes > object->size / 2) {
        close_holes(object);
        return;
    }
    object->size = MAX(4, object->size * 2);
    object->slots = grow(object->slots,
                         object->has_own_slots,
                         object->n_slots * sizeof(ChJsonMember),
                         object->size * sizeof(ChJsonMember));
    object->has_own_slots = true;
}

static void
add_member(ChJsonObject *object, const char *name, gsize length, ChJson *value)
{
    ChJsonMember *member;

    make_room(object);
    member = &object->slots[object->n_slots++];
    *member = (ChJsonMember){
        .name = g_strndup(name, length),
        .length = (guint32)length,
        .has_own_name = true,
        .value = value,
    };
    if (object->index != NULL)
        ch_json_object_index_slot(object, object->n_slots - 1);
    else if (object->n_slots > CH_JSON_INDEX_FROM)
        ch_json_object_index(object);
}

static void
replace_value(ChJsonMember *member, ChJson *value)
{
    ch_json_unref(member->value);
    member->value = value;
}

void
ch_json_set(ChJson *json, const char *key, ChJson *value)
{
    ChJsonMember *member;

    g_return_if_fail(ch_json_is_object(json));
    member = find(json, key);
    if (member != NULL)
        replace_value(member, value);
    else
        add_member((ChJsonObject *)json, key, strlen(key), value);
}

void
ch_json_remove(ChJson *json, const char *key)
{
    ChJsonObject *object = (ChJsonObject *)json;
    ChJsonMember *member;

    g_return_if_fail(ch_json_is_object(json));
    member = find(json, key);
    if (member == NULL)
        return;
    if (object->index != NULL)
        g_tree_remove(object->index, key);
    ch_json_member_clear(member);
    *member = (ChJsonMember){0};
    object->n_holes++;
}

static ChJson *
member_of(const ChJson *json, const char *key)
{
    const ChJsonMember *member = ch_json_is_object(json) ? find(json, key) : NULL;

    return member != NULL ? member->value : NULL;
}

bool
ch_json_has(const ChJson *object, const char *key)
{
    return ch_json_is_object(object) && find(object, key) != NULL;
}

ChJson *
ch_json_walk(const ChJson *json, ...)
{
    const char *key;
    va_list keys;

    va_start(keys, json);
    while (json != NULL && (key = va_arg(keys, const char *)) != NULL)
        json = member_of(json, key);
    va_end(keys);
    return (ChJson *)json;
}

const char *
ch_json_as_string(const ChJson *json)
{
    if (!ch_json_is_string(json) || strlen(ch_json_text(json)) != ch_json_text_length(json))
        return NULL;
    return ch_json_text(json);
}

bool
ch_json_as_int(const ChJson *json, int64_t *out_value)
{
    return ch_json_is_number(json) &&
           g_ascii_string_to_signed(
               ch_json_text(json), 10, G_MININT64, G_MAXINT64, out_value, NULL);
}

bool
ch_json_as_bool(const ChJson *json, bool fallback)
{
    return ch_json_is_bool(json) ? json->kind == CH_JSON_KIND_TRUE : fallback;
}

double
ch_json_as_double(const ChJson *json)
{
    return ch_json_is_number(json) ? g_ascii_strtod(ch_json_text(json), NULL) : 0;
}

gsize
ch_json_length(const ChJson *json)
{
    const ChJsonObject *object = (const ChJsonObject *)json;

    if (ch_json_is_array(json))
        return ((const ChJsonArray *)json)->n_items;
    return ch_json_is_object(json) ? object->n_slots - object->n_holes : 0;
}

ChJson *
ch_json_item(const ChJson *array, gsize index)
{
    if (!ch_json_is_array(array) || index >= ch_json_length(array))
        return NULL;
    return ((const ChJsonArray *)array)->items[index];
}

ChJson *
ch_json_find_index(const ChJson *array, const char *member, const char *text, gsize *out_index)
{
    for (gsize i = 0; i < ch_json_length(array); i++) {
        ChJson *item = ch_json_item(array, i);

        if (g_strcmp0(ch_json_string_at(item, member), text) != 0)
            continue;
        if (out_index != NULL)
            *out_index = i;
        return item;
    }
    return NULL;
}

ChJson *
ch_json_find(const ChJson *array, const char *member, const char *text)
{
    return ch_json_find_index(array, member, text, NULL);
}

bool
ch_json_contains(const ChJson *array, const char *text)
{
    for (gsize i = 0; i < ch_json_length(array); i++)
        if (g_strcmp0(ch_json_as_string(ch_json_item(array, i)), text) == 0)
            return true;
    return false;
}

void
ch_json_iter_init(ChJsonIter *iter, const ChJson *object)
{
    *iter = (ChJsonIter){.object = ch_json_is_object(object) ? object : NULL};
}

bool
ch_json_iter_next(ChJsonIter *iter, const char **out_key, ChJson **out_value)
{
    const ChJsonObject *object = (const ChJsonObject *)iter->object;

    while (object != NULL && iter->next < object->n_slots) {
        const ChJsonMember *member = &object->slots[iter->next++];

        if (member->name != NULL) {
            *out_key = member->name;
            *out_value = member->value;
            return true;
        }
    }
    return false;
}

ChJson *
ch_json_new_object(void)
{
    return &ch_json_object_make(NULL, 0)->head;
}

ChJson *
ch_json_new_array(void)
{
    return &ch_json_array_make(NULL, 0)->head;
}

ChJson *
ch_json_new_string(const char *text)
{
    return ch_json_leaf_make(NULL, CH_JSON_KIND_STRING, text, strlen(text));
}

ChJson *
ch_json_new_int(int64_t value)
{
    char text[32];
    const int length = g_snprintf(text, sizeof(text), "%" G_GINT64_FORMAT, value);

    return ch_json_leaf_make(NULL, CH_JSON_KIND_NUMBER, text, (gsize)length);
}

ChJson *
ch_json_new_number(const char *text)
{
    const gsize length = strlen(text);

    if (length == 0 || length > CH_JSON_MAX_NUMBER || ch_json_number_span(text, length) != length)
        return NULL;
    return ch_json_leaf_make(NULL, CH_JSON_KIND_NUMBER, text, length);
}

ChJson *
ch_json_new_bool(bool value)
{
    return value ? &ch_json_true : &ch_json_false;
}

void
ch_json_set_string(ChJson *object, const char *key, const char *text)
{
    if (text == NULL)
        ch_json_remove(object, key);
    else
        ch_json_set(object, key, ch_json_new_string(text));
}

void
ch_json_set_int(ChJson *object, const char *key, int64_t value)
{
    ch_json_set(object, key, ch_json_new_int(value));
}

void
ch_json_set_bool(ChJson *object, const char *key, bool value)
{
    ch_json_set(object, key, ch_json_new_bool(value));
}

void
ch_json_append(ChJson *array, ChJson *value)
{
    ch_json_insert_item(array, ch_json_length(array), value);
}

void
ch_json_insert_item(ChJson *json, gsize index, ChJson *value)
{
    ChJsonArray *array = (ChJsonArray *)json;

    g_return_if_fail(ch_json_is_array(json) && index <= array->n_items);
    if (array->n_items == array->size) {
        array->size = MAX(4, array->size * 2);
        array->items = grow(array->items,
                            array->has_own_items,
                            array->n_items * sizeof(ChJson *),
                            array->size * sizeof(ChJson *));
        array->has_own_items = true;
    }
    memmove(&array->items[index + 1],
            &array->items[index],
            (array->n_items - index) * sizeof(ChJson *));
    array->items[index] = value;
    array->n_items++;
}

void
ch_json_set_item(ChJson *json, gsize index, ChJson *value)
{
    ChJsonArray *array = (ChJsonArray *)json;

    g_return_if_fail(ch_json_is_array(json) && index < array->n_items);
    ch_json_unref(array->items[index]);
    array->items[index] = value;
}

void
ch_json_remove_item(ChJson *json, gsize index)
{
    ChJsonArray *array = (ChJsonArray *)json;

    g_return_if_fail(ch_json_is_array(json));
    if (index >= array->n_items)
        return;
    ch_json_unref(array->items[index]);
    array->n_items--;
    memmove(&array->items[index],
            &array->items[index + 1],
            (array->n_items - index) * sizeof(ChJson *));
}

ChJson *
ch_json_ensure_object(ChJson *object, const char *key)
{
    ChJson *child = member_of(object, key);

    if (ch_json_is_object(child))
        return child;
    child = ch_json_new_object();
    ch_json_set(object, key, child);
    return child;
}

ChJson *
ch_json_ensure_array(ChJson *object, const char *key)
{
    ChJson *child = member_of(object, key);

    if (ch_json_is_array(child))
        return child;
    child = ch_json_new_array();
    ch_json_set(object, key, child);
    return child;
}

static bool
strings_equal(const ChJson *a, const ChJson *b)
{
    const gsize length = ch_json_text_length(a);

    return length == ch_json_text_length(b) &&
           memcmp(ch_json_text(a), ch_json_text(b), length) == 0;
}

static bool
arrays_equal(const ChJson *a, const ChJson *b)
{
    const gsize n = ch_json_length(a);

    if (n != ch_json_length(b))
        return false;
    for (gsize i = 0; i < n; i++)
        if (!ch_json_equal(ch_json_item(a, i), ch_json_item(b, i)))
            return false;
    return true;
}

static bool
objects_equal(const ChJson *a, const ChJson *b)
{
    ChJsonIter iter;
    const char *key;
    ChJson *value;
    const ChJsonMember *other;

    if (ch_json_length(a) != ch_json_length(b))
        return false;
    ch_json_iter_init(&iter, a);
    while (ch_json_iter_next(&iter, &key, &value))
        if ((other = find(b, key)) == NULL || !ch_json_equal(value, other->value))
            return false;
    return true;
}

bool
ch_json_equal(const ChJson *a, const ChJson *b)
{
    if (a == b)
        return true;
    if (ch_json_kind(a) != ch_json_kind(b))
        return false;
    if (ch_json_is_number(a))
        return ch_json_number_equal(a, b);
    if (ch_json_is_string(a))
        return strings_equal(a, b);
    if (ch_json_is_array(a))
        return arrays_equal(a, b);
    return ch_json_is_object(a) && objects_equal(a, b);
}
