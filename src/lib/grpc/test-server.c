/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The server against a bare nghttp2 client that may send anything; well-behaved peers are the
 * interop tests' business.
 */

#include "lib/grpc/server.h"

#include "lib/grpc/message.h"
#include "lib/grpc/server-internal.h"
#include "lib/grpc/test-peer.h"
#include "notify.pb-c.h"

#define PATH "/kubevirt.notify.v1.Notify/HandleK8sEvent"

typedef struct {
    TestPeer peer;
    ChGrpcServer *server;
    ChGrpcServerCall *kept; /* by the handler that does not answer */
    guint n_calls;
    bool is_stopped;

    bool is_closed;       /* stream 1 */
    uint32_t close_error; /* its RST_STREAM code */
    bool has_goaway;
    bool has_rst;
} Fixture;

static void
handle_echo(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Fixture *f = data;
    const Kubevirt__Notify__V1__K8sEventRequest *event = (const void *)request;
    Kubevirt__Notify__V1__Response response = KUBEVIRT__NOTIFY__V1__RESPONSE__INIT;
    g_autofree char *text = g_strndup((const char *)event->event_json.data, event->event_json.len);

    f->n_calls++;
    if (g_str_equal(text, "fail")) {
        ch_grpc_server_call_fail(call, CH_GRPC_NOT_FOUND, "no 100% wü");
        return;
    }
    if (g_str_equal(text, "keep")) {
        f->kept = call;
        return;
    }
    response.success = true;
    response.message = text;
    ch_grpc_server_call_reply(call, &response.base);
}

static void
handle_stream(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Kubevirt__Notify__V1__Response response = KUBEVIRT__NOTIFY__V1__RESPONSE__INIT;

    response.success = true;
    ch_grpc_server_call_send(call, &response.base);
    ch_grpc_server_call_send(call, &response.base);
    ch_grpc_server_call_finish(call);
}

/* More than the peer's window takes, and more than the server keeps. */
static void
handle_flood(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Kubevirt__Notify__V1__Response response = KUBEVIRT__NOTIFY__V1__RESPONSE__INIT;
    g_autofree char *text = g_strnfill(1u << 20, 'x');

    response.message = text;
    for (gsize sent = 0; sent <= CH_GRPC_MAX_UNSENT_BYTES + (4u << 20); sent += 1u << 20)
        ch_grpc_server_call_send(call, &response.base);
    ch_grpc_server_call_finish(call);
}

static const ChGrpcMethod methods[] = {
    {PATH, &kubevirt__notify__v1__k8s_event_request__descriptor, handle_echo},
    {"/test.Test/Stream", &kubevirt__notify__v1__k8s_event_request__descriptor, handle_stream},
    {"/test.Test/Flood", &kubevirt__notify__v1__k8s_event_request__descriptor, handle_flood},
};

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
    Fixture *f = data;

    f->has_goaway |= frame->hd.type == NGHTTP2_GOAWAY;
    f->has_rst |= frame->hd.type == NGHTTP2_RST_STREAM;
    return 0;
}

static int
on_close(nghttp2_session *session, int32_t stream_id, uint32_t h2_error, void *data)
{
    Fixture *f = data;

    f->is_closed = true;
    f->close_error = h2_error;
    return 0;
}

static void
set_up_with(Fixture *f, const ChGrpcServerOptions *options)
{
    const int fd = test_peer_open(&f->peer, false, on_frame, on_close);

    f->server = ch_grpc_server_new(f->peer.loop, options);
    ch_grpc_server_add(f->server, methods, G_N_ELEMENTS(methods), f);
    ch_grpc_server_accept(f->server, fd, f, NULL);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    set_up_with(f, NULL);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_grpc_server_free(f->server);
    test_peer_close(&f->peer);
}

