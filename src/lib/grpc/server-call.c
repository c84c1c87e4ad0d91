/* SPDX-License-Identifier: Apache-2.0 */

/*
 * server-call: one call, from its header block to its trailers.
 *
 * Theory of operation: the stream (connection != NULL) and the application (has_handler) hold a
 * call; whoever lets go last frees it. What the application does is posted to the loop, so that
 * any thread may do it and nghttp2 is never entered from one of its own callbacks.
 */

#include <event2/buffer.h>
#include <string.h>

#include "lib/grpc/message.h"
#include "lib/grpc/server-internal.h"

/* Unfinished requests, which have no deadline but the peer's: of one connection, where one message
 * of the largest size always fits, and of all. */
#define MAX_HELD_BYTES        (8u << 20)
#define MAX_SERVER_HELD_BYTES (64u << 20)

/* nghttp2 takes no header above 64 KiB, ours or a peer's. */
#define MAX_STATUS_TEXT_BYTES 60000

static void
call_free(ChGrpcServerCall *call)
{
    ch_grpc_request_clear(&call->head);
    ch_grpc_reader_clear(&call->reader);
    g_clear_pointer(&call->request, g_bytes_unref);
    evbuffer_free(call->unsent);
    g_free(call->status_text);
    ch_grpc_peer_unref(call->peer);
    g_free(call);
}

ChGrpcServerCall *
ch_grpc_server_call_new(ChGrpcConnection *connection, int32_t stream_id)
{
    ChGrpcServerCall *call = g_new0(ChGrpcServerCall, 1);

    call->loop = connection->server->loop;
    call->connection = connection;
    call->peer = ch_grpc_peer_ref(connection->peer);
    call->stream_id = stream_id;
    call->unsent = evbuffer_new();
    call->link.data = call;
    g_queue_push_tail_link(&connection->calls, &call->link);
    return call;
}

/* Keeps the accounts of request bytes right. */
static void
account(ChGrpcServerCall *call, gsize n_held)
{
    ChGrpcConnection *connection = call->connection;

    connection->n_held += n_held - call->n_held;
    connection->server->n_held += n_held - call->n_held;
    call->n_held = n_held;
}

void
ch_grpc_server_call_detach(ChGrpcServerCall *call)
{
    ChGrpcConnection *connection = call->connection;

    account(call, 0);
    g_queue_unlink(&connection->calls, &call->link);
    call->connection = NULL;
    g_clear_pointer(&call->deadline, ch_timer_free);
    if (!call->has_handler)
        call_free(call);
}

static void
call_reset(ChGrpcServerCall *call, uint32_t h2_error)
{
    call->is_finished = true;
    call->is_reset = true;
    nghttp2_submit_rst_stream(
        call->connection->session, NGHTTP2_FLAG_NONE, call->stream_id, h2_error);
}

/* The response */

#define TEXT_HEADER(name_literal, value_text)                                                      \
    {                                                                                              \
        .name = (uint8_t *)(uintptr_t)(name_literal), .namelen = sizeof(name_literal) - 1,         \
        .value = (uint8_t *)(uintptr_t)(value_text), .valuelen = strlen(value_text),               \
    }

static char *
content_type_of(const ChGrpcServerCall *call)
{
    const char *subtype = call->head.subtype;

    return g_strconcat(
        "application/grpc", subtype != NULL && *subtype != '\0' ? "+" : "", subtype, NULL);
}

static void
submit_trailers(ChGrpcServerCall *call)
{
    g_autofree char *status = g_strdup_printf("%d", (int)call->status);
    const nghttp2_nv trailers[] = {
        TEXT_HEADER("grpc-status", status),
        TEXT_HEADER("grpc-message", call->status_text),
    };

    nghttp2_submit_trailer(
        call->connection->session, call->stream_id, trailers, G_N_ELEMENTS(trailers));
}

/* The bytes themselves are moved by the connection's send callback. */
static ssize_t
read_unsent(nghttp2_session *session,
            int32_t stream_id,
            uint8_t *buffer,
            size_t length,
            uint32_t *out_flags,
            nghttp2_data_source *source,
            void *data)
{
    ChGrpcServerCall *call = source->ptr;
    const gsize n_left = evbuffer_get_length(call->unsent);
    const gsize n = MIN(length, n_left);

    if (n == 0 && !call->is_finished)
        return NGHTTP2_ERR_DEFERRED;
    *out_flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n == n_left && call->is_finished) {
        *out_flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        submit_trailers(call);
    }
    return (ssize_t)n;
}

