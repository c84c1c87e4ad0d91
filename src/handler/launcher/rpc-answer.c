/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/rpc-answer.h"

#include <string.h>

#include "handler/launcher/rpc-error.h"

static void
take_field(ChLauncherAnswer *answer, const ProtobufCFieldDescriptor *field)
{
    const void *member = (const char *)answer->message + field->offset;

    if (field->type == PROTOBUF_C_TYPE_STRING) {
        answer->text = *(char *const *)member;
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        answer->data = ((const ProtobufCBinaryData *)member)->data;
        answer->length = ((const ProtobufCBinaryData *)member)->len;
    } else if (field->type == PROTOBUF_C_TYPE_INT32) {
        answer->number = *(const int32_t *)member;
    } else if (field->type == PROTOBUF_C_TYPE_INT64) {
        answer->number = *(const int64_t *)member;
    }
}

/* What lies in answer->message beside the Response. */
static void
take_fields(ChLauncherAnswer *answer)
{
    const ProtobufCMessageDescriptor *type = answer->message->descriptor;

    if (type == &kubevirt__cmd__v1__response__descriptor)
        return;
    for (guint i = 0; i < type->n_fields; i++)
        take_field(answer, &type->fields[i]);
}

/* (nullable): the Response, which is the message itself or its first field */
static const Kubevirt__Cmd__V1__Response *
response_of(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    if (type == &kubevirt__cmd__v1__response__descriptor)
        return (const Kubevirt__Cmd__V1__Response *)message;
    g_assert(type->fields[0].descriptor == &kubevirt__cmd__v1__response__descriptor);
    return G_STRUCT_MEMBER(Kubevirt__Cmd__V1__Response *, message, type->fields[0].offset);
}

static bool
is_invalid_checkpoint(const ProtobufCMessage *message)
{
    return message->descriptor == &kubevirt__cmd__v1__redefine_checkpoint_response__descriptor &&
           ((const Kubevirt__Cmd__V1__RedefineCheckpointResponse *)message)->checkpoint_invalid;
}

/* Spec 03 §4.6 row 4. An answer without Response counts as success. */
static bool
check_answer(const ChLauncherAnswer *answer, GError **error)
{
    const ChRpcRow *row = ch_rpc_row(answer->rpc);
    const Kubevirt__Cmd__V1__Response *response = response_of(answer->message);

    if (row->errors == CH_RPC_ERRORS_RAW)
        return true;
    if (response != NULL && !response->success)
        return ch_rpc_fail_refused(
            error, row, response->message, is_invalid_checkpoint(answer->message));
    if (row->absent != NULL && answer->length == 0 &&
        (answer->text == NULL || answer->text[0] == '\0')) {
        g_set_error_literal(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_PAYLOAD, row->absent);
        return false;
    }
    return true;
}

bool
ch_rpc_answer_read(ChLauncherAnswer *answer, GError **error)
{
    take_fields(answer);
    return check_answer(answer, error);
}

void
ch_launcher_answer_clear(ChLauncherAnswer *answer)
{
    if (answer->message != NULL)
        protobuf_c_message_free_unpacked(answer->message, NULL);
    *answer = (ChLauncherAnswer){0};
}

/* Whether there is no value, or the one that Go reads as none. */
static bool
is_nothing(const char *text, gsize length)
{
    g_autofree char *word = NULL;

    if (length == 0)
        return true;
    if (length > 64)
        return false;
    word = g_strstrip(g_strndup(text, length));
    return g_str_equal(word, "null");
}

bool
ch_launcher_answer_decode(const ChLauncherAnswer *answer, ChJson **out_json, GError **error)
{
    const ChRpcJson shape = ch_rpc_row(answer->rpc)->json;
    const char *text = answer->text != NULL ? answer->text : (const char *)answer->data;
    const gsize length = answer->text != NULL ? strlen(text) : answer->length;
    g_autoptr(ChJson) json = NULL;
    g_autoptr(GError) reason = NULL;

    if (is_nothing(text, length)) {
        *out_json = NULL;
        return true;
    }
    json = ch_json_parse(text, (gssize)length, &reason);
    if (json == NULL || (shape == CH_RPC_JSON_OBJECT && !ch_json_is_object(json)) ||
        (shape == CH_RPC_JSON_ARRAY && !ch_json_is_array(json))) {
        g_set_error(error,
                    CH_LAUNCHER_ERROR,
                    CH_LAUNCHER_ERROR_PAYLOAD,
                    "the answer to %s is not what it must be: %s",
                    ch_launcher_rpc_name(answer->rpc),
                    reason != NULL                ? reason->message
                    : shape == CH_RPC_JSON_OBJECT ? "it is no object"
                                                  : "it is no array");
        return false;
    }
    *out_json = g_steal_pointer(&json);
    return true;
}

const Kubevirt__Cmd__V1__VMStatsResponse *
ch_launcher_answer_stats(const ChLauncherAnswer *answer)
{
    g_assert(answer->rpc == CH_LAUNCHER_RPC_GET_VM_STATS && answer->message != NULL);
    return (const Kubevirt__Cmd__V1__VMStatsResponse *)answer->message;
}
