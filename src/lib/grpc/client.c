/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/client.h"

#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/grpc/client-internal.h"
#include "lib/grpc/message.h"
#include "lib/grpc/request.h"
#include "lib/io/h2-session.h"

/*
 * Theory of operation: a channel is one ChH2Session, a call is one stream of it. Everything runs on
 * the loop's thread but ch_grpc_channel_new/close/ref/unref, which post. A call ends once, by
 * call_finish() or by being cancelled, and is freed then, or, when that happens inside its
 * on_message, as soon as that returned.
 */

#define CLOSING_TEXT "grpc: the client connection is closing"

struct ChGrpcCall {
    ChGrpcChannel *channel; /* a reference */
    GList link;             /* of the channel's calls */
    char *method;
    GBytes *frame;      /* (nullable): kept while a retry is possible */
    ChH2Stream *stream; /* (nullable): not sent, or over */
    ChTimer *timer;     /* the deadline's; or, with `failure`, the next turn */
    GError *failure;    /* (nullable): known before anything was sent */
    int64_t deadline_us;
    ChGrpcReader reader;
    ChGrpcStatus status; /* with has_status */
    char *status_text;   /* with has_status */
    bool has_status;
    bool is_retried;
    bool is_over;       /* no callback any more */
    bool is_delivering; /* on_message is on the stack */

    const ProtobufCMessageDescriptor *type; /* unused with raw */
    ChGrpcSink sink;                        /* unused with raw */
    ChGrpcRawSink raw;                      /* all NULL: typed */
    gpointer data;
};

/* Ending a call */

static void
call_free(ChGrpcCall *call)
{
    ch_timer_free(call->timer);
    ch_grpc_reader_clear(&call->reader);
    g_clear_pointer(&call->frame, g_bytes_unref);
    g_clear_error(&call->failure);
    g_free(call->status_text);
    g_free(call->method);
    ch_grpc_channel_unref(call->channel);
    g_free(call);
}

/* Afterwards nobody finds the call any more. */
static void
call_detach(ChGrpcCall *call)
{
    call->is_over = true;
    g_queue_unlink(&call->channel->calls, &call->link);
    if (call->stream != NULL)
        ch_h2_stream_reset(g_steal_pointer(&call->stream), NGHTTP2_CANCEL);
}

/* @error: (nullable): NULL: status OK */
static void
call_finish(ChGrpcCall *call, const GError *error)
{
    call_detach(call);
    if (call->raw.on_done != NULL)
        call->raw.on_done(call->data, error);
    else
        call->sink.on_done(call->data, error);
    if (!call->is_delivering)
        call_free(call);
}

static void G_GNUC_PRINTF(3, 4)
    call_fail(ChGrpcCall *call, ChGrpcStatus status, const char *format, ...)
{
    g_autoptr(GError) error = NULL;
    va_list args;

    va_start(args, format);
    error = g_error_new_valist(CH_GRPC_ERROR, (int)status, format, args);
    va_end(args);
    call_finish(call, error);
}

void
ch_grpc_call_cancel(ChGrpcCall *call)
{
    g_assert(ch_loop_is_current(call->channel->loop));
    if (call->is_over)
        return; /* from within its own on_done */
    call_detach(call);
    if (!call->is_delivering)
        call_free(call);
}