static void
submit_headers(ChGrpcServerCall *call)
{
    g_autofree char *content_type = content_type_of(call);
    const nghttp2_nv headers[] = {
        TEXT_HEADER(":status", "200"),
        TEXT_HEADER("content-type", content_type),
    };
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_unsent};

    nghttp2_submit_response(
        call->connection->session, call->stream_id, headers, G_N_ELEMENTS(headers), &provider);
    call->has_headers = true;
}

static void
submit_trailers_only(ChGrpcServerCall *call, guint http_status)
{
    g_autofree char *content_type = content_type_of(call);
    g_autofree char *http_text = g_strdup_printf("%u", http_status);
    g_autofree char *status = g_strdup_printf("%d", (int)call->status);
    const nghttp2_nv headers[] = {
        TEXT_HEADER(":status", http_text),
        TEXT_HEADER("content-type", content_type),
        TEXT_HEADER("grpc-status", status),
        TEXT_HEADER("grpc-message", call->status_text),
    };

    nghttp2_submit_response(
        call->connection->session, call->stream_id, headers, G_N_ELEMENTS(headers), NULL);
    call->has_headers = true;
}

/* @error: (nullable): NULL: status OK */
static void
call_finish(ChGrpcServerCall *call, guint http_status, const GError *error)
{
    call->is_finished = true;
    call->status = error != NULL ? (ChGrpcStatus)error->code : CH_GRPC_OK;
    call->status_text =
        ch_grpc_percent_encode(error != NULL ? error->message : "", MAX_STATUS_TEXT_BYTES);
    g_clear_pointer(&call->deadline, ch_timer_free);
    if (call->has_headers)
        nghttp2_session_resume_data(call->connection->session, call->stream_id);
    else
        submit_trailers_only(call, http_status);
}

static void
call_send(ChGrpcServerCall *call, GBytes *frame)
{
    gsize length;
    const void *bytes = g_bytes_get_data(frame, &length);

    if (evbuffer_get_length(call->unsent) > CH_GRPC_MAX_UNSENT_BYTES) {
        call_reset(call, NGHTTP2_ENHANCE_YOUR_CALM);
        return;
    }
    evbuffer_add(call->unsent, bytes, length);
    if (call->has_headers)
        nghttp2_session_resume_data(call->connection->session, call->stream_id);
    else
        submit_headers(call);
}

/* The request */

static void
on_deadline(gpointer data)
{
    ChGrpcServerCall *call = data;
    ChGrpcConnection *connection = call->connection;

    if (!call->is_finished)
        call_reset(call, NGHTTP2_CANCEL);
    ch_grpc_connection_flush(connection);
}

static bool
check_method(ChGrpcServerCall *call, GError **error)
{
    const char *path = call->head.path != NULL ? call->head.path : "";
    const char *encoding = call->head.encoding;

    call->entry = ch_grpc_server_find(call->connection->server, path, error);
    if (call->entry == NULL)
        return false;
    if (encoding != NULL && *encoding != '\0' && !g_str_equal(encoding, "identity")) {
        g_autofree char *quoted = g_strescape(encoding, NULL);

        return ch_grpc_fail(error,
                            CH_GRPC_UNIMPLEMENTED,
                            "grpc: Decompressor is not installed for grpc-encoding \"%s\"",
                            quoted);
    }
    return true;
}

static void
call_begin(ChGrpcServerCall *call)
{
    g_autoptr(GError) error = NULL;

    if (!check_method(call, &error)) {
        call_finish(call, 200, error);
        return;
    }
    if (call->head.has_timeout) {
        call->deadline = ch_timer_new(call->loop, on_deadline, call);
        ch_timer_arm(call->deadline, call->head.timeout_us);
    }
}

void
ch_grpc_server_call_headers_done(ChGrpcServerCall *call)
{
    g_autoptr(GError) error = NULL;
    uint32_t h2_error;
    guint http_status;

    switch (ch_grpc_request_judge(&call->head, &h2_error, &http_status, &error)) {
    case CH_GRPC_VERDICT_RESET:
        call_reset(call, h2_error);
        break;
    case CH_GRPC_VERDICT_ABORT:
        call_finish(call, http_status, error);
        break;
    case CH_GRPC_VERDICT_SERVE:
        call_begin(call);
        break;
    case CH_GRPC_VERDICT_INVALID:
        g_assert_not_reached();
    }
}

