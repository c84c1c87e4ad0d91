/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/proto-body.h"

#include <string.h>

#include "lib/base/errors.h"

#define MAGIC "k8s" /* and its NUL */

typedef struct Field Field;

typedef enum {
    FIELD_INVALID,
    FIELD_STRING,
    FIELD_BOOLEAN,
    FIELD_STRINGS,    /* repeated */
    FIELD_STRING_MAP, /* of strings */
    FIELD_BYTES_MAP,  /* of bytes: base64 in JSON */
    FIELD_MESSAGE,
} FieldType;

/* Numbers as in Kubernetes' generated.proto files. A table ends with number 0. */
struct Field {
    guint number;
    const char *name;
    FieldType type;
    const Field *message;
};

/* clang-format off */
static const Field metadata_fields[] = {
    {1,  "name",         FIELD_STRING},
    {2,  "generateName", FIELD_STRING},
    {3,  "namespace",    FIELD_STRING},
    {11, "labels",       FIELD_STRING_MAP},
    {12, "annotations",  FIELD_STRING_MAP},
    {14, "finalizers",   FIELD_STRINGS},
    {0},
};

static const Field nothing[] = {{0}};

static const Field namespace_fields[] = {
    {1, "metadata", FIELD_MESSAGE, metadata_fields},
    {2, "spec",     FIELD_MESSAGE, nothing},
    {3, "status",   FIELD_MESSAGE, nothing},
    {0},
};

static const Field configmap_fields[] = {
    {1, "metadata",   FIELD_MESSAGE, metadata_fields},
    {2, "data",       FIELD_STRING_MAP},
    {3, "binaryData", FIELD_BYTES_MAP},
    {4, "immutable",  FIELD_BOOLEAN},
    {0},
};

static const Field secret_fields[] = {
    {1, "metadata",   FIELD_MESSAGE, metadata_fields},
    {2, "data",       FIELD_BYTES_MAP},
    {3, "type",       FIELD_STRING},
    {4, "stringData", FIELD_STRING_MAP},
    {5, "immutable",  FIELD_BOOLEAN},
    {0},
};

static const Field account_fields[] = {
    {1, "metadata",                     FIELD_MESSAGE, metadata_fields},
    {4, "automountServiceAccountToken", FIELD_BOOLEAN},
    {0},
};

static const struct {
    const char *kind;
    const Field *fields;
} kinds[] = {
    {"Namespace",      namespace_fields},
    {"ConfigMap",      configmap_fields},
    {"Secret",         secret_fields},
    {"ServiceAccount", account_fields},
};
/* clang-format on */

/* --- the wire --------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} Reader;

/* One field as it comes: bytes (wire type 2) or a number (0). */
typedef struct {
    guint number;
    bool is_bytes;
    uint64_t value;
    Reader bytes;
} Item;

