/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json: documents and path access, lossless.
 *
 * A document that was parsed and printed again has the same members in the same order, numbers with
 * their text (also integers beyond 64 bits and decimals), strings with their bytes. A tree belongs
 * to one thread: references are counted without atomics. Limits: CH_JSON_MAX_BYTES,
 * CH_JSON_MAX_DEPTH. Thread: the owner's.
 *
 * Paths are lists of member names, since Kubernetes keys contain dots and slashes:
 *   ch_json_string_at(vmi, "metadata", "labels", "kubevirt.io/nodeName")
 * A step that is missing, null or no object ends the walk: "not there".
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ChJson ChJson;

#define CH_JSON_MAX_BYTES      (64u << 20)  /* of one document's text */
#define CH_JSON_MAX_TREE_BYTES (256u << 20) /* what its tree may take, roughly */
#define CH_JSON_MAX_DEPTH      100
#define CH_JSON_MAX_NUMBER     1024 /* characters of one number */

/**
 * ch_json_parse:
 * @text: one JSON document in UTF-8, not necessarily NUL-terminated; NULL with @length 0, as an
 *   empty field of protobuf-c has it, is an empty text
 * @length: bytes; -1: NUL-terminated
 *
 * Strict RFC 8259: no comments, no trailing bytes but white space, no invalid UTF-8, no single
 * quotes. The last of duplicate members wins. `\u0000` is kept in a string and refused in a
 * member's name (names are C strings); half a surrogate pair becomes U+FFFD, as in Go.
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID (message names the byte offset) or
 * CH_ERROR_LIMIT. The JSON text `null` is refused too (its value is NULL here):
 * CH_ERROR_INVALID.
 */
ChJson *ch_json_parse(const char *text, gssize length, GError **error);

/* A member that is wanted of an object, and which of its members are. */
typedef struct ChJsonPart ChJsonPart;
struct ChJsonPart {
    const char *name;         /* NULL: the end of the list */
    const ChJsonPart *within; /* NULL: all of it */
};

/**
 * ch_json_parse_parts: as ch_json_parse(), but the tree has only what is wanted.
 * @parts: members of the document. A list stands for each object of an array as well
 *
 * The rest is checked as strictly, and costs a third. For large documents of which little is read.
 *
 * Returns: as ch_json_parse(); what is not in the tree does not count for its size's limit
 */
ChJson *
ch_json_parse_parts(const char *text, gssize length, const ChJsonPart *parts, GError **error);

/* (transfer full): compact text, as Go's encoding/json prints without HTML escaping ('/' is not
 * escaped) */
char *ch_json_print(const ChJson *json, gsize *out_length);
/* (transfer full): indented by two, for people */
char *ch_json_print_pretty(const ChJson *json);

ChJson *ch_json_ref(ChJson *json);
void ch_json_unref(ChJson *json);        /* NULL is fine */
ChJson *ch_json_dup(const ChJson *json); /* deep copy, lossless too */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChJson, ch_json_unref)

/* The value at the path, borrowed from @json; NULL when not there. */
ChJson *ch_json_walk(const ChJson *json, ...) G_GNUC_NULL_TERMINATED;
#define ch_json_at(json, ...) ch_json_walk(json, __VA_ARGS__, (const char *)NULL)

/* Typed leaves. Borrowed text, or NULL when not there, no string, or a string with a NUL in it (a C
 * string would be another value; printing keeps it). */
const char *ch_json_as_string(const ChJson *json);
/* False when absent, no integer, or beyond int64. */
bool ch_json_as_int(const ChJson *json, int64_t *out_value);
bool ch_json_as_bool(const ChJson *json, bool fallback);
/* The nearest double; 0 for what is no number. */
double ch_json_as_double(const ChJson *json);
#define ch_json_string_at(json, ...) ch_json_as_string(ch_json_at(json, __VA_ARGS__))
#define ch_json_int_at(json, out_value, ...)                                                       \
    ch_json_as_int(ch_json_at(json, __VA_ARGS__), out_value)
#define ch_json_bool_at(json, fallback, ...)                                                       \
    ch_json_as_bool(ch_json_at(json, __VA_ARGS__), fallback)

bool ch_json_is_object(const ChJson *json);
bool ch_json_is_array(const ChJson *json);
bool ch_json_is_string(const ChJson *json);
bool ch_json_is_bool(const ChJson *json);
bool ch_json_is_number(const ChJson *json);
bool ch_json_is_integer(const ChJson *json); /* of int64 or uint64, written without exponent */
bool ch_json_has(const ChJson *object, const char *key); /* true also for a member that is null */
gsize
ch_json_length(const ChJson *json); /* 0 for NULL and for what is no array; members of an object */
ChJson *ch_json_item(const ChJson *array, gsize index); /* borrowed */
/* The first item whose @member is the string @text (NULL: that has no such string). Borrowed; NULL:
 * there is none. */
ChJson *ch_json_find(const ChJson *array, const char *member, const char *text);
/* The same, and its index. @out_index: NULL, or set when there is one. */
ChJson *
ch_json_find_index(const ChJson *array, const char *member, const char *text, gsize *out_index);
bool ch_json_contains(const ChJson *array, const char *text); /* an item that is this string */

/* Iterates members in document order: `const char *key; ChJson *value;` (value NULL for JSON null).
 * The object must not be changed meanwhile. Missing or other types iterate nothing. */
typedef struct {
    const ChJson *object;
    gsize next;
} ChJsonIter;
void ch_json_iter_init(ChJsonIter *iter, const ChJson *object);
bool ch_json_iter_next(ChJsonIter *iter, const char **out_key, ChJson **out_value);

/* Building and editing. `set` takes @value over and replaces in place (the member's position is
 * kept). */
ChJson *ch_json_new_object(void);
ChJson *ch_json_new_array(void);
ChJson *ch_json_new_string(const char *text);
ChJson *ch_json_new_int(int64_t value);
ChJson *ch_json_new_number(const char *text); /* keeps its text; NULL: @text is no JSON number */
ChJson *ch_json_new_bool(bool value);
void ch_json_set(ChJson *json,
                 const char *key,
                 ChJson *value /* (transfer full) (nullable): JSON null */);
void
ch_json_set_string(ChJson *object, const char *key, const char *text /* NULL: member removed */);
void ch_json_set_int(ChJson *object, const char *key, int64_t value);
void ch_json_set_bool(ChJson *object, const char *key, bool value);
void ch_json_append(ChJson *array, ChJson *value /* (transfer full) (nullable): JSON null */);
/* @index <= length: what is there moves up. */
void ch_json_insert_item(ChJson *json, gsize index, ChJson *value /* as above */);
/* @index < length: what is there is replaced. */
void ch_json_set_item(ChJson *json, gsize index, ChJson *value /* as above */);
void ch_json_remove(ChJson *json, const char *key);
void ch_json_remove_item(ChJson *json, gsize index);
/* The object below @key, made when there is none (another value is replaced). Borrowed. */
ChJson *ch_json_ensure_object(ChJson *object, const char *key);
ChJson *ch_json_ensure_array(ChJson *object, const char *key); /* likewise */

/**
 * ch_json_equal:
 * Structural equality: member order does not count, numbers compare by value ("1.10" equals "1.1"),
 * a missing member and null differ.
 */
bool ch_json_equal(const ChJson *a, const ChJson *b);
