/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A recursive descent over text that was checked to be UTF-8 (hence without NUL) beforehand. Every
 * function leaves `at` behind what it took, or sets the error.
 */

#include "lib/json/json-arena.h"
#include "lib/json/json-internal.h"

#include "lib/base/errors.h"
#include "lib/base/json-span.h"

#include <string.h>

/* Rough sizes on 64 bits; malloc's overhead included. */
#define VALUE_BYTES  48
#define MEMBER_BYTES 128 /* a slot, its name, and an index's entry */
#define OBJECT_BYTES 128 /* with its first slots */

#define TREE_PER_TEXT 5 /* bytes of arena for a byte of text */

#define N_SEEN_NAMES 128

typedef struct {
    const char *text;
    gsize length;
    gsize at;
    guint depth;
    gsize tree_bytes;
    ChJsonArena *arena;
    const ChJsonPart *parts; /* wanted of the objects that come; NULL: all */
    /* Members and items of what is still open; each is moved when what it is in closes. Owned. */
    ChJsonMember *open;
    gsize n_open, size;
    /* Names in the arena, by a hash: a document has most of its names many times. */
    struct {
        const char *name;
        gsize length;
    } seen[N_SEEN_NAMES];
    GError **error;
} Parser;

static bool parse_value(Parser *parser, ChJson **out_value);
static bool skip_value(Parser *parser);

static bool
fail(Parser *parser, const char *what)
{
    return ch_fail(
        parser->error, CH_ERROR_INVALID, "JSON is malformed at byte %zu: %s", parser->at, what);
}

static bool
charge(Parser *parser, gsize bytes)
{
    parser->tree_bytes += bytes;
    if (parser->tree_bytes > CH_JSON_MAX_TREE_BYTES)
        return ch_fail(parser->error, CH_ERROR_LIMIT, "JSON has too many values");
    return true;
}

/* The next byte, 0 at the end (there is no NUL in the text). */
static char
peek(const Parser *parser)
{
    return parser->at < parser->length ? parser->text[parser->at] : '\0';
}

static void
skip_space(Parser *parser)
{
    if (peek(parser) > ' ')
        return;
    while (peek(parser) == ' ' || peek(parser) == '\n' || peek(parser) == '\r' ||
           peek(parser) == '\t')
        parser->at++;
}

static bool
take(Parser *parser, char byte)
{
    if (peek(parser) != byte)
        return false;
    parser->at++;
    return true;
}

static bool
take_hex4(Parser *parser, gunichar *out_unit)
{
    gunichar unit = 0;

    for (int i = 0; i < 4; i++) {
        const int digit = g_ascii_xdigit_value(peek(parser));

        if (digit < 0)
            return fail(parser, "four hexadecimal digits expected");
        unit = unit << 4 | (gunichar)digit;
        parser->at++;
    }
    *out_unit = unit;
    return true;
}

/* Behind "\u". A half surrogate becomes U+FFFD and leaves what follows alone. */
static bool
take_unicode(Parser *parser, GString *out)
{
    gunichar unit, low;

    if (!take_hex4(parser, &unit))
        return false;
    if (unit >= 0xd800 && unit <= 0xdbff && peek(parser) == '\\' &&
        parser->at + 1 < parser->length && parser->text[parser->at + 1] == 'u') {
        const gsize before = parser->at;

        parser->at += 2;
        if (!take_hex4(parser, &low))
            return false;
        if (low >= 0xdc00 && low <= 0xdfff)
            unit = 0x10000 + ((unit - 0xd800) << 10 | (low - 0xdc00));
        else
            parser->at = before;
    }
    if (unit >= 0xd800 && unit <= 0xdfff)
        unit = 0xfffd;
    if (unit == 0)
        g_string_append_c(out, '\0'); /* g_string_append_unichar() would take two bytes */
    else
        g_string_append_unichar(out, unit);
    return true;
}

/* Behind the backslash. */
static bool
take_escape(Parser *parser, GString *out)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    const char letter = peek(parser);
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;

    if (letter == 'u') {
        parser->at++;
        return take_unicode(parser, out);
    }
    if (found == NULL)
        return fail(parser, "unknown escape");
    parser->at++;
    g_string_append_c(out, meanings[found - letters]);
    return true;
}

static gsize
plain_span(const Parser *parser)
{
    return ch_json_span(parser->text + parser->at, parser->length - parser->at, false);
}