static bool
read_varint(Reader *reader, uint64_t *out_value)
{
    uint64_t value = 0;

    for (guint shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        const uint8_t byte = *reader->at++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

static bool
read_item(Reader *reader, Item *out_item, GError **error)
{
    Item item = {0};
    uint64_t tag = 0;
    bool ok = read_varint(reader, &tag) && tag >> 3 > 0 && tag >> 3 <= G_MAXUINT16 &&
              read_varint(reader, &item.value);

    item.number = (guint)(tag >> 3);
    item.is_bytes = (tag & 7) == 2;
    if (ok && item.is_bytes) {
        ok = item.value <= (uint64_t)(reader->end - reader->at);
        item.bytes = (Reader){reader->at, reader->at + (ok ? item.value : 0)};
        reader->at = item.bytes.end;
    } else if ((tag & 7) != 0) {
        ok = false;
    }
    if (!ok)
        return ch_fail(error, CH_ERROR_INVALID, "malformed protobuf");
    *out_item = item;
    return true;
}

static gsize
reader_length(const Reader *reader)
{
    return (gsize)(reader->end - reader->at);
}

/* (transfer full): NULL when it is no UTF-8 or has a NUL */
static char *
dup_text(const Reader *reader, GError **error)
{
    if (!g_utf8_validate_len((const char *)reader->at, reader_length(reader), NULL)) {
        ch_fail(error, CH_ERROR_INVALID, "a string in the protobuf is no UTF-8");
        return NULL;
    }
    return g_strndup((const char *)reader->at, reader_length(reader));
}

/* --- fields ----------------------------------------------------------------------------------- */

static bool read_message(Reader reader, const Field *fields, ChJson *object, GError **error);

static bool
add_map_entry(ChJson *map, Reader entry, bool is_bytes, GError **error)
{
    g_autofree char *key = g_strdup("");
    g_autofree char *value = g_strdup("");

    while (entry.at < entry.end) {
        Item item;
        char **slot;

        if (!read_item(&entry, &item, error))
            return false;
        if (!item.is_bytes || item.number > 2)
            return ch_fail(error, CH_ERROR_INVALID, "malformed map in the protobuf");
        slot = item.number == 1 ? &key : &value;
        g_free(*slot);
        *slot = item.number == 2 && is_bytes
                    ? g_base64_encode(item.bytes.at, reader_length(&item.bytes))
                    : dup_text(&item.bytes, error);
        if (*slot == NULL)
            return false;
    }
    ch_json_set_string(map, key, value);
    return true;
}

static bool
add_string(const Item *item, const Field *field, ChJson *object, GError **error)
{
    g_autofree char *text = dup_text(&item->bytes, error);

    if (text == NULL)
        return false;
    if (field->type == FIELD_STRING) {
        ch_json_set_string(object, field->name, *text != '\0' ? text : NULL);
        return true;
    }
    if (ch_json_at(object, field->name) == NULL)
        ch_json_set(object, field->name, ch_json_new_array());
    ch_json_append(ch_json_at(object, field->name), ch_json_new_string(text));
    return true;
}

static bool
add_field(const Item *item, const Field *field, ChJson *object, GError **error)
{
    if (item->is_bytes != (field->type != FIELD_BOOLEAN))
        return ch_fail(error, CH_ERROR_INVALID, "malformed %s in the protobuf", field->name);
    switch (field->type) {
    case FIELD_STRING:
    case FIELD_STRINGS:
        return add_string(item, field, object, error);
    case FIELD_BOOLEAN:
        ch_json_set_bool(object, field->name, item->value != 0);
        return true;
    case FIELD_STRING_MAP:
    case FIELD_BYTES_MAP:
        return add_map_entry(ch_json_ensure_object(object, field->name),
                             item->bytes,
                             field->type == FIELD_BYTES_MAP,
                             error);
    case FIELD_MESSAGE:
        return read_message(
            item->bytes, field->message, ch_json_ensure_object(object, field->name), error);
    case FIELD_INVALID:
        break;
    }
    g_return_val_if_reached(false);
}

/* Kubernetes writes every plain field, set or not. */
static bool
is_unset(const Item *item)
{
    return item->value == 0; /* for bytes it is their length */
}

static bool
read_message(Reader reader, const Field *fields, ChJson *object, GError **error)
{
    while (reader.at < reader.end) {
        const Field *field = fields;
        Item item;

        if (!read_item(&reader, &item, error))
            return false;
        while (field->number != 0 && field->number != item.number)
            field++;
        if (field->number == 0 && !is_unset(&item))
            return ch_fail(error,
                           CH_ERROR_INVALID,
                           "field %u is set, which only JSON can say here",
                           item.number);
        if (field->number != 0 && !add_field(&item, field, object, error))
            return false;
    }
    return true;
}

/* --- the envelope ----------------------------------------------------------------------------- */

static const Field type_fields[] = {
    {1, "apiVersion", FIELD_STRING},
    {2, "kind", FIELD_STRING},
    {0},
};

static const Field *
find_kind(const ChJson *object)
{
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_strcmp0(ch_json_string_at(object, "kind"), kinds[i].kind) == 0 &&
            g_strcmp0(ch_json_string_at(object, "apiVersion"), "v1") == 0)
            return kinds[i].fields;
    }
    return NULL;
}

ChJson *
ch_proto_body_parse(const uint8_t *bytes, gsize length, GError **error)
{
    g_autoptr(ChJson) object = ch_json_new_object();
    Reader reader = {bytes, bytes + length}, raw = {0};
    const Field *fields;

    if (length < sizeof(MAGIC) || memcmp(bytes, MAGIC, sizeof(MAGIC)) != 0) {
        ch_fail(error, CH_ERROR_INVALID, "it is no Kubernetes protobuf");
        return NULL;
    }
    reader.at += sizeof(MAGIC);
    while (reader.at < reader.end) {
        Item item;

        if (!read_item(&reader, &item, error))
            return NULL;
        if (item.number == 1 && !read_message(item.bytes, type_fields, object, error))
            return NULL;
        if (item.number == 2)
            raw = item.bytes;
    }
    fields = find_kind(object);
    if (fields == NULL) {
        ch_fail(error, CH_ERROR_INVALID, "this kind is understood in JSON only");
        return NULL;
    }
    return read_message(raw, fields, object, error) ? g_steal_pointer(&object) : NULL;
}
