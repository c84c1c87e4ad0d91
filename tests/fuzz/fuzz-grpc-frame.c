/* SPDX-License-Identifier: Apache-2.0 */

/* The pure decoders of lib/grpc: framing, messages, grpc-timeout, grpc-message, header blocks. */

#include "cmd.pb-c.h"
#include "lib/grpc/message.h"
#include "lib/grpc/request.h"
#include "notify.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_unpack(const ProtobufCMessageDescriptor *type, GBytes *bytes)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message = ch_grpc_message_unpack(type, bytes, &error);

    g_assert_true((message == NULL) == (error != NULL));
    if (message == NULL)
        return;
    /* what was taken in can be sent on */
    g_bytes_unref(ch_grpc_message_pack(message, NULL));
    protobuf_c_message_free_unpacked(message, NULL);
}

static void
fuzz_messages(GBytes *bytes)
{
    fuzz_unpack(&kubevirt__cmd__v1__vmirequest__descriptor, bytes);
    fuzz_unpack(&kubevirt__cmd__v1__vmstats_response__descriptor, bytes);
    fuzz_unpack(&kubevirt__cmd__v1__exec_request__descriptor, bytes);
    fuzz_unpack(&kubevirt__notify__v1__domain_event_request__descriptor, bytes);
}

/* In pieces as long as the first byte says. */
static void
fuzz_reader(const uint8_t *data, size_t size)
{
    const gsize piece = size > 0 ? 1u + data[0] : 1;
    ChGrpcReader reader = {0};
    ChGrpcRead read = CH_GRPC_READ_MORE;

    for (gsize at = 0; at < size && read != CH_GRPC_READ_ERROR; at += piece) {
        const uint8_t *input = data + at;
        gsize left = MIN(piece, size - at);

        do {
            g_autoptr(GBytes) message = NULL;

            read = ch_grpc_reader_feed(&reader, &input, &left, &message, NULL);
            if (read == CH_GRPC_READ_MESSAGE)
                fuzz_messages(message);
        } while (read == CH_GRPC_READ_MESSAGE && left > 0);
    }
    ch_grpc_reader_clear(&reader);
}

static void
fuzz_texts(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autofree char *decoded = ch_grpc_percent_decode(text);
    g_autofree char *encoded = ch_grpc_percent_encode(decoded, G_MAXSIZE);
    g_autofree char *again = ch_grpc_percent_decode(encoded);
    int64_t timeout_us = 0;

    g_assert_cmpstr(again, ==, decoded);
    if (ch_grpc_timeout_parse(text, &timeout_us, NULL))
        g_assert_cmpint(timeout_us, >=, 0);
}

/* Names and values of lengths that the input itself gives. */
static void
fuzz_request(const uint8_t *data, size_t size)
{
    ChGrpcRequest request = {0};
    uint32_t h2_error;
    guint http_status;
    g_autoptr(GError) error = NULL;

    while (size >= 2) {
        const gsize name_length = MIN(data[0], size - 2);
        const gsize value_length = MIN(data[1], size - 2 - name_length);

        ch_grpc_request_add(&request, data + 2, name_length, data + 2 + name_length, value_length);
        data += 2 + name_length + value_length;
        size -= 2 + name_length + value_length;
    }
    g_assert_cmpint(ch_grpc_request_judge(&request, &h2_error, &http_status, &error),
                    !=,
                    CH_GRPC_VERDICT_INVALID);
    ch_grpc_request_clear(&request);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GBytes) bytes = g_bytes_new(data, size);

    fuzz_messages(bytes);
    fuzz_reader(data, size);
    fuzz_texts(data, size);
    fuzz_request(data, size);
    return 0;
}