/* Behind the opening quote. *out_text is the text between the quotes, or @buffer's when there are
 * escapes in it. */
static bool
take_string(Parser *parser, GString **buffer, const char **out_text, gsize *out_length)
{
    gsize n = plain_span(parser);
    const char *start = parser->text + parser->at;

    parser->at += n;
    if (take(parser, '"')) {
        *out_text = start;
        *out_length = n;
        return true;
    }
    *buffer = g_string_new_len(start, (gssize)n);
    while (!take(parser, '"')) {
        if (!take(parser, '\\'))
            return fail(parser,
                        parser->at == parser->length ? "string does not end"
                                                     : "bare control character");
        if (!take_escape(parser, *buffer))
            return false;
        n = plain_span(parser);
        g_string_append_len(*buffer, parser->text + parser->at, (gssize)n);
        parser->at += n;
    }
    *out_text = (*buffer)->str;
    *out_length = (*buffer)->len;
    return true;
}

static bool
parse_string(Parser *parser, ChJson **out_value)
{
    g_autoptr(GString) buffer = NULL;
    const char *text;
    gsize length;

    if (!take_string(parser, &buffer, &text, &length) || !charge(parser, length))
        return false;
    *out_value = ch_json_leaf_make(parser->arena, CH_JSON_KIND_STRING, text, length);
    return true;
}

static bool
parse_number(Parser *parser, ChJson **out_value)
{
    const char *start = parser->text + parser->at;
    const gsize length = ch_json_number_span(start, parser->length - parser->at);

    if (length == 0)
        return fail(parser, "value expected");
    if (length > CH_JSON_MAX_NUMBER)
        return ch_fail(parser->error, CH_ERROR_LIMIT, "JSON number is too long");
    if (!charge(parser, length))
        return false;
    parser->at += length;
    *out_value = ch_json_leaf_make(parser->arena, CH_JSON_KIND_NUMBER, start, length);
    return true;
}

/* The caller looked at the first letter. */
static bool
parse_word(Parser *parser, const char *word, ChJson *value, ChJson **out_value)
{
    g_autoptr(ChJson) owned = value;
    const gsize length = strlen(word);

    if (parser->length - parser->at < length ||
        memcmp(parser->text + parser->at, word, length) != 0)
        return fail(parser, "value expected");
    parser->at += length;
    *out_value = g_steal_pointer(&owned);
    return true;
}

/* After a value in an array or object: true in *out_more: another one follows. */
static bool
take_separator(Parser *parser, char close, bool *out_more)
{
    skip_space(parser);
    if (take(parser, close)) {
        *out_more = false;
        return true;
    }
    if (!take(parser, ','))
        return fail(parser, close == ']' ? "',' or ']' expected" : "',' or '}' expected");
    *out_more = true;
    return true;
}

static void
push(Parser *parser, const char *name, gsize length, ChJson *value)
{
    if (parser->n_open == parser->size) {
        parser->size = MAX(64, parser->size * 2);
        parser->open = g_renew(ChJsonMember, parser->open, parser->size);
    }
    parser->open[parser->n_open++] = (ChJsonMember){name, value, (guint32)length, false};
}

/* Behind the bracket. */
static bool
parse_items(Parser *parser, ChJson **out_value)
{
    const gsize first = parser->n_open;
    ChJsonArray *array;
    bool more;

    skip_space(parser);
    more = !take(parser, ']');
    while (more) {
        ChJson *item;

        if (!parse_value(parser, &item))
            return false;
        push(parser, NULL, 0, item);
        if (!take_separator(parser, ']', &more))
            return false;
    }
    array = ch_json_array_make(parser->arena, parser->n_open - first);
    for (gsize i = first; i < parser->n_open; i++)
        array->items[array->n_items++] = parser->open[i].value;
    parser->n_open = first;
    *out_value = &array->head;
    return true;
}

/* (transfer none): the name in the arena */
static const char *
keep_name(Parser *parser, const char *name, gsize length)
{
    const guint hash = length == 0 ? 0
                                   : (guint)length * 31 + (guchar)name[0] * 7 +
                                         (guchar)name[length / 2] * 5 + (guchar)name[length - 1];
    const guint slot = hash % N_SEEN_NAMES;
    char *kept;

    if (parser->seen[slot].name != NULL && parser->seen[slot].length == length &&
        memcmp(parser->seen[slot].name, name, length) == 0)
        return parser->seen[slot].name;
    kept = ch_json_arena_alloc(parser->arena, length + 1);
    memcpy(kept, name, length);
    kept[length] = '\0';
    parser->seen[slot].name = kept;
    parser->seen[slot].length = length;
    return kept;
}

