/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/manifest.h"

#include <string.h>
#include <yaml.h>

#include "lib/base/errors.h"

typedef struct {
    const char *name;
    yaml_document_t *document;
    guint n_nodes;
} Reader;

static bool convert(Reader *reader, int index, guint depth, ChJson **out_json, GError **error);

static bool
fail_at(const Reader *reader, const yaml_mark_t *mark, GError **error, const char *message)
{
    return ch_fail(
        error, CH_ERROR_INVALID, "%s:%zu: %s", reader->name, (gsize)mark->line + 1, message);
}

/* --- scalars ---------------------------------------------------------------------------------- */

static bool
is_one_of(const char *text, const char *words)
{
    g_auto(GStrv) list = g_strsplit(words, " ", -1);

    return g_strv_contains((const char *const *)list, text);
}

static char *
without_underscores(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, "_", -1);

    return g_strjoinv("", parts);
}

/* "0x1F", "0o17", "017", "+5", "1_000": integers that JSON does not know; NULL: none of them */
static ChJson *
foreign_integer(const char *text)
{
    static const struct {
        const char *prefix;
        guint base;
    } bases[] = {{"0x", 16}, {"0o", 8}, {"0b", 2}, {"0", 8}, {"", 10}};
    const bool is_negative = *text == '-';
    g_autofree char *digits = NULL;
    gint64 value = 0;

    text += *text == '-' || *text == '+' ? 1 : 0;
    if (*text == '_' || !g_ascii_isdigit(*text))
        return NULL;
    digits = without_underscores(text);
    for (gsize i = 0; i < G_N_ELEMENTS(bases); i++) {
        const gsize n_prefix = strlen(bases[i].prefix);

        if (g_str_has_prefix(digits, bases[i].prefix) &&
            g_ascii_string_to_signed(digits + n_prefix, bases[i].base, 0, G_MAXINT64, &value, NULL))
            return ch_json_new_int(is_negative ? -value : value);
    }
    return NULL;
}

/* NULL means null. */
static ChJson *
plain_scalar(const char *text)
{
    ChJson *number = NULL;

    if (is_one_of(text, " ~ null Null NULL"))
        return NULL;
    if (is_one_of(text, "true True TRUE y Y yes Yes YES on On ON"))
        return ch_json_new_bool(true);
    if (is_one_of(text, "false False FALSE n N no No NO off Off OFF"))
        return ch_json_new_bool(false);
    number = ch_json_new_number(text);
    if (number == NULL)
        number = foreign_integer(text);
    return number != NULL ? number : ch_json_new_string(text);
}

static bool
convert_scalar(const Reader *reader, const yaml_node_t *node, ChJson **out_json, GError **error)
{
    const char *text = (const char *)node->data.scalar.value;
    const char *tag = (const char *)node->tag;

    if (strlen(text) != node->data.scalar.length)
        return fail_at(reader, &node->start_mark, error, "a text has a NUL in it");
    if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && g_strcmp0(tag, YAML_STR_TAG) == 0)
        *out_json = plain_scalar(text);
    else if (g_str_has_prefix(tag, "tag:yaml.org,2002:str") || g_str_equal(tag, "!"))
        *out_json = ch_json_new_string(text);
    else
        return fail_at(reader, &node->start_mark, error, "tags are not supported");
    return true;
}

/* --- collections ------------------------------------------------------------------------------ */

static bool
convert_sequence(
    Reader *reader, const yaml_node_t *node, guint depth, ChJson *array, GError **error)
{
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top;
         item++) {
        ChJson *value = NULL;

        if (!convert(reader, *item, depth + 1, &value, error))
            return false;
        ch_json_append(array, value);
    }
    return true;
}

/* "<<": what the object has already wins. */
static void
merge(ChJson *object, const ChJson *more)
{
    ChJsonIter iter;
    const char *key = NULL;
    ChJson *value = NULL;

    ch_json_iter_init(&iter, more);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (!ch_json_has(object, key))
            ch_json_set(object, key, value != NULL ? ch_json_ref(value) : NULL);
    }
}

static bool
convert_pair(Reader *reader,
             const yaml_node_pair_t *pair,
             guint depth,
             ChJson *object,
             ChJson *merged,
             GError **error)
{
    const yaml_node_t *key_node = yaml_document_get_node(reader->document, pair->key);
    const char *key = (const char *)key_node->data.scalar.value;
    ChJson *value = NULL;

    if (key_node->type != YAML_SCALAR_NODE || strlen(key) != key_node->data.scalar.length)
        return fail_at(reader, &key_node->start_mark, error, "a key must be a text");
    if (ch_json_has(object, key)) {
        g_autofree char *message = g_strdup_printf("'%s' is there twice", key);

        return fail_at(reader, &key_node->start_mark, error, message);
    }
    if (!convert(reader, pair->value, depth + 1, &value, error))
        return false;
    if (g_str_equal(key, "<<") && ch_json_is_object(value)) {
        merge(merged, value);
        ch_json_unref(value);
    } else {
        ch_json_set(object, key, value);
    }
    return true;
}