static ssize_t
read_body(nghttp2_session *session,
          int32_t stream_id,
          uint8_t *buffer,
          size_t length,
          uint32_t *out_flags,
          nghttp2_data_source *source,
          void *data)
{
    GByteArray *body = source->ptr;
    const gsize n = MIN(length, body->len);

    memcpy(buffer, body->data, n);
    g_byte_array_remove_range(body, 0, (guint)n);
    if (body->len == 0)
        *out_flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* As read_body(), but the stream stays open behind it. */
static ssize_t
read_open_body(nghttp2_session *session,
               int32_t stream_id,
               uint8_t *buffer,
               size_t length,
               uint32_t *out_flags,
               nghttp2_data_source *source,
               void *data)
{
    const GByteArray *body = source->ptr;
    ssize_t n;

    if (body->len == 0)
        return NGHTTP2_ERR_DEFERRED;
    n = read_body(session, stream_id, buffer, length, out_flags, source, data);
    *out_flags = NGHTTP2_DATA_FLAG_NONE;
    return n;
}

/* @lines: "name: value" a line. @body: (nullable) */
static void
request(Fixture *f, const char *lines, GByteArray *body, bool stays_open)
{
    g_auto(GStrv) headers = g_strsplit(lines, "\n", -1);
    g_autoptr(GArray) nvs = test_peer_parse_headers(headers);
    const nghttp2_data_provider provider = {
        .source.ptr = body, .read_callback = stays_open ? read_open_body : read_body};

    g_assert_cmpint(nghttp2_submit_request(f->peer.session,
                                           NULL,
                                           (const nghttp2_nv *)(void *)nvs->data,
                                           nvs->len,
                                           body != NULL ? &provider : NULL,
                                           NULL),
                    >,
                    0);
}

/* g_assert_cmpmem() of GLib 2.74 does not survive -Wsign-conversion. */
static void
assert_bytes(const uint8_t *bytes, gsize length, const char *expect, gsize expect_length)
{
    g_assert_cmpuint(length, ==, expect_length);
    g_assert_true(memcmp(bytes, expect, length) == 0);
}

#define HEADERS(path) ":method: POST\n:path: " path "\ncontent-type: application/grpc"

static GByteArray *
event_body(const char *text)
{
    Kubevirt__Notify__V1__K8sEventRequest event = KUBEVIRT__NOTIFY__V1__K8S_EVENT_REQUEST__INIT;
    g_autofree char *copy = g_strdup(text);
    g_autoptr(GBytes) frame = NULL;

    event.event_json.data = (uint8_t *)copy;
    event.event_json.len = strlen(copy);
    frame = ch_grpc_message_pack(&event.base, NULL);
    return g_bytes_unref_to_array(g_steal_pointer(&frame));
}

static void
test_settings_come_first(Fixture *f, gconstpointer data)
{
    /* before the client sent one byte */
    uint8_t bytes[64];
    ssize_t n;

    test_peer_turn_loop(&f->peer);
    n = recv(f->peer.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    g_assert_cmpint(n, >=, 9 + 6);
    assert_bytes(bytes + 3, 1, "\4", 1);             /* SETTINGS */
    assert_bytes(bytes + 9, 6, "\0\5\0\0\x40\0", 6); /* MAX_FRAME_SIZE 16384 */
}

static void
test_unary(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = event_body("hi");

    request(f, HEADERS(PATH), body, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    g_assert_cmpstr(f->peer.headers->str,
                    ==,
                    ":status: 200\ncontent-type: application/grpc\n"
                    "grpc-status: 0\ngrpc-message: \n");
    assert_bytes(f->peer.data->data, f->peer.data->len, "\0\0\0\0\6\x08\1\x12\2hi", 11);
    g_assert_false(f->has_rst);
}

static void
test_handler_failure_is_trailers_only(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = event_body("fail");

    request(f, HEADERS(PATH) "+proto", body, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    g_assert_cmpstr(f->peer.headers->str,
                    ==,
                    ":status: 200\ncontent-type: application/grpc+proto\n"
                    "grpc-status: 5\ngrpc-message: no 100%25 w%C3%BC\n");
    g_assert_cmpuint(f->peer.data->len, ==, 0);
}

static void
test_server_stream(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = event_body("");

    request(f, HEADERS("/test.Test/Stream"), body, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    assert_bytes(f->peer.data->data, f->peer.data->len, "\0\0\0\0\2\x08\1\0\0\0\0\2\x08\1", 14);
    g_assert_nonnull(strstr(f->peer.headers->str, "grpc-status: 0\n"));
}

static void
test_unread_stream_is_reset(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = event_body("");

    request(f, HEADERS("/test.Test/Flood"), body, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    g_assert_cmpuint(f->close_error, ==, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Requests that end with their headers, and what comes back. */
static const struct RefuseCase {
    const char *path;
    const char *headers;
    const char *answer;
} refusals[] = {
    {"no-body", HEADERS(PATH), "grpc-status: 2\ngrpc-message: EOF\n"},
    {"unknown-method",
     HEADERS("/kubevirt.notify.v1.Notify/Foo"),
     "grpc-status: 12\ngrpc-message: unknown method Foo for service kubevirt.notify.v1.Notify\n"},
    {"unknown-service",
     HEADERS("/a.B/Foo"),
     "grpc-status: 12\ngrpc-message: unknown service a.B\n"},
    {"malformed-path",
     HEADERS("a.B/Foo"),
     "grpc-status: 12\ngrpc-message: malformed method name: \"a.B/Foo\"\n"},
    {"no-path",
     ":method: POST\ncontent-type: application/grpc",
     "grpc-status: 12\ngrpc-message: malformed method name: \"\"\n"},
    {"get",
     ":method: GET\n:path: " PATH "\ncontent-type: application/grpc",
     ":status: 405\ncontent-type: application/grpc\ngrpc-status: 13\n"
     "grpc-message: Received a HEADERS frame with :method \"GET\" which should be POST\n"},
    {"content-type",
     ":method: POST\n:path: " PATH "\ncontent-type: text/html",
     ":status: 415\ncontent-type: application/grpc\ngrpc-status: 3\n"
     "grpc-message: invalid gRPC request content-type \"text/html\"\n"},
    {"compression",
     HEADERS(PATH) "\ngrpc-encoding: gzip",
     "grpc-status: 12\ngrpc-message: grpc: Decompressor is not installed for grpc-encoding "
     "\"gzip\"\n"},
};

static void
test_refusal(Fixture *f, gconstpointer data)
{
    const struct RefuseCase *c = data;

    request(f, c->headers, NULL, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    g_assert_nonnull(strstr(f->peer.headers->str, c->answer));
    g_assert_cmpuint(f->n_calls, ==, 0);
}

static void
test_early_end_resets_with_no_error(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = g_byte_array_new();

    g_byte_array_append(body, (const guint8 *)"\0\0\x50\0\x09", 5);
    request(f, HEADERS(PATH), body, true);
    test_peer_run_until(&f->peer, &f->has_rst);
    g_assert_cmpuint(f->close_error, ==, NGHTTP2_NO_ERROR);
    g_assert_nonnull(strstr(f->peer.headers->str,
                            "grpc-status: 8\ngrpc-message: grpc: received message larger than max "
                            "(5242889 vs. 4194304)\n"));
}

static void
test_malformed_is_reset(Fixture *f, gconstpointer data)
{
    request(f, HEADERS(PATH) "\nconnection: close", NULL, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    g_assert_cmpuint(f->close_error, ==, NGHTTP2_PROTOCOL_ERROR);
    g_assert_cmpuint(f->peer.headers->len, ==, 0);
}

static void
test_cut_message(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = g_byte_array_new();

    g_byte_array_append(body,
                        (const guint8 *)"\0\0\0\0\x09"
                                        "abc",
                        8);
    request(f, HEADERS(PATH), body, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    g_assert_nonnull(
        strstr(f->peer.headers->str, "grpc-status: 2\ngrpc-message: unexpected EOF\n"));
}

static void
test_undecodable_message(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = g_byte_array_new();

    g_byte_array_append(body, (const guint8 *)"\0\0\0\0\1\xff", 6);
    request(f, HEADERS(PATH), body, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    g_assert_nonnull(strstr(f->peer.headers->str,
                            "grpc-status: 13\ngrpc-message: grpc: error unmarshalling request: "
                            "proto: cannot parse invalid wire-format data\n"));
}

/* Raw frames, for what nghttp2's client would not send. */

static void
append_frame(GByteArray *bytes,
             uint8_t type,
             uint8_t flags,
             int32_t stream_id,
             const void *payload,
             gsize length)
{
    const uint8_t header[9] = {(uint8_t)(length >> 16),
                               (uint8_t)(length >> 8),
                               (uint8_t)length,
                               type,
                               flags,
                               0,
                               (uint8_t)(stream_id >> 16),
                               (uint8_t)(stream_id >> 8),
                               (uint8_t)stream_id};

    g_byte_array_append(bytes, header, sizeof(header));
    g_byte_array_append(bytes, payload, (guint)length);
}

/* HPACK: literal, not indexed. */
static void
append_header(GByteArray *block, const char *name, const char *value)
{
    const uint8_t name_start[2] = {0, (uint8_t)strlen(name)};
    const uint8_t value_length = (uint8_t)strlen(value);

    g_byte_array_append(block, name_start, sizeof(name_start));
    g_byte_array_append(block, (const uint8_t *)name, (guint)strlen(name));
    g_byte_array_append(block, &value_length, 1);
    g_byte_array_append(block, (const uint8_t *)value, value_length);
}

static void
append_request(GByteArray *bytes, int32_t stream_id)
{
    g_autoptr(GByteArray) block = g_byte_array_new();

    append_header(block, ":method", "POST");
    append_header(block, ":path", PATH);
    append_header(block, "content-type", "application/grpc");
    append_frame(
        bytes, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream_id, block->data, block->len);
}

static GByteArray *
raw_new(void)
{
    GByteArray *bytes = g_byte_array_new();

    g_byte_array_append(bytes, (const uint8_t *)NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    append_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    return bytes;
}

/* What comes back is gathered in `data`. */
static void
raw_turn(Fixture *f)
{
    uint8_t buffer[4096];
    ssize_t n;

    test_peer_turn_loop(&f->peer);
    while ((n = recv(f->peer.fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
        g_byte_array_append(f->peer.data, buffer, (guint)n);
    f->peer.has_eof |= n == 0;
}

/* Until the server hangs up, if it does. */
static void
raw_send(Fixture *f, const GByteArray *bytes)
{
    const int64_t deadline_us = ch_time_now_us() + DEADLINE_US;

    for (gsize sent = 0; sent < bytes->len && !f->peer.has_eof;) {
        const ssize_t n =
            send(f->peer.fd, bytes->data + sent, bytes->len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        g_assert_cmpint(ch_time_now_us(), <, deadline_us);
        sent += n > 0 ? (gsize)n : 0;
        raw_turn(f);
    }
    for (int i = 0; i < 3; i++)
        raw_turn(f);
}

/* A message in DATA frames of one byte, 100,000 empty ones among them. */
static void
test_tiny_frames(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = raw_new();
    g_autoptr(GByteArray) message = event_body("hi");

    append_request(bytes, 1);
    for (guint i = 0; i < message->len; i++) {
        for (guint n_empty = 100000 / message->len; n_empty > 0; n_empty--)
            append_frame(bytes, NGHTTP2_DATA, 0, 1, NULL, 0);
        append_frame(bytes, NGHTTP2_DATA, 0, 1, message->data + i, 1);
    }
    append_frame(bytes, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0);
    raw_send(f, bytes);
    g_assert_cmpuint(f->n_calls, ==, 1);
    g_assert_nonnull(memmem(f->peer.data->data, f->peer.data->len, "\x08\1\x12\2hi", 6));
    g_assert_false(f->peer.has_eof);
}

static void
test_data_after_the_end(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = raw_new();
    g_autoptr(GByteArray) message = event_body("keep");

    append_request(bytes, 1);
    append_frame(bytes, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, message->data, message->len);
    append_frame(bytes, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, message->data, message->len);
    raw_send(f, bytes);
    g_assert_cmpuint(f->n_calls, ==, 1);
    g_assert_true(f->peer.has_eof);
    g_assert_true(ch_grpc_server_call_is_gone(f->kept));
    ch_grpc_server_call_finish(f->kept);
    raw_turn(f);
}

/* One long header, and then thousands of times one byte that means it. */
static void
test_header_bomb(Fixture *f, gconstpointer data)
{
    static const uint8_t start[] = {0x40, 1, 'x', 0x7f, 0xa1, 0x1e}; /* indexed, 4000 bytes */
    g_autoptr(GByteArray) bytes = raw_new();
    g_autoptr(GByteArray) block = g_byte_array_new();
    g_autoptr(GByteArray) message = event_body("hi");
    g_autofree char *value = g_strnfill(4000, 'v');
    g_autofree char *uses = g_strnfill(12000, (char)0xbe); /* the newest entry */

    g_byte_array_append(block, start, sizeof(start));
    g_byte_array_append(block, (const uint8_t *)value, 4000);
    g_byte_array_append(block, (const uint8_t *)uses, 12000);
    append_frame(bytes, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block->data, block->len);
    append_request(bytes, 3);
    append_frame(bytes, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 3, message->data, message->len);
    raw_send(f, bytes);
    g_assert_nonnull(
        memmem(f->peer.data->data, f->peer.data->len, "\0\0\4\3\0\0\0\0\1\0\0\0\6", 13)); /* RST */
    g_assert_cmpuint(f->n_calls, ==, 1);
}

/* Calls that are taken back as soon as they are made are not held by the stream limit; in the end
 * they cost their peer its connection. */
static void
test_rapid_resets(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = raw_new();
    g_autoptr(GByteArray) message = event_body("hi");

    for (int32_t stream_id = 1; stream_id < 10000; stream_id += 2) {
        append_request(bytes, stream_id);
        append_frame(bytes, NGHTTP2_DATA, 0, stream_id, message->data, message->len);
        append_frame(bytes, NGHTTP2_RST_STREAM, 0, stream_id, "\0\0\0\x8", 4);
    }
    raw_send(f, bytes);
    g_assert_true(f->peer.has_eof);
    g_assert_cmpuint(f->n_calls, <, 2000);
    g_assert_cmpuint(f->server->n_held, ==, 0);
}

/* @n_bytes of a message that says it is 4 MiB long. */
static void
append_endless(GByteArray *bytes, int32_t stream_id, gsize n_bytes)
{
    static const uint8_t chunk[16000];

    append_request(bytes, stream_id);
    append_frame(bytes, NGHTTP2_DATA, 0, stream_id, "\0\0\x40\0\0", 5);
    for (gsize n = 0; n < n_bytes; n += sizeof(chunk))
        append_frame(bytes, NGHTTP2_DATA, 0, stream_id, chunk, sizeof(chunk));
}

static void
test_unfinished_requests_are_bounded(Fixture *f, gconstpointer data)
{
    const gsize n_others = 62u << 20;
    g_autoptr(GByteArray) bytes = raw_new();
    g_autoptr(GByteArray) more = g_byte_array_new();
    g_autoptr(GByteArray) message = event_body("hi");

    for (int32_t stream_id = 1; stream_id <= 5; stream_id += 2)
        append_endless(bytes, stream_id, 3u << 20);
    raw_send(f, bytes);
    g_assert_cmpuint(f->server->n_held, >=, 6u << 20);
    g_assert_cmpuint(f->server->n_held, <, 7u << 20); /* the third was refused and is forgotten */

    f->server->n_held += n_others; /* as other connections would */
    append_frame(more, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x8", 4);
    append_frame(more, NGHTTP2_RST_STREAM, 0, 3, "\0\0\0\x8", 4);
    append_endless(more, 7, 3u << 20);
    append_request(more, 9);
    append_frame(more, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 9, message->data, message->len);
    raw_send(f, more);
    g_assert_cmpuint(f->server->n_held, ==, n_others);
    g_assert_cmpuint(f->n_calls, ==, 1);
}

static void
test_deadline_resets(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = event_body("keep");

    request(f, HEADERS(PATH) "\ngrpc-timeout: 20m", body, false);
    test_peer_run_until(&f->peer, &f->is_closed);
    g_assert_cmpuint(f->close_error, ==, NGHTTP2_CANCEL);
    g_assert_nonnull(f->kept);
    g_assert_true(ch_grpc_server_call_is_gone(f->kept));
    ch_grpc_server_call_fail(f->kept, CH_GRPC_UNKNOWN, "too late");
    test_peer_turn(&f->peer);
}

static void
on_stopped(gpointer data)
{
    Fixture *f = data;

    f->is_stopped = true;
}

static void
test_stop_lets_calls_finish(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = event_body("keep");

    request(f, HEADERS(PATH), body, false);
    while (f->kept == NULL)
        test_peer_turn(&f->peer);
    ch_grpc_server_stop(f->server, DEADLINE_US, on_stopped, f);
    test_peer_run_until(&f->peer, &f->has_goaway);
    test_peer_turn(&f->peer);
    g_assert_false(f->is_stopped);
    ch_grpc_server_call_finish(f->kept);
    test_peer_run_until(&f->peer, &f->is_closed);
    test_peer_run_until(&f->peer, &f->is_stopped);
    g_assert_nonnull(strstr(f->peer.headers->str, "grpc-status: 0\n"));
    test_peer_run_until(&f->peer, &f->peer.has_eof);
}

static void
test_stop_ends_after_grace(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) body = event_body("keep");

    request(f, HEADERS(PATH), body, false);
    while (f->kept == NULL)
        test_peer_turn(&f->peer);
    ch_grpc_server_stop(f->server, 20 * CH_MS_US, on_stopped, f);
    test_peer_run_until(&f->peer, &f->is_stopped);
    g_assert_true(ch_grpc_server_call_is_gone(f->kept));
    ch_grpc_server_call_finish(f->kept);
}

/* Between the end of the last connection and @done, which a freed server must not call. */
static void
test_freed_while_stopping(Fixture *f, gconstpointer data)
{
    test_peer_turn_loop(&f->peer);
    ch_grpc_server_stop(f->server, DEADLINE_US, on_stopped, f); /* no preface: closed at once */
    g_clear_pointer(&f->server, ch_grpc_server_free);
    for (int i = 0; i < 3; i++)
        test_peer_turn(&f->peer);
    g_assert_true(f->peer.has_eof);
    g_assert_false(f->is_stopped);
}

static void
test_garbage_closes_the_connection(Fixture *f, gconstpointer data)
{
    g_assert_cmpint(send(f->peer.fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), ==, 18);
    while (!f->peer.has_eof) {
        test_peer_turn_loop(&f->peer);
        (void)nghttp2_session_recv(f->peer.session);
    }
    g_assert_cmpuint(f->n_calls, ==, 0);
}

static void
test_silent_peer_is_closed(void)
{
    const ChGrpcServerOptions options = {.preface_timeout_us = 20 * CH_MS_US};
    Fixture f = {0};

    set_up_with(&f, &options);
    while (!f.peer.has_eof) {
        test_peer_turn_loop(&f.peer);
        (void)nghttp2_session_recv(f.peer.session);
    }
    tear_down(&f, NULL);
}

static void
set_flag(gpointer data)
{
    *(bool *)data = true;
}

static void
test_connection_limit(void)
{
    const ChGrpcServerOptions options = {.max_connections = 1};
    Fixture f = {0};
    bool is_destroyed = false;
    int fds[2];
    char byte;

    set_up_with(&f, &options);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    ch_grpc_server_accept(f.server, fds[0], &is_destroyed, set_flag);
    g_assert_true(is_destroyed);
    g_assert_cmpint(recv(fds[1], &byte, 1, 0), ==, 0);
    close(fds[1]);
    tear_down(&f, NULL);
}

#define ADD(name, function)                                                                        \
    g_test_add("/grpc/server/" name, Fixture, NULL, set_up, function, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("settings-come-first", test_settings_come_first);
    ADD("unary", test_unary);
    ADD("handler-failure-is-trailers-only", test_handler_failure_is_trailers_only);
    ADD("server-stream", test_server_stream);
    ADD("unread-stream-is-reset", test_unread_stream_is_reset);
    for (gsize i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autofree char *path = g_strconcat("/grpc/server/refuses/", refusals[i].path, NULL);

        g_test_add(path, Fixture, &refusals[i], set_up, test_refusal, tear_down);
    }
    ADD("early-end-resets-with-no-error", test_early_end_resets_with_no_error);
    ADD("malformed-is-reset", test_malformed_is_reset);
    ADD("cut-message", test_cut_message);
    ADD("undecodable-message", test_undecodable_message);
    ADD("deadline-resets", test_deadline_resets);
    ADD("stop-lets-calls-finish", test_stop_lets_calls_finish);
    ADD("stop-ends-after-grace", test_stop_ends_after_grace);
    ADD("freed-while-stopping", test_freed_while_stopping);
    ADD("tiny-frames", test_tiny_frames);
    ADD("data-after-the-end", test_data_after_the_end);
    ADD("header-bomb", test_header_bomb);
    ADD("rapid-resets", test_rapid_resets);
    ADD("unfinished-requests-are-bounded", test_unfinished_requests_are_bounded);
    ADD("garbage-closes-the-connection", test_garbage_closes_the_connection);
    g_test_add_func("/grpc/server/silent-peer-is-closed", test_silent_peer_is_closed);
    g_test_add_func("/grpc/server/connection-limit", test_connection_limit);
    return g_test_run();
}