static bool
take_name(Parser *parser, GString **buffer, const char **out_name, gsize *out_length)
{
    skip_space(parser);
    if (!take(parser, '"'))
        return fail(parser, "member name expected");
    if (!take_string(parser, buffer, out_name, out_length))
        return false;
    if (memchr(*out_name, '\0', *out_length) != NULL)
        return fail(parser, "member name contains \\u0000");
    skip_space(parser);
    if (!take(parser, ':'))
        return fail(parser, "':' expected");
    skip_space(parser);
    return true;
}

static const ChJsonPart *
find_part(const ChJsonPart *parts, const char *name, gsize length)
{
    for (; parts->name != NULL; parts++)
        if (strncmp(parts->name, name, length) == 0 && parts->name[length] == '\0')
            return parts;
    return NULL;
}

static bool
parse_member(Parser *parser)
{
    g_autoptr(GString) buffer = NULL;
    const ChJsonPart *const parts = parser->parts;
    const char *name;
    gsize length;
    ChJson *value;
    bool ok;

    if (!take_name(parser, &buffer, &name, &length))
        return false;
    if (parts != NULL) {
        const ChJsonPart *part = find_part(parts, name, length);

        if (part == NULL)
            return skip_value(parser);
        parser->parts = part->within;
    }
    name = charge(parser, MEMBER_BYTES + length) ? keep_name(parser, name, length) : NULL;
    ok = name != NULL && parse_value(parser, &value);
    parser->parts = parts;
    if (ok)
        push(parser, name, length, value);
    return ok;
}

/* The last of duplicates wins, in the place of the first. */
static ChJsonMember *
find_earlier(const ChJsonObject *object, const ChJsonMember *member)
{
    gpointer slot;

    if (object->index == NULL)
        return ch_json_member_find(object->slots, object->n_slots, member->name, member->length);
    if (!g_tree_lookup_extended(object->index, member->name, NULL, &slot))
        return NULL;
    return &object->slots[GPOINTER_TO_UINT(slot)];
}

static void
add_member(ChJsonObject *object, const ChJsonMember *member)
{
    ChJsonMember *earlier = find_earlier(object, member);

    if (earlier != NULL) {
        ch_json_unref(earlier->value);
        earlier->value = member->value;
        return;
    }
    object->slots[object->n_slots++] = *member;
    if (object->index != NULL)
        ch_json_object_index_slot(object, object->n_slots - 1);
    else if (object->n_slots > CH_JSON_INDEX_FROM)
        ch_json_object_index(object);
}

/* Behind the brace. */
static bool
parse_members(Parser *parser, ChJson **out_value)
{
    const gsize first = parser->n_open;
    ChJsonObject *object;
    bool more;

    skip_space(parser);
    more = !take(parser, '}');
    while (more) {
        if (!parse_member(parser) || !take_separator(parser, '}', &more))
            return false;
    }
    object = ch_json_object_make(parser->arena, parser->n_open - first);
    for (gsize i = first; i < parser->n_open; i++)
        add_member(object, &parser->open[i]);
    parser->n_open = first;
    *out_value = &object->head;
    return true;
}

static bool
parse_nested(Parser *parser, ChJson **out_value)
{
    const bool is_object = parser->text[parser->at++] == '{';
    bool ok;

    if (parser->depth == CH_JSON_MAX_DEPTH)
        return ch_fail(parser->error, CH_ERROR_LIMIT, "JSON is nested too deeply");
    if (is_object && !charge(parser, OBJECT_BYTES))
        return false;
    parser->depth++;
    ok = is_object ? parse_members(parser, out_value) : parse_items(parser, out_value);
    parser->depth--;
    return ok;
}

static bool
parse_value(Parser *parser, ChJson **out_value)
{
    skip_space(parser);
    if (!charge(parser, VALUE_BYTES))
        return false;
    switch (peek(parser)) {
    case '{':
    case '[':
        return parse_nested(parser, out_value);
    case '"':
        parser->at++;
        return parse_string(parser, out_value);
    case 't':
        return parse_word(parser, "true", ch_json_new_bool(true), out_value);
    case 'f':
        return parse_word(parser, "false", ch_json_new_bool(false), out_value);
    case 'n':
        return parse_word(parser, "null", NULL, out_value);
    default:
        return parse_number(parser, out_value);
    }
}