static bool
convert_mapping(
    Reader *reader, const yaml_node_t *node, guint depth, ChJson *object, GError **error)
{
    g_autoptr(ChJson) merged = ch_json_new_object();

    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top;
         pair++) {
        if (!convert_pair(reader, pair, depth, object, merged, error))
            return false;
    }
    merge(object, merged);
    return true;
}

static bool
convert(Reader *reader, int index, guint depth, ChJson **out_json, GError **error)
{
    const yaml_node_t *node = yaml_document_get_node(reader->document, index);
    g_autoptr(ChJson) json = NULL;

    if (depth > CH_JSON_MAX_DEPTH || ++reader->n_nodes > CH_MANIFEST_MAX_NODES)
        return fail_at(reader, &node->start_mark, error, "nested too deeply, or too much of it");
    switch (node->type) {
    case YAML_SCALAR_NODE:
        return convert_scalar(reader, node, out_json, error);
    case YAML_SEQUENCE_NODE:
        json = ch_json_new_array();
        if (!convert_sequence(reader, node, depth, json, error))
            return false;
        break;
    case YAML_MAPPING_NODE:
        json = ch_json_new_object();
        if (!convert_mapping(reader, node, depth, json, error))
            return false;
        break;
    case YAML_NO_NODE:
        break;
    }
    *out_json = g_steal_pointer(&json);
    return true;
}

/* --- documents -------------------------------------------------------------------------------- */

static void
manifest_clear(gpointer data)
{
    ChManifest *manifest = data;

    ch_json_unref(manifest->object);
    g_free(manifest->file);
}

static bool
check_identity(const ChJson *object, const char *name, gsize line, GError **error)
{
    static const char *const required[] = {"apiVersion", "kind"};

    if (!ch_json_is_object(object))
        return ch_fail(error, CH_ERROR_INVALID, "%s:%zu: this is no object", name, line);
    for (gsize i = 0; i < G_N_ELEMENTS(required); i++) {
        if (ch_json_string_at(object, required[i]) == NULL)
            return ch_fail(
                error, CH_ERROR_INVALID, "%s:%zu: '%s' is missing", name, line, required[i]);
    }
    if (ch_json_string_at(object, "metadata", "name") == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "%s:%zu: 'metadata.name' is missing", name, line);
    return true;
}

static bool
add_document(yaml_document_t *document, const char *name, GArray *manifests, GError **error)
{
    const yaml_node_t *root = yaml_document_get_root_node(document);
    Reader reader = {.name = name, .document = document};
    ChManifest manifest = {0};

    manifest.line = (gsize)root->start_mark.line + 1;
    if (!convert(&reader, 1, 0, &manifest.object, error))
        return false;
    if (manifest.object == NULL)
        return true; /* an empty document between two "---" */
    manifest.file = g_strdup(name);
    g_array_append_val(manifests, manifest);
    return check_identity(manifest.object, name, manifest.line, error);
}

static bool
fail_to_parse(const yaml_parser_t *parser, const char *name, GError **error)
{
    return ch_fail(error,
                   CH_ERROR_INVALID,
                   "%s:%zu: %s%s%s",
                   name,
                   (gsize)parser->problem_mark.line + 1,
                   parser->context != NULL ? parser->context : "",
                   parser->context != NULL ? ": " : "",
                   parser->problem != NULL ? parser->problem : "this is no YAML");
}

/* @out_is_last: (out) */
static bool
read_document(
    yaml_parser_t *parser, const char *name, GArray *manifests, bool *out_is_last, GError **error)
{
    yaml_document_t document;
    bool is_good;

    if (!yaml_parser_load(parser, &document))
        return fail_to_parse(parser, name, error);
    *out_is_last = yaml_document_get_root_node(&document) == NULL;
    is_good = *out_is_last || add_document(&document, name, manifests, error);
    yaml_document_delete(&document);
    return is_good;
}

GArray *
ch_manifest_parse(const char *text, gsize length, const char *name, GError **error)
{
    g_autoptr(GArray) manifests = g_array_new(FALSE, FALSE, sizeof(ChManifest));
    yaml_parser_t parser;
    bool is_good = true;
    bool is_last = false;

    g_array_set_clear_func(manifests, manifest_clear);
    if (length > CH_MANIFEST_MAX_BYTES) {
        ch_fail(error, CH_ERROR_LIMIT, "%s:1: the file is too large", name);
        return NULL;
    }
    if (!yaml_parser_initialize(&parser))
        g_error("libyaml: out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    while (is_good && !is_last)
        is_good = read_document(&parser, name, manifests, &is_last, error);
    yaml_parser_delete(&parser);
    if (is_good && manifests->len == 0)
        is_good = ch_fail(error, CH_ERROR_INVALID, "%s:1: there is nothing in it", name);
    return is_good ? g_steal_pointer(&manifests) : NULL;
}

GArray *
ch_manifest_load(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    gsize length = 0;
    const bool is_stdin = g_str_equal(path, "-");

    if (!g_file_get_contents(is_stdin ? "/dev/stdin" : path, &text, &length, error))
        return NULL;
    return ch_manifest_parse(text, length, is_stdin ? "stdin" : path, error);
}