/* Unary requests: what follows the first message is dropped. */
void
ch_grpc_server_call_data(ChGrpcServerCall *call, const uint8_t *bytes, gsize length)
{
    const ChGrpcConnection *connection = call->connection;
    g_autoptr(GError) error = NULL;

    if (call->is_finished || call->has_handler || call->request != NULL)
        return;
    (void)ch_grpc_reader_feed(&call->reader, &bytes, &length, &call->request, &error);
    account(call,
            call->request != NULL ? g_bytes_get_size(call->request)
                                  : ch_grpc_reader_n_held(&call->reader));
    if (error == NULL &&
        (connection->n_held > MAX_HELD_BYTES || connection->server->n_held > MAX_SERVER_HELD_BYTES))
        ch_grpc_fail(&error, CH_GRPC_RESOURCE_EXHAUSTED, "too many bytes in unfinished requests");
    if (error == NULL)
        return;
    ch_grpc_reader_clear(&call->reader); /* the stream may stay for long: its peer closes it */
    g_clear_pointer(&call->request, g_bytes_unref);
    account(call, 0);
    call_finish(call, 200, error);
}

static void
call_dispatch(ChGrpcServerCall *call)
{
    const ChGrpcMethod *method = call->entry->method;
    g_autoptr(GBytes) request = g_steal_pointer(&call->request);
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message = ch_grpc_message_unpack(method->request_type, request, &error);

    account(call, 0);
    if (message == NULL) {
        g_prefix_error(&error, "grpc: error unmarshalling request: ");
        call_finish(call, 200, error);
        return;
    }
    call->has_handler = true;
    method->handler(call, message, call->entry->data);
    protobuf_c_message_free_unpacked(message, NULL);
}

void
ch_grpc_server_call_advance(ChGrpcServerCall *call, bool end_stream)
{
    g_autoptr(GError) error = NULL;

    if (call->is_finished || call->has_handler)
        return;
    if (call->request != NULL) {
        call_dispatch(call);
        return;
    }
    if (!end_stream)
        return;
    ch_grpc_fail(&error,
                 CH_GRPC_UNKNOWN,
                 "%s",
                 ch_grpc_reader_is_between(&call->reader) ? "EOF" : "unexpected EOF");
    call_finish(call, 200, error);
}

/* What the application asked for, on its way to the loop. */
typedef struct {
    ChGrpcServerCall *call;
    GBytes *frame; /* (nullable) */
    GError *error; /* (nullable) */
    bool ends;     /* the application lets go of the call */
} Step;

static void
step_apply(const Step *step)
{
    ChGrpcServerCall *call = step->call;

    if (step->frame != NULL)
        call_send(call, step->frame);
    if (!call->is_finished && (step->ends || step->error != NULL))
        call_finish(call, 200, step->error);
    ch_grpc_connection_flush(call->connection);
}

static void
step_run(gpointer data)
{
    const Step *step = data;

    if (step->call->connection != NULL && !step->call->is_finished)
        step_apply(step);
}

/* Also for steps that never ran, when the loop is freed with them. */
static void
step_free(gpointer data)
{
    Step *step = data;
    ChGrpcServerCall *call = step->call;

    if (step->ends) {
        call->has_handler = false;
        if (call->connection == NULL)
            call_free(call);
    }
    g_clear_pointer(&step->frame, g_bytes_unref);
    g_clear_error(&step->error);
    g_free(step);
}

/* @message: (nullable); @error: (nullable) (transfer full) */
static void
step_post(ChGrpcServerCall *call, const ProtobufCMessage *message, GError *error, bool ends)
{
    Step *step = g_new0(Step, 1);

    step->call = call;
    step->ends = ends;
    step->error = error;
    if (message != NULL)
        step->frame = ch_grpc_message_pack(message, &step->error);
    ch_loop_post(call->loop, step_run, step, step_free);
}

gpointer
ch_grpc_server_call_peer(const ChGrpcServerCall *call)
{
    return call->peer->data;
}

bool
ch_grpc_server_call_is_gone(const ChGrpcServerCall *call)
{
    return call->connection == NULL || call->is_reset;
}

void
ch_grpc_server_call_send(ChGrpcServerCall *call, const ProtobufCMessage *message)
{
    step_post(call, message, NULL, false);
}

void
ch_grpc_server_call_finish(ChGrpcServerCall *call)
{
    step_post(call, NULL, NULL, true);
}

void
ch_grpc_server_call_reply(ChGrpcServerCall *call, const ProtobufCMessage *message)
{
    step_post(call, message, NULL, true);
}

void
ch_grpc_server_call_fail(ChGrpcServerCall *call, ChGrpcStatus status, const char *message)
{
    step_post(call, NULL, g_error_new_literal(CH_GRPC_ERROR, (int)status, message), true);
}