/* --- what is not wanted */

static bool
skip_string(Parser *parser)
{
    g_autoptr(GString) buffer = NULL;
    const char *text;
    gsize length;

    return take_string(parser, &buffer, &text, &length);
}

static bool
skip_number(Parser *parser)
{
    const gsize length =
        ch_json_number_span(parser->text + parser->at, parser->length - parser->at);

    if (length == 0)
        return fail(parser, "value expected");
    if (length > CH_JSON_MAX_NUMBER)
        return ch_fail(parser->error, CH_ERROR_LIMIT, "JSON number is too long");
    parser->at += length;
    return true;
}

static bool
skip_name(Parser *parser)
{
    g_autoptr(GString) buffer = NULL;
    const char *name;
    gsize length;

    return take_name(parser, &buffer, &name, &length);
}

/* Behind the bracket or brace. */
static bool
skip_members(Parser *parser, char close)
{
    bool more;

    skip_space(parser);
    more = !take(parser, close);
    while (more)
        if ((close == '}' && !skip_name(parser)) || !skip_value(parser) ||
            !take_separator(parser, close, &more))
            return false;
    return true;
}

static bool
skip_value(Parser *parser)
{
    ChJson *word;
    bool ok;

    skip_space(parser);
    switch (peek(parser)) {
    case '{':
    case '[':
        if (parser->depth == CH_JSON_MAX_DEPTH)
            return ch_fail(parser->error, CH_ERROR_LIMIT, "JSON is nested too deeply");
        parser->depth++;
        ok = skip_members(parser, parser->text[parser->at++] == '{' ? '}' : ']');
        parser->depth--;
        return ok;
    case '"':
        parser->at++;
        return skip_string(parser);
    case 't':
        return parse_word(parser, "true", NULL, &word);
    case 'f':
        return parse_word(parser, "false", NULL, &word);
    case 'n':
        return parse_word(parser, "null", NULL, &word);
    default:
        return skip_number(parser);
    }
}

/* --- documents */

/* Most documents are ASCII, which is seen faster. */
static bool
is_utf8(Parser *parser)
{
    const char *text = parser->text;
    gsize n = 0;
    const char *invalid;

    for (guint64 word; n + sizeof(word) <= parser->length; n += sizeof(word)) {
        memcpy(&word, text + n, sizeof(word));
        if ((word & CH_JSON_EACH(0x80)) != 0 || CH_JSON_BELOW(word, 1) != 0)
            break;
    }
    if (g_utf8_validate_len(text + n, parser->length - n, &invalid))
        return true;
    parser->at = (gsize)(invalid - text);
    return fail(parser, "not UTF-8");
}

static bool
parse_document(Parser *parser, ChJson **out_document)
{
    ChJson *document;

    if (!parse_value(parser, &document))
        return false;
    push(parser, NULL, 0, document);
    skip_space(parser);
    if (parser->at != parser->length)
        return fail(parser, "end expected");
    if (document == NULL)
        return fail(parser, "a value other than null expected");
    *out_document = document;
    return true;
}

ChJson *
ch_json_parse(const char *text, gssize length, GError **error)
{
    return ch_json_parse_parts(text, length, NULL, error);
}

ChJson *
ch_json_parse_parts(const char *text, gssize length, const ChJsonPart *parts, GError **error)
{
    Parser parser = {.text = text != NULL ? text : "", .parts = parts, .error = error};
    ChJson *document = NULL;

    parser.length = length < 0 ? strlen(parser.text) : (gsize)length;
    if (parser.length > CH_JSON_MAX_BYTES) {
        ch_fail(parser.error, CH_ERROR_LIMIT, "JSON of %zu bytes is too long", parser.length);
        return NULL;
    }
    if (!is_utf8(&parser))
        return NULL;
    parser.arena = ch_json_arena_new(parser.length * TREE_PER_TEXT);
    if (!parse_document(&parser, &document))
        for (gsize i = 0; i < parser.n_open; i++)
            ch_json_unref(parser.open[i].value);
    g_free(parser.open);
    ch_json_arena_release(parser.arena);
    return document;
}