static void
on_timer(gpointer data)
{
    ChGrpcCall *call = data;

    if (call->failure != NULL)
        call_finish(call, call->failure);
    else
        call_fail(call, CH_GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
}

/* What the peer says */

ProtobufCMessage *
ch_grpc_response_unpack(const ProtobufCMessageDescriptor *type, GBytes *bytes, GError **error)
{
    ProtobufCMessage *message = ch_grpc_message_unpack(type, bytes, error);

    if (message == NULL)
        g_prefix_error(error, "grpc: failed to unmarshal the received message: ");
    return message;
}

static bool
deliver(ChGrpcCall *call, GBytes *bytes, GError **error)
{
    ProtobufCMessage *message;

    if (call->raw.on_bytes != NULL) {
        call->raw.on_bytes(call->data, bytes);
        return true;
    }
    message = ch_grpc_response_unpack(call->type, bytes, error);
    if (message == NULL)
        return false;
    call->sink.on_message(call->data, message);
    protobuf_c_message_free_unpacked(message, NULL);
    return true;
}

static void
on_data(gpointer data, const uint8_t *bytes, gsize length)
{
    ChGrpcCall *call = data;
    g_autoptr(GError) error = NULL;
    ChGrpcRead read = CH_GRPC_READ_MESSAGE;

    call->is_delivering = true;
    while (read == CH_GRPC_READ_MESSAGE && length > 0 && !call->is_over && error == NULL) {
        g_autoptr(GBytes) message = NULL;

        read = ch_grpc_reader_feed(&call->reader, &bytes, &length, &message, &error);
        if (read == CH_GRPC_READ_MESSAGE)
            (void)deliver(call, message, &error); /* the loop looks at the error */
    }
    call->is_delivering = false;
    if (call->is_over)
        call_free(call);
    else if (error != NULL)
        call_finish(call, error);
}

/* Returns: false with an error: this is no gRPC response */
static bool
check_response(const ChHttpHeader *headers, gsize n_headers, GError **error)
{
    const char *content_type = ch_http_header_get(headers, n_headers, "content-type");
    const char *status_text = ch_http_header_get(headers, n_headers, ":status");
    const int http_status = status_text != NULL ? (int)g_ascii_strtoll(status_text, NULL, 10) : 0;
    g_autofree char *complaint = NULL;

    if (content_type != NULL && ch_grpc_content_subtype(content_type) != NULL)
        return true;
    complaint =
        content_type == NULL
            ? g_strdup("malformed header: missing HTTP content-type")
            : g_strdup_printf("transport: received unexpected content-type \"%s\"", content_type);
    if (http_status == 200)
        return ch_grpc_fail(error, CH_GRPC_UNKNOWN, "%s", complaint);
    return ch_grpc_fail(error,
                        ch_grpc_status_from_http(http_status),
                        "unexpected HTTP status code received from server: %d; %s",
                        http_status,
                        complaint);
}

static bool
take_status(ChGrpcCall *call, const ChHttpHeader *headers, gsize n_headers, GError **error)
{
    const char *status = ch_http_header_get(headers, n_headers, "grpc-status");
    const char *text = ch_http_header_get(headers, n_headers, "grpc-message");
    guint64 number = CH_GRPC_UNKNOWN;

    if (status != NULL && !g_ascii_string_to_unsigned(status, 10, 0, G_MAXINT, &number, NULL))
        return ch_grpc_fail(
            error, CH_GRPC_INTERNAL, "transport: malformed grpc-status: \"%s\"", status);
    g_free(call->status_text);
    call->status_text = ch_grpc_percent_decode(text != NULL ? text : "");
    call->status = (ChGrpcStatus)number;
    call->has_status = true;
    return true;
}

static void
on_headers(
    gpointer data, const ChHttpHeader *headers, gsize n_headers, bool is_trailer, bool end_stream)
{
    ChGrpcCall *call = data;
    g_autoptr(GError) error = NULL;

    if ((!is_trailer && !check_response(headers, n_headers, &error)) ||
        (end_stream && !take_status(call, headers, n_headers, &error)))
        call_finish(call, error);
}

static void
finish_with_status(ChGrpcCall *call)
{
    if (!call->has_status)
        call_fail(call, CH_GRPC_INTERNAL, "server closed the stream without sending trailers");
    else if (call->status != CH_GRPC_OK)
        call_fail(call, call->status, "%s", call->status_text);
    else if (!ch_grpc_reader_is_between(&call->reader))
        call_fail(call, CH_GRPC_INTERNAL, "unexpected EOF");
    else
        call_finish(call, NULL);
}

static void
finish_with_reset(ChGrpcCall *call, uint32_t h2_error)
{
    const bool is_late = call->deadline_us != 0 && call->deadline_us <= ch_time_now_us();
    const char *name = ch_grpc_h2_error_name(h2_error);
    g_autofree char *number = g_strdup_printf("%u", h2_error);
    ChGrpcStatus status = ch_grpc_status_from_h2(h2_error);

    /* A server watches the deadline, too, and its CANCEL may come before our timer fires. */
    if (status == CH_GRPC_CANCELED && is_late)
        status = CH_GRPC_DEADLINE_EXCEEDED;
    call_fail(call,
              status,
              "stream terminated by RST_STREAM with error code: %s",
              name != NULL ? name : number);
}

static void call_send(ChGrpcCall *call);

/* The server promises that it did not look at the request. Once, as grpc-go does it. */
static bool
retry(ChGrpcCall *call)
{
    if (call->is_retried || !ch_h2_session_takes_streams(call->channel->session))
        return false;
    call->is_retried = true;
    call_send(call);
    return true;
}

static void
set_state(ChGrpcChannel *channel, ChGrpcChannelState state)
{
    pthread_mutex_lock(&channel->gate.lock);
    channel->state = MAX(channel->state, state); /* a channel never gets younger */
    pthread_mutex_unlock(&channel->gate.lock);
    pthread_cond_broadcast(&channel->gate.changed);
}

static void
on_close(gpointer data, uint32_t h2_error, const GError *error)
{
    ChGrpcCall *call = data;

    call->stream = NULL;
    if (error == NULL) {
        finish_with_status(call);
        return;
    }
    switch ((ChHttpErrorCode)error->code) {
    case CH_HTTP_ERROR_STREAM:
        finish_with_reset(call, h2_error);
        break;
    case CH_HTTP_ERROR_UNSENT:
        if (retry(call))
            break;
        if (h2_error != NGHTTP2_NO_ERROR)
            finish_with_reset(call, h2_error);
        else
            call_fail(call, CH_GRPC_UNAVAILABLE, "connection error: desc = \"%s\"", error->message);
        break;
    case CH_HTTP_ERROR_EOF:
    case CH_HTTP_ERROR_RESET: /* who learns of it asks what the channel is still good for */
        set_state(call->channel, CH_GRPC_CHANNEL_DRAINING);
        call_fail(call, CH_GRPC_UNAVAILABLE, "error reading from server: %s", error->message);
        break;
    case CH_HTTP_ERROR_REFUSED:
    case CH_HTTP_ERROR_CONNECT:
    case CH_HTTP_ERROR_TLS:
    case CH_HTTP_ERROR_TIMEOUT:
    case CH_HTTP_ERROR_PROTOCOL:
    case CH_HTTP_ERROR_LIMIT:
        call_fail(call, CH_GRPC_INTERNAL, "%s", error->message);
        break;
    }
}

/* Starting a call */

static const ChH2StreamEvents stream_events = {
    .on_headers = on_headers,
    .on_data = on_data,
    .on_close = on_close,
};

static void
call_send(ChGrpcCall *call)
{
    const ChGrpcChannel *channel = call->channel;
    char timeout[CH_GRPC_TIMEOUT_SIZE];
    const ChHttpHeader headers[] = {
        {":method", "POST"},
        {":scheme", "http"},
        {":path", call->method},
        {":authority", channel->authority},
        {"content-type", "application/grpc"},
        {"user-agent", "chandler"},
        {"te", "trailers"},
        {"grpc-timeout", timeout},
    };
    const gsize n_headers = G_N_ELEMENTS(headers) - (call->deadline_us == 0 ? 1 : 0);

    ch_grpc_timeout_format(call->deadline_us - ch_time_now_us(), timeout);
    call->stream = ch_h2_session_request(
        channel->session, headers, n_headers, call->frame, &stream_events, call);
}

GError *
ch_grpc_channel_error(ChGrpcChannelState state)
{
    if (state == CH_GRPC_CHANNEL_CLOSED)
        return g_error_new_literal(CH_GRPC_ERROR, CH_GRPC_CANCELED, CLOSING_TEXT);
    if (state == CH_GRPC_CHANNEL_LOST)
        return g_error_new_literal(CH_GRPC_ERROR,
                                   CH_GRPC_UNAVAILABLE,
                                   "connection error: desc = \"error reading from server: EOF\"");
    if (state == CH_GRPC_CHANNEL_DRAINING)
        return g_error_new_literal(CH_GRPC_ERROR,
                                   CH_GRPC_UNAVAILABLE,
                                   "connection error: desc = \"the server takes no new calls\"");
    return NULL;
}

static ChGrpcChannelState
get_state(ChGrpcChannel *channel)
{
    ChGrpcChannelState state;

    pthread_mutex_lock(&channel->gate.lock);
    state = channel->state;
    pthread_mutex_unlock(&channel->gate.lock);
    return state;
}

static void channel_open(ChGrpcChannel *channel);

/* Returns: (transfer full): NULL: a call can be sent */
static GError *
why_not_now(ChGrpcChannel *channel, int64_t deadline_us)
{
    const ChGrpcChannelState state = get_state(channel);

    if (deadline_us != 0 && deadline_us <= ch_time_now_us())
        return g_error_new_literal(
            CH_GRPC_ERROR, CH_GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    if (state == CH_GRPC_CHANNEL_LOST)
        return g_error_copy(channel->lost);
    if (state != CH_GRPC_CHANNEL_CLOSED && !ch_h2_session_takes_streams(channel->session))
        return ch_grpc_channel_error(CH_GRPC_CHANNEL_DRAINING);
    return ch_grpc_channel_error(state);
}

static ChGrpcCall *
call_new(ChGrpcChannel *channel, const char *method, int64_t deadline_us, gpointer data)
{
    ChGrpcCall *call = g_new0(ChGrpcCall, 1);

    g_assert(ch_loop_is_current(channel->loop));
    channel_open(channel);
    call->channel = ch_grpc_channel_ref(channel);
    call->method = g_strdup(method);
    call->deadline_us = deadline_us;
    call->data = data;
    call->timer = ch_timer_new(channel->loop, on_timer, call);
    call->link.data = call;
    g_queue_push_tail_link(&channel->calls, &call->link);
    return call;
}

/* @frame: (transfer full) (nullable); @failure: (transfer full) (nullable) */
static void
call_begin(ChGrpcCall *call, GBytes *frame, GError *failure)
{
    call->frame = frame;
    call->failure = failure != NULL ? failure : why_not_now(call->channel, call->deadline_us);
    if (call->failure != NULL) {
        ch_timer_arm(call->timer, 0);
        return;
    }
    if (call->deadline_us != 0)
        ch_timer_arm(call->timer, call->deadline_us - ch_time_now_us());
    call_send(call);
}

ChGrpcCall *
ch_grpc_call_start(ChGrpcChannel *channel,
                   const char *method,
                   const ProtobufCMessage *request,
                   const ProtobufCMessageDescriptor *response_type,
                   int64_t timeout_us,
                   const ChGrpcSink *sink,
                   gpointer data)
{
    const int64_t deadline_us = timeout_us > 0 ? ch_time_now_us() + timeout_us : 0;
    ChGrpcCall *call = call_new(channel, method, deadline_us, data);
    GError *failure = NULL;
    GBytes *frame = ch_grpc_message_pack(request, &failure);

    call->type = response_type;
    call->sink = *sink;
    call_begin(call, frame, failure);
    return call;
}

ChGrpcCall *
ch_grpc_call_start_raw(ChGrpcChannel *channel,
                       const char *method,
                       GBytes *frame,
                       int64_t deadline_us,
                       const ChGrpcRawSink *sink,
                       gpointer data)
{
    ChGrpcCall *call = call_new(channel, method, deadline_us, data);

    call->raw = *sink;
    call_begin(call, frame, NULL);
    return call;
}

/* The channel */

static void
on_ready(gpointer data)
{
    set_state(data, CH_GRPC_CHANNEL_READY);
}

static void
on_goaway(gpointer data)
{
    set_state(data, CH_GRPC_CHANNEL_DRAINING);
}

static void
on_closed(gpointer data, const GError *error)
{
    ChGrpcChannel *channel = data;

    channel->lost = g_error_new(CH_GRPC_ERROR,
                                CH_GRPC_UNAVAILABLE,
                                "connection error: desc = \"error reading from server: %s\"",
                                error != NULL ? error->message : "EOF");
    g_clear_pointer(&channel->session, ch_h2_session_free);
    set_state(channel, CH_GRPC_CHANNEL_LOST);
}

/* The one place where a session begins; later calls do nothing. */
static void
channel_open(ChGrpcChannel *channel)
{
    static const ChH2SessionEvents events = {
        .on_ready = on_ready,
        .on_goaway = on_goaway,
        .on_closed = on_closed,
    };
    static const ChH2Options options = {.indexes_nothing = true};
    struct bufferevent *bev;
    const int on = 1;

    if (channel->fd < 0)
        return;
    evutil_make_socket_nonblocking(channel->fd);
    /* fails on UNIX sockets, which need none */
    (void)setsockopt(channel->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    bev = bufferevent_socket_new(
        ch_loop_peek_base(channel->loop), g_steal_fd(&channel->fd), BEV_OPT_CLOSE_ON_FREE);
    channel->session = ch_h2_session_new(channel->loop, bev, &options, &events, channel);
}

static void
do_open(gpointer data)
{
    channel_open(data);
}

static void
do_close(gpointer data)
{
    ChGrpcChannel *channel = data;
    g_autoptr(GError) error = ch_grpc_channel_error(CH_GRPC_CHANNEL_CLOSED);
    ChGrpcCall *call;

    set_state(channel, CH_GRPC_CHANNEL_CLOSED);
    ch_close_fd(&channel->fd);
    for (GList *link = channel->calls.head; link != NULL; link = link->next)
        ((ChGrpcCall *)link->data)->stream = NULL; /* goes with the session */
    g_clear_pointer(&channel->session, ch_h2_session_free);
    while ((call = g_queue_peek_head(&channel->calls)) != NULL)
        call_finish(call, error);
}

static void
channel_unref(gpointer data)
{
    ch_grpc_channel_unref(data);
}

static ChGrpcChannel *
channel_alloc(ChLoop *loop, ChGrpcChannelState state)
{
    ChGrpcChannel *channel = g_new0(ChGrpcChannel, 1);

    channel->n_refs = 1;
    channel->loop = loop;
    channel->fd = -EBADF;
    channel->state = state;
    ch_grpc_gate_init(&channel->gate);
    return channel;
}

ChGrpcChannel *
ch_grpc_channel_new_lost(ChLoop *loop, const char *text)
{
    ChGrpcChannel *channel = channel_alloc(loop, CH_GRPC_CHANNEL_LOST);

    channel->lost = g_error_new_literal(CH_GRPC_ERROR, CH_GRPC_UNAVAILABLE, text);
    return channel;
}

ChGrpcChannel *
ch_grpc_channel_new(ChLoop *loop, int fd, const char *authority)
{
    ChGrpcChannel *channel = channel_alloc(loop, CH_GRPC_CHANNEL_CONNECTING);

    channel->fd = fd;
    channel->authority = g_strdup(authority);
    ch_loop_post(loop, do_open, ch_grpc_channel_ref(channel), channel_unref);
    return channel;
}

void
ch_grpc_channel_close(ChGrpcChannel *channel)
{
    ch_loop_post(channel->loop, do_close, ch_grpc_channel_ref(channel), channel_unref);
}

bool
ch_grpc_channel_is_usable(ChGrpcChannel *channel)
{
    return get_state(channel) < CH_GRPC_CHANNEL_DRAINING;
}

ChGrpcChannel *
ch_grpc_channel_ref(ChGrpcChannel *channel)
{
    g_atomic_int_inc(&channel->n_refs);
    return channel;
}

/* Runs as the destroy function of a post: on the loop's thread, or when the loop is freed. */
static void
channel_free(gpointer data)
{
    ChGrpcChannel *channel = data;

    ch_close_fd(&channel->fd);
    ch_h2_session_free(channel->session);
    g_clear_error(&channel->lost);
    ch_grpc_gate_clear(&channel->gate);
    g_free(channel->authority);
    g_free(channel);
}

static void
do_nothing(gpointer data)
{
}

void
ch_grpc_channel_unref(ChGrpcChannel *channel)
{
    if (channel != NULL && g_atomic_int_dec_and_test(&channel->n_refs))
        ch_loop_post(channel->loop, do_nothing, channel, channel_free);
}
