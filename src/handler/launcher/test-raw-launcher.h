/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-raw-launcher: a launcher with all commands that answers given bytes to whatever it is asked.
 * Included by test-*.c only.
 */

#pragma once

#include "handler/launcher/rpc.h"
#include "handler/launcher/test-fake-launcher.h"

typedef struct {
    const char *bytes;
    gsize length;
} Bytes;
#define BYTES(literal)                                                                             \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

#define SUCCESS "\x0a\x02\x08\x01" /* field 1: Response{success} */

/* "0a02..", so that a difference can be read. (transfer full) */
static inline char *
bytes_to_hex(const void *bytes, gsize length)
{
    GString *hex = g_string_new(NULL);

    for (gsize i = 0; i < length; i++)
        g_string_append_printf(hex, "%02x", ((const guint8 *)bytes)[i]);
    return g_string_free(hex, FALSE);
}

static inline void
assert_bytes(const void *bytes, gsize length, Bytes expected)
{
    g_autofree char *hex = bytes_to_hex(bytes, length);
    g_autofree char *expected_hex = bytes_to_hex(expected.bytes, expected.length);

    g_assert_cmpstr(hex, ==, expected_hex);
}

struct RawLauncher;

struct RawMethod {
    struct RawLauncher *raw;
    const char *name;
};

typedef struct RawLauncher {
    FakeLauncher fake; /* its lock guards what follows */
    ChGrpcChannel *channel;
    ChGrpcMethod *methods;
    struct RawMethod *data;
    const char *asked;   /* name of the last method */
    GByteArray *request; /* its message, as bytes */
    Bytes reply;
} RawLauncher;

/* A message without fields that carries @bytes as one that it does not know: they go out as they
 * are. */
static inline void
raw_reply(ChGrpcServerCall *call, Bytes bytes)
{
    ProtobufCMessageUnknownField field = {0};
    Kubevirt__Cmd__V1__EmptyRequest message = KUBEVIRT__CMD__V1__EMPTY_REQUEST__INIT;

    if (bytes.length > 0) {
        const guint8 *head = (const guint8 *)bytes.bytes;
        const gsize n = (head[0] & 0x80) != 0 ? 2 : 1;
        const guint key = n == 2 ? (head[0] & 0x7fu) | (guint)head[1] << 7 : head[0];

        field.tag = key >> 3;
        field.wire_type = key & 7;
        field.len = bytes.length - n;
        field.data = (uint8_t *)bytes.bytes + n;
        message.base.n_unknown_fields = 1;
        message.base.unknown_fields = &field;
    }
    ch_grpc_server_call_reply(call, &message.base);
}

static inline void
raw_handle(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    const struct RawMethod *method = data;
    RawLauncher *raw = method->raw;

    pthread_mutex_lock(&raw->fake.lock);
    raw->asked = method->name;
    g_byte_array_set_size(raw->request, (guint)protobuf_c_message_get_packed_size(request));
    protobuf_c_message_pack(request, raw->request->data);
    if (!fake_misbehave(&raw->fake, call))
        raw_reply(call, raw->reply);
    pthread_mutex_unlock(&raw->fake.lock);
}

static inline void
raw_launcher_set_up(RawLauncher *raw, gconstpointer data)
{
    const ProtobufCServiceDescriptor *service = &kubevirt__cmd__v1__cmd__descriptor;

    fake_launcher_open(&raw->fake);
    raw->request = g_byte_array_new();
    raw->methods = g_new0(ChGrpcMethod, service->n_methods);
    raw->data = g_new0(struct RawMethod, service->n_methods);
    g_assert_cmpuint(service->n_methods, ==, CH_LAUNCHER_RPC_N - 1);
    for (guint i = 0; i < service->n_methods; i++) {
        raw->data[i] = (struct RawMethod){raw, service->methods[i].name};
        raw->methods[i] =
            (ChGrpcMethod){g_strdup_printf("/%s/%s", service->name, service->methods[i].name),
                           service->methods[i].input,
                           raw_handle};
        ch_grpc_server_add(raw->fake.server, &raw->methods[i], 1, &raw->data[i]);
    }
    ch_loop_start(raw->fake.loop, "launcher");
    raw->channel =
        ch_grpc_channel_new(raw->fake.loop, fake_launcher_connect(&raw->fake), "localhost");
}

static inline void
raw_launcher_tear_down(RawLauncher *raw, gconstpointer data)
{
    ch_grpc_channel_close(raw->channel);
    ch_grpc_channel_unref(raw->channel);
    fake_launcher_stop(&raw->fake);
    for (guint i = 0; i < CH_LAUNCHER_RPC_N - 1; i++)
        g_free((char *)raw->methods[i].path);
    g_free(raw->methods);
    g_free(raw->data);
    g_byte_array_unref(raw->request);
}

static inline void
raw_launcher_reply(RawLauncher *raw, Bytes reply)
{
    pthread_mutex_lock(&raw->fake.lock);
    raw->reply = reply;
    pthread_mutex_unlock(&raw->fake.lock);
}
