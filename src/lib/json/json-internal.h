/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-internal: how the tree is represented; for json*.c only.
 *
 * A document is mostly short strings in small objects, so a string or number has its text behind
 * the head, and an object is an array of members that is searched in order. Beyond
 * CH_JSON_INDEX_FROM members it has an index as well, so that a stranger's document does not
 * make the search quadratic: a tree, since names with one g_str_hash() are easily made. A removed
 * member leaves a hole: the places in the index stay right. What was parsed or copied lies in an
 * arena (json-arena.h); what is added later is allocated one by one. JSON's null is NULL; true and
 * false are static and not counted. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

#define CH_JSON_INDEX_FROM 32

typedef enum {
    CH_JSON_KIND_NULL = 0, /* of a NULL pointer */
    CH_JSON_KIND_FALSE,
    CH_JSON_KIND_TRUE,
    CH_JSON_KIND_NUMBER,
    CH_JSON_KIND_STRING,
    CH_JSON_KIND_ARRAY,
    CH_JSON_KIND_OBJECT,
} ChJsonKind;

typedef struct ChJsonArena ChJsonArena;

#define CH_JSON_PLACE_MASK 0xffffffu

/* Aligned as what it is the head of. */
struct ChJson {
    _Alignas(void *) guint n_refs;
    ChJsonKind kind : 8;
    guint place : 24; /* words from the start of its piece of an arena; 0: allocated alone */
};

typedef struct {
    ChJson head;
    guint32 length;
    char text[]; /* NUL-terminated; a string may have NULs in it */
} ChJsonLeaf;

typedef struct {
    ChJson head;
    guint n_items, size;
    ChJson **items;     /* owned */
    bool has_own_items; /* not the arena's */
} ChJsonArray;

typedef struct {
    const char *name; /* NULL: a hole */
    ChJson *value;    /* owned */
    guint32 length;   /* of the name */
    bool has_own_name;
} ChJsonMember;

typedef struct {
    ChJson head;
    guint n_slots, size, n_holes;
    ChJsonMember *slots; /* in document order */
    bool has_own_slots;  /* not the arena's */
    GTree *index;        /* (nullable) name (borrowed from its slot) -> slot */
} ChJsonObject;

static inline ChJsonKind
ch_json_kind(const ChJson *json)
{
    return json != NULL ? json->kind : CH_JSON_KIND_NULL;
}

/* Shared by all trees, and never written to. */
extern ChJson ch_json_false, ch_json_true;

/* These make a value in @arena, or allocate it alone when @arena is NULL; the caller owns it. */

/* @kind: NUMBER or STRING */
ChJson *ch_json_leaf_make(ChJsonArena *arena, ChJsonKind kind, const char *text, gsize length);
/* With room for @size items, none of them there. */
ChJsonArray *ch_json_array_make(ChJsonArena *arena, gsize size);
ChJsonObject *ch_json_object_make(ChJsonArena *arena, gsize size);

/* The slot of @name, which need not be NUL-terminated; NULL: none. */
ChJsonMember *
ch_json_member_find(ChJsonMember *slots, gsize n_slots, const char *name, gsize length);
/* Frees what it owns. */
void ch_json_member_clear(ChJsonMember *member);

/* Makes its index anew; no two members may have one name. */
void ch_json_object_index(ChJsonObject *object);
/* Adds one more slot to the index there is. */
void ch_json_object_index_slot(ChJsonObject *object, gsize slot);

/* Bytes of the JSON number at the start of @text, 0: there is none. */
gsize ch_json_number_span(const char *text, gsize length);

/* The text of a number or string. */
static inline const char *
ch_json_text(const ChJson *leaf)
{
    return ((const ChJsonLeaf *)leaf)->text;
}

static inline gsize
ch_json_text_length(const ChJson *leaf)
{
    return ((const ChJsonLeaf *)leaf)->length;
}

/* By value, exactly. */
bool ch_json_number_equal(const ChJson *a, const ChJson *b);
