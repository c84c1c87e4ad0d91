/* SPDX-License-Identifier: Apache-2.0 */

/* Making, counting, copying and freeing of values. */

#include "lib/json/json-arena.h"
#include "lib/json/json-internal.h"

#include <string.h>

#define DUP_BYTES 64 /* of arena that the copy of a member or item takes, roughly */

ChJson ch_json_false = {.kind = CH_JSON_KIND_FALSE};
ChJson ch_json_true = {.kind = CH_JSON_KIND_TRUE};

static bool
is_counted(const ChJson *json)
{
    return ch_json_kind(json) >= CH_JSON_KIND_NUMBER;
}

/* --- making */

static ChJson *
make(ChJsonArena *arena, ChJsonKind kind, gsize n_bytes)
{
    ChJson *json;

    if (arena != NULL)
        return ch_json_arena_value(arena, kind, n_bytes);
    json = g_malloc(n_bytes);
    *json = (ChJson){.n_refs = 1, .kind = kind};
    return json;
}

static void *
make_room(ChJsonArena *arena, gsize n, gsize size)
{
    if (n == 0)
        return NULL;
    return arena != NULL ? ch_json_arena_alloc(arena, n * size) : g_malloc_n(n, size);
}

ChJson *
ch_json_leaf_make(ChJsonArena *arena, ChJsonKind kind, const char *text, gsize length)
{
    ChJsonLeaf *leaf;

    g_assert(length < G_MAXUINT32);
    leaf = (ChJsonLeaf *)make(arena, kind, sizeof(ChJsonLeaf) + length + 1);
    leaf->length = (guint32)length;
    memcpy(leaf->text, text, length);
    leaf->text[length] = '\0';
    return &leaf->head;
}

ChJsonArray *
ch_json_array_make(ChJsonArena *arena, gsize size)
{
    ChJsonArray *array = (ChJsonArray *)make(arena, CH_JSON_KIND_ARRAY, sizeof(ChJsonArray));

    array->n_items = 0;
    array->size = (guint)size;
    array->items = make_room(arena, size, sizeof(ChJson *));
    array->has_own_items = arena == NULL;
    return array;
}

ChJsonObject *
ch_json_object_make(ChJsonArena *arena, gsize size)
{
    ChJsonObject *object = (ChJsonObject *)make(arena, CH_JSON_KIND_OBJECT, sizeof(ChJsonObject));

    object->n_slots = object->n_holes = 0;
    object->size = (guint)size;
    object->slots = make_room(arena, size, sizeof(ChJsonMember));
    object->has_own_slots = arena == NULL;
    object->index = NULL;
    return object;
}

/* --- members */

ChJsonMember *
ch_json_member_find(ChJsonMember *slots, gsize n_slots, const char *name, gsize length)
{
    for (gsize i = 0; i < n_slots; i++)
        if (slots[i].length == length && slots[i].name != NULL &&
            memcmp(slots[i].name, name, length) == 0)
            return &slots[i];
    return NULL;
}

void
ch_json_member_clear(ChJsonMember *member)
{
    if (member->has_own_name)
        g_free((char *)member->name);
    ch_json_unref(member->value);
}

void
ch_json_object_index_slot(ChJsonObject *object, gsize slot)
{
    g_tree_insert(object->index, (char *)object->slots[slot].name, GUINT_TO_POINTER((guint)slot));
}

void
ch_json_object_index(ChJsonObject *object)
{
    g_clear_pointer(&object->index, g_tree_unref);
    object->index = g_tree_new((GCompareFunc)strcmp);
    for (guint i = 0; i < object->n_slots; i++)
        if (object->slots[i].name != NULL)
            ch_json_object_index_slot(object, i);
}

/* --- counting and freeing */

ChJson *
ch_json_ref(ChJson *json)
{
    if (is_counted(json))
        json->n_refs++;
    return json;
}

static void
array_free(ChJsonArray *array)
{
    for (guint i = 0; i < array->n_items; i++)
        ch_json_unref(array->items[i]);
    if (array->has_own_items)
        g_free(array->items);
    ch_json_value_free(&array->head, sizeof(*array));
}

static void
object_free(ChJsonObject *object)
{
    g_clear_pointer(&object->index, g_tree_unref);
    for (guint i = 0; i < object->n_slots; i++)
        ch_json_member_clear(&object->slots[i]);
    if (object->has_own_slots)
        g_free(object->slots);
    ch_json_value_free(&object->head, sizeof(*object));
}

void
ch_json_unref(ChJson *json)
{
    if (!is_counted(json) || --json->n_refs > 0)
        return;
    if (json->kind == CH_JSON_KIND_ARRAY)
        array_free((ChJsonArray *)json);
    else if (json->kind == CH_JSON_KIND_OBJECT)
        object_free((ChJsonObject *)json);
    else
        ch_json_value_free(json, sizeof(ChJsonLeaf) + ch_json_text_length(json) + 1);
}

/* --- copying */

static ChJson *dup_into(ChJsonArena *arena, const ChJson *json);

static ChJson *
array_dup(ChJsonArena *arena, const ChJsonArray *array)
{
    ChJsonArray *copy = ch_json_array_make(arena, array->n_items);

    while (copy->n_items < array->n_items) {
        copy->items[copy->n_items] = dup_into(arena, array->items[copy->n_items]);
        copy->n_items++;
    }
    return &copy->head;
}

static ChJsonMember
member_dup(ChJsonArena *arena, const ChJsonMember *member)
{
    char *name = ch_json_arena_alloc(arena, member->length + 1);

    memcpy(name, member->name, member->length + 1);
    return (ChJsonMember){name, dup_into(arena, member->value), member->length, false};
}

static ChJson *
object_dup(ChJsonArena *arena, const ChJsonObject *object)
{
    ChJsonObject *copy = ch_json_object_make(arena, object->n_slots - object->n_holes);

    for (guint i = 0; i < object->n_slots; i++)
        if (object->slots[i].name != NULL)
            copy->slots[copy->n_slots++] = member_dup(arena, &object->slots[i]);
    if (copy->n_slots > CH_JSON_INDEX_FROM)
        ch_json_object_index(copy);
    return &copy->head;
}

static ChJson *
dup_into(ChJsonArena *arena, const ChJson *json)
{
    if (!is_counted(json))
        return (ChJson *)json;
    if (json->kind == CH_JSON_KIND_ARRAY)
        return array_dup(arena, (const ChJsonArray *)json);
    if (json->kind == CH_JSON_KIND_OBJECT)
        return object_dup(arena, (const ChJsonObject *)json);
    return ch_json_leaf_make(arena, json->kind, ch_json_text(json), ch_json_text_length(json));
}

ChJson *
ch_json_dup(const ChJson *json)
{
    ChJsonArena *arena;
    ChJson *copy;

    if (ch_json_kind(json) < CH_JSON_KIND_ARRAY)
        return dup_into(NULL, json);
    arena = ch_json_arena_new(DUP_BYTES * ch_json_length(json));
    copy = dup_into(arena, json);
    ch_json_arena_release(arena);
    return copy;
}
