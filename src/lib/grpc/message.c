/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/message.h"

#include <stdlib.h>

#define STRING_IS_NOT_UTF8 "string field contains invalid UTF-8"

static bool message_is_utf8(const ProtobufCMessage *message);

/* @member: where one value of @field lies */
static bool
value_is_utf8(const ProtobufCFieldDescriptor *field, const void *member)
{
    const void *value = *(const void *const *)member;

    if (value == NULL)
        return true;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return g_utf8_validate(value, -1, NULL);
    return message_is_utf8(value);
}

static bool
field_is_utf8(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;
    const char *member = base + field->offset;
    const void *const *values;
    gsize n_values;

    if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
        return true;
    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        return value_is_utf8(field, member);

    n_values = *(const size_t *)(const void *)(base + field->quantifier_offset);
    values = *(const void *const *const *)(const void *)member;
    for (gsize i = 0; i < n_values; i++) {
        if (!value_is_utf8(field, &values[i]))
            return false;
    }
    return true;
}

/* As deep as the schema nests: none of ours is recursive, none uses oneof. */
static bool
message_is_utf8(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++) {
        if (!field_is_utf8(message, &type->fields[i]))
            return false;
    }
    return true;
}

GBytes *
ch_grpc_message_pack(const ProtobufCMessage *message, GError **error)
{
    gsize length;
    uint8_t *frame;

    if (!message_is_utf8(message)) {
        ch_grpc_fail(error, CH_GRPC_INTERNAL, "grpc: error while marshaling: " STRING_IS_NOT_UTF8);
        return NULL;
    }
    length = protobuf_c_message_get_packed_size(message);
    if (length > G_MAXINT32) {
        ch_grpc_fail(error,
                     CH_GRPC_RESOURCE_EXHAUSTED,
                     "grpc: message too large (%" G_GSIZE_FORMAT " bytes)",
                     length);
        return NULL;
    }
    frame = g_malloc(CH_GRPC_PREFIX_BYTES + length);
    ch_grpc_prefix_write(frame, length);
    protobuf_c_message_pack(message, frame + CH_GRPC_PREFIX_BYTES);
    return g_bytes_new_take(frame, CH_GRPC_PREFIX_BYTES + length);
}

/* A megabyte carries any real topology; a big JSON document is copied about once. */
#define UNPACK_BUDGET(length) ((gsize)(1u << 20) + 16 * (length))
#define MALLOC_OVERHEAD       16

static void *
budget_alloc(void *data, size_t size)
{
    gsize *budget = data;
    const gsize cost = size + MALLOC_OVERHEAD;

    if (size > G_MAXINT32 || cost > *budget)
        return NULL;
    *budget -= cost;
    return malloc(size);
}

static void
budget_free(void *data, void *pointer)
{
    free(pointer);
}

ProtobufCMessage *
ch_grpc_message_unpack(const ProtobufCMessageDescriptor *type, GBytes *bytes, GError **error)
{
    gsize length;
    const uint8_t *data = g_bytes_get_data(bytes, &length);
    gsize budget = UNPACK_BUDGET(length);
    /* malloc underneath: the result is freed with the default allocator */
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, length, data);

    if (message == NULL) {
        ch_grpc_fail(error, CH_GRPC_INTERNAL, "proto: cannot parse invalid wire-format data");
        return NULL;
    }
    if (!message_is_utf8(message)) {
        protobuf_c_message_free_unpacked(message, NULL);
        ch_grpc_fail(error, CH_GRPC_INTERNAL, STRING_IS_NOT_UTF8);
        return NULL;
    }
    return message;
}
