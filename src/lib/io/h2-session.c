/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/h2-session.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <nghttp2/nghttp2.h>
#include <string.h>

#include "lib/io/h2-wire.h"
#include "lib/io/tls.h"
#include "lib/io/write-now.h"

/*
 * Theory of operation
 *
 * pump() is the only place that moves bytes. It runs from the bufferevent's callbacks and from the
 * `turn` timer, takes what came in, writes what nghttp2 has to say while the peer takes it, and
 * ends the session when there is nothing more to expect. Everything else only submits to nghttp2
 * and arms the timer, so no user callback ever runs from within an API call.
 *
 * nghttp2 may not be freed inside its own callbacks, which is where the user's callbacks run:
 * pump() holds a reference, and ch_h2_session_free() only marks the session and drops the owner's.
 *
 * Streams are found by id in `streams`. A stream leaves the table before its on_close or on reset,
 * so what nghttp2 still says about it afterwards finds nobody and is ignored.
 */

/* Unsent bytes above which nghttp2 is not asked for more, and below which it is again. */
#define OUTPUT_HIGH_BYTES (64 * 1024)
#define OUTPUT_LOW_BYTES  (16 * 1024)

#define STREAM_WINDOW_BYTES     (1 << 20)
#define CONNECTION_WINDOW_BYTES (4 << 20)

/* What a header costs beyond its bytes (RFC 9113 §6.5.2). */
#define HEADER_OVERHEAD_BYTES 32

struct ChH2Session {
    gint n_refs; /* the owner's, and one while pump() runs */
    struct bufferevent *bev;
    nghttp2_session *ng;
    ChH2FrameLender lender; /* of `ng` */
    bool owes_preface;      /* not written yet */
    ChH2Options options;
    ChH2SessionEvents events;
    gpointer data;
    GHashTable *streams; /* id -> ChH2Stream, owned */
    ChTimer *turn;       /* armed: pump() is due */
    ChTimer *ping;       /* NULL: this session never pings */
    int64_t heard_us;    /* when the peer was last heard of */
    bool is_ping_out;
    bool is_freed;        /* by its owner: no callback any more */
    bool is_closed;       /* on_closed was called, or is about to */
    bool is_ready;        /* the peer's SETTINGS came */
    bool is_write_broken; /* the peer takes no more bytes, but may have sent some before */
    bool is_stopped;      /* no new requests: on_goaway was called */
    uint32_t local_error; /* why nghttp2 said GOAWAY itself; NO_ERROR: it did not */
};

struct ChH2Stream {
    ChH2Session *session;
    int32_t id;
    ChH2StreamEvents events;
    gpointer data;
    GBytes *body; /* (nullable) */
    gsize body_sent;
    GArray *block; /* ChHttpHeader with owned strings: the header block that is being read */
    gsize block_bytes;
    bool is_sent;      /* its HEADERS left: the peer can know of it */
    bool is_body_sent; /* to the last byte */
    bool has_headers;  /* the final (not 1xx) ones were delivered */
    bool is_ended;     /* the peer's END_STREAM came */
    bool is_over_limit;
    bool got_reset;
};

static void pump(ChH2Session *session);

/* Streams */

static void
stream_free(gpointer data)
{
    ChH2Stream *stream = data;

    g_clear_pointer(&stream->body, g_bytes_unref);
    g_clear_pointer(&stream->block, g_array_unref);
    g_free(stream);
}

static ChH2Stream *
find_stream(ChH2Session *session, int32_t id)
{
    return g_hash_table_lookup(session->streams, GINT_TO_POINTER(id));
}

/* The stream is gone after this. */
static void
stream_close(ChH2Stream *stream, uint32_t h2_error, const GError *error)
{
    g_hash_table_steal(stream->session->streams, GINT_TO_POINTER(stream->id));
    stream->events.on_close(stream->data, h2_error, error);
    stream_free(stream);
}

/* What nghttp2's closing of a stream means. Returns: NULL: it ended as it should. */
static GError *
stream_verdict(const ChH2Stream *stream, uint32_t code)
{
    const char *name = nghttp2_http2_strerror(code);

    if (stream->is_over_limit)
        return g_error_new(CH_HTTP_ERROR,
                           CH_HTTP_ERROR_LIMIT,
                           "header list of more than %u bytes",
                           CH_HTTP_MAX_HEADER_BYTES);
    if (stream->is_ended && stream->has_headers)
        return NULL; /* whatever came after the answer's end does not matter */
    /* Also what nghttp2 says of streams beyond a GOAWAY's. A server that has begun to answer did
     * process the request, whatever it says. */
    if (code == NGHTTP2_REFUSED_STREAM && !stream->has_headers)
        return g_error_new(CH_HTTP_ERROR, CH_HTTP_ERROR_UNSENT, "the server refused the stream");
    if (stream->got_reset)
        return g_error_new(
            CH_HTTP_ERROR, CH_HTTP_ERROR_STREAM, "stream reset by the server: %s", name);
    return g_error_new(CH_HTTP_ERROR, CH_HTTP_ERROR_PROTOCOL, "bad HTTP/2 stream: %s", name);
}

/* Ends every stream for which @is_hit, whatever the callbacks do to the others meanwhile. (An
 * answer that came whole stays one, even if the request was still being sent.) */
static void
close_streams(ChH2Session *session, bool (*is_hit)(const ChH2Stream *stream), const GError *error)
{
    g_autoptr(GList) ids = g_hash_table_get_keys(session->streams);

    for (GList *l = ids; l != NULL && !session->is_freed; l = l->next) {
        ChH2Stream *stream = find_stream(session, GPOINTER_TO_INT(l->data));

        if (stream != NULL && is_hit(stream))
            stream_close(stream, 0, stream->is_ended ? NULL : error);
    }
}

static bool
is_any(const ChH2Stream *stream)
{
    return true;
}

static bool
is_unsent(const ChH2Stream *stream)
{
    return !stream->is_sent;
}

/* The session's end */

static void
session_unref(ChH2Session *session)
{
    if (--session->n_refs > 0)
        return;
    nghttp2_session_del(session->ng);
    g_hash_table_unref(session->streams);
    g_free(session);
}

/* @error: NULL: orderly. */
static void
session_end(ChH2Session *session, const GError *error)
{
    if (session->is_closed || session->is_freed)
        return;
    session->is_closed = true;
    ch_timer_disarm(session->turn);
    if (session->ping != NULL)
        ch_timer_disarm(session->ping);
    bufferevent_disable(session->bev, EV_READ | EV_WRITE);
    close_streams(session, is_any, error);
    if (!session->is_freed)
        session->events.on_closed(session->data, error);
}

static void
session_end_with(ChH2Session *session, int code, const char *message)
{
    g_autoptr(GError) error = g_error_new_literal(CH_HTTP_ERROR, code, message);

    session_end(session, error);
}

/* Nothing is expected any more in either direction: after GOAWAY from one side or the other. */
static void
session_end_if_done(ChH2Session *session)
{
    if (nghttp2_session_want_read(session->ng) || nghttp2_session_want_write(session->ng))
        return;
    if (session->local_error != NGHTTP2_NO_ERROR) {
        g_autofree char *message =
            g_strdup_printf("bad HTTP/2: %s", nghttp2_http2_strerror(session->local_error));

        session_end_with(session, CH_HTTP_ERROR_PROTOCOL, message);
    } else if (g_hash_table_size(session->streams) > 0) {
        session_end_with(session, CH_HTTP_ERROR_EOF, "EOF");
    } else {
        session_end(session, NULL);
    }
}

/* nghttp2's callbacks */

static int
on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    ChH2Stream *stream = find_stream(data, frame->hd.stream_id);

    if (stream == NULL)
        return 0;
    g_clear_pointer(&stream->block, g_array_unref);
    stream->block = ch_http_headers_new();
    stream->block_bytes = 0;
    return 0;
}

static int
on_header(nghttp2_session *ng,
          const nghttp2_frame *frame,
          const uint8_t *name,
          size_t name_length,
          const uint8_t *value,
          size_t value_length,
          uint8_t flags,
          void *data)
{
    ChH2Stream *stream = find_stream(data, frame->hd.stream_id);

    if (stream == NULL || stream->block == NULL)
        return 0;
    stream->block_bytes += name_length + value_length + HEADER_OVERHEAD_BYTES;
    if (stream->block_bytes > CH_HTTP_MAX_HEADER_BYTES) {
        stream->is_over_limit = true;
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets this stream only */
    }
    ch_http_headers_add(
        stream->block, (const char *)name, name_length, (const char *)value, value_length);
    return 0;
}

/* Informational answers (1xx) precede the one that counts. */
static bool
is_informational(const GArray *block)
{
    const char *status = ch_http_header_get(ch_http_headers_peek(block), block->len, ":status");

    return status != NULL && status[0] == '1';
}

static void
take_headers(ChH2Stream *stream, bool end_stream)
{
    /* Not in the stream any more: the callback may reset it, which frees it. */
    g_autoptr(GArray) block = g_steal_pointer(&stream->block);
    const bool is_trailer = stream->has_headers;

    if (block == NULL)
        return;
    if (is_trailer || !is_informational(block)) {
        stream->has_headers = true;
        stream->events.on_headers(
            stream->data, ch_http_headers_peek(block), block->len, is_trailer, end_stream);
    }
}

static void
stop_requests(ChH2Session *session)
{
    g_autoptr(GError) error = g_error_new_literal(
        CH_HTTP_ERROR, CH_HTTP_ERROR_UNSENT, "the server takes no new requests on this connection");

    if (session->is_stopped)
        return; /* a graceful server says GOAWAY twice */
    session->is_stopped = true;
    session->events.on_goaway(session->data);
    close_streams(session, is_unsent, error); /* those that wait for the stream limit */
}

static void
take_settings(ChH2Session *session)
{
    if (session->is_ready)
        return;
    session->is_ready = true;
    session->events.on_ready(session->data);
}

static int
result_of(const ChH2Session *session)
{
    return session->is_freed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* A server that has answered does not need the rest of the request, and need not say so. */
static void
drop_rest_of_body(ChH2Session *session, const ChH2Stream *stream)
{
    if (!stream->is_body_sent)
        nghttp2_submit_rst_stream(session->ng, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
}

static int
on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    ChH2Session *session = data;
    ChH2Stream *stream = find_stream(session, frame->hd.stream_id);
    bool end_stream;

    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            take_settings(session);
        break;
    case NGHTTP2_GOAWAY:
        stop_requests(session);
        break;
    case NGHTTP2_RST_STREAM:
        if (stream != NULL)
            stream->got_reset = true;
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        end_stream = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        if (stream == NULL)
            break;
        stream->is_ended = end_stream;
        if (end_stream)
            drop_rest_of_body(session, stream);
        if (frame->hd.type == NGHTTP2_HEADERS)
            take_headers(stream, end_stream);
        break;
    default:
        break; /* nghttp2 deals with the rest */
    }
    return result_of(session);
}

static int
on_data_chunk(nghttp2_session *ng,
              uint8_t flags,
              int32_t stream_id,
              const uint8_t *bytes,
              size_t length,
              void *data)
{
    ChH2Session *session = data;
    ChH2Stream *stream = find_stream(session, stream_id);

    if (stream != NULL)
        stream->events.on_data(stream->data, bytes, length);
    return result_of(session);
}

static int
on_stream_close(nghttp2_session *ng, int32_t stream_id, uint32_t code, void *data)
{
    ChH2Session *session = data;
    ChH2Stream *stream = find_stream(session, stream_id);
    g_autoptr(GError) error = NULL;

    if (stream == NULL)
        return 0;
    error = stream_verdict(stream, code);
    stream_close(stream, stream->got_reset ? code : 0, error);
    return result_of(session);
}

static int
on_frame_send(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    ChH2Session *session = data;
    ChH2Stream *stream = find_stream(session, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_GOAWAY)
        session->local_error = frame->goaway.error_code;
    else if (stream != NULL && frame->hd.type == NGHTTP2_HEADERS)
        stream->is_sent = true;
    return 0;
}

/* A request that nghttp2 will not open any more, e.g. as it found an error in the peer's bytes. */
static int
on_frame_not_send(nghttp2_session *ng, const nghttp2_frame *frame, int reason, void *data)
{
    ChH2Session *session = data;
    ChH2Stream *stream = find_stream(session, frame->hd.stream_id);
    g_autoptr(GError) error = NULL;

    if (stream == NULL || frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    error = g_error_new(CH_HTTP_ERROR,
                        CH_HTTP_ERROR_UNSENT,
                        "the request was not sent: %s",
                        nghttp2_strerror(reason));
    stream_close(stream, 0, error);
    return result_of(session);
}

static ssize_t
read_body(nghttp2_session *ng,
          int32_t stream_id,
          uint8_t *buffer,
          size_t length,
          uint32_t *data_flags,
          nghttp2_data_source *source,
          void *data)
{
    ChH2Stream *stream = find_stream(data, stream_id);
    const uint8_t *bytes;
    gsize size, take;

    if (stream == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* it was reset in the meantime */
    bytes = g_bytes_get_data(stream->body, &size);
    take = MIN(length, size - stream->body_sent);
    if (take > 0)
        memcpy(buffer, bytes + stream->body_sent, take);
    stream->body_sent += take;
    if (stream->body_sent == size) {
        stream->is_body_sent = true;
        *data_flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)take;
}

/* Moving bytes */

static void
fail_by_nghttp2(ChH2Session *session, int code)
{
    if (!session->is_freed) /* else it is our own CALLBACK_FAILURE */
        session_end_with(session, CH_HTTP_ERROR_PROTOCOL, nghttp2_strerror(code));
}

static bool
is_over(const ChH2Session *session)
{
    return session->is_freed || session->is_closed;
}

static void
receive(ChH2Session *session)
{
    struct evbuffer *input = bufferevent_get_input(session->bev);
    int result;

    if (evbuffer_get_length(input) == 0)
        return;
    session->heard_us = g_get_monotonic_time();
    session->is_ping_out = false;
    result = ch_h2_receive(session->ng, input);
    if (result < 0)
        fail_by_nghttp2(session, result);
}

/* Stops at the high mark when the socket takes no more; the bufferevent's write callback comes back
 * at the low one. */
static void
transmit(ChH2Session *session)
{
    struct evbuffer *output = bufferevent_get_output(session->bev);
    int result;

    if (session->owes_preface)
        evbuffer_add(output, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    session->owes_preface = false;
    if (session->is_write_broken)
        evbuffer_drain(output, SIZE_MAX);
    result = ch_h2_transmit(session->ng, session->bev, OUTPUT_HIGH_BYTES);
    if (result < 0)
        fail_by_nghttp2(session, result);
}

static void
pump(ChH2Session *session)
{
    if (is_over(session))
        return;
    session->n_refs++;
    receive(session);
    if (!is_over(session))
        transmit(session);
    if (!is_over(session))
        session_end_if_done(session);
    session_unref(session);
}

static void
on_turn(gpointer data)
{
    pump(data);
}

static void
on_readable(struct bufferevent *bev, void *data)
{
    pump(data);
}

static void
on_writable(struct bufferevent *bev, void *data)
{
    pump(data);
}

/* The peer takes no more, but its last words may be in the socket yet: read on to the end. (A TLS
 * bufferevent has stopped both directions by now.) */
static bool
can_read_on(const ChH2Session *session, short what)
{
    return (what & BEV_EVENT_WRITING) && bufferevent_openssl_get_ssl(session->bev) == NULL;
}

static void
on_bev_event(struct bufferevent *bev, short what, void *data)
{
    ChH2Session *session = data;
    const int errnum = EVUTIL_SOCKET_ERROR();
    g_autoptr(GError) lost = NULL;

    session->n_refs++;
    if (what & BEV_EVENT_ERROR && can_read_on(session, what)) {
        session->is_write_broken = true;
        stop_requests(session);
    } else if (what & BEV_EVENT_ERROR) {
        lost = ch_tls_error_of(bev, errnum);
        session_end(session, lost);
    } else if (g_hash_table_size(session->streams) > 0) {
        session_end_with(session, CH_HTTP_ERROR_EOF, "EOF");
    } else {
        session_end(session, NULL);
    }
    session_unref(session);
}

static void
on_ping_timer(gpointer data)
{
    ChH2Session *session = data;
    const int64_t silent_us = g_get_monotonic_time() - session->heard_us;

    if (session->is_ping_out) {
        session->n_refs++;
        session_end_with(session, CH_HTTP_ERROR_RESET, "connection lost: no answer to a ping");
        session_unref(session);
    } else if (silent_us < session->options.ping_idle_us) {
        ch_timer_arm(session->ping, session->options.ping_idle_us - silent_us);
    } else {
        session->is_ping_out = true;
        nghttp2_submit_ping(session->ng, NGHTTP2_FLAG_NONE, NULL);
        ch_timer_arm(session->turn, 0);
        ch_timer_arm(session->ping, session->options.ping_timeout_us);
    }
}

/* The interface */

static nghttp2_session *
new_nghttp2(ChH2Session *session)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, CH_HTTP_MAX_HEADER_BYTES},
    };
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session *ng;
    const uint8_t *preface;
    ssize_t length;

    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_send);
    nghttp2_option_new(&option);
    nghttp2_option_set_no_closed_streams(option, 1); /* only priorities would need them */
    /* Until the peer's SETTINGS say otherwise; more would be refused by one that allows less. */
    nghttp2_option_set_peer_max_concurrent_streams(option, 1);
    if (session->options.indexes_nothing)
        nghttp2_option_set_max_deflate_dynamic_table_size(option, 0);
    if (nghttp2_session_client_new3(&ng, callbacks, session, option, &session->lender.mem) != 0)
        g_error("nghttp2: out of memory");
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);

    /* The preface lies in the lent buffer from now on, where the next borrower would overwrite it:
     * out with it, transmit() has its own. Nothing else is there yet, so no callback comes. */
    length = nghttp2_session_mem_send(ng, &preface);
    g_assert(length == NGHTTP2_CLIENT_MAGIC_LEN);
    session->owes_preface = true;

    nghttp2_submit_settings(ng, NGHTTP2_FLAG_NONE, settings, G_N_ELEMENTS(settings));
    nghttp2_session_set_local_window_size(ng, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW_BYTES);
    return ng;
}

ChH2Session *
ch_h2_session_new(ChLoop *loop,
                  struct bufferevent *bev,
                  const ChH2Options *options,
                  const ChH2SessionEvents *events,
                  gpointer data)
{
    ChH2Session *session = g_new0(ChH2Session, 1);

    g_assert(ch_loop_is_current(loop));
    session->n_refs = 1;
    session->bev = bev;
    session->events = *events;
    session->data = data;
    session->streams = g_hash_table_new_full(NULL, NULL, NULL, stream_free);
    if (options != NULL)
        session->options = *options;
    ch_h2_frame_lender_init(&session->lender, loop);
    session->ng = new_nghttp2(session);
    session->turn = ch_timer_new(loop, on_turn, session);
    session->heard_us = g_get_monotonic_time();
    if (session->options.ping_idle_us > 0) {
        session->ping = ch_timer_new(loop, on_ping_timer, session);
        ch_timer_arm(session->ping, session->options.ping_idle_us);
    }

    bufferevent_setcb(bev, on_readable, on_writable, on_bev_event, session);
    bufferevent_setwatermark(bev, EV_WRITE, OUTPUT_LOW_BYTES, 0);
    ch_write_now_init(bev);
    ch_timer_arm(session->turn, 0); /* the preface; and what @bev may have read already */
    return session;
}

void
ch_h2_session_free(ChH2Session *session)
{
    if (session == NULL)
        return;
    session->is_freed = true;
    g_clear_pointer(&session->turn, ch_timer_free);
    g_clear_pointer(&session->ping, ch_timer_free);
    bufferevent_setcb(session->bev, NULL, NULL, NULL, NULL);
    g_clear_pointer(&session->bev, bufferevent_free);
    session_unref(session);
}

/* Frees the array only: its members point to the caller's strings. */
static nghttp2_nv *
to_nghttp2_headers(const ChHttpHeader *headers, gsize n_headers)
{
    nghttp2_nv *out = g_new0(nghttp2_nv, n_headers);

    for (gsize i = 0; i < n_headers; i++) {
        const bool is_secret = g_ascii_strcasecmp(headers[i].name, "authorization") == 0;

        out[i].name = (uint8_t *)headers[i].name;
        out[i].namelen = strlen(headers[i].name);
        out[i].value = (uint8_t *)headers[i].value;
        out[i].valuelen = strlen(headers[i].value);
        out[i].flags = is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    }
    return out;
}

ChH2Stream *
ch_h2_session_request(ChH2Session *session,
                      const ChHttpHeader *headers,
                      gsize n_headers,
                      GBytes *body,
                      const ChH2StreamEvents *events,
                      gpointer data)
{
    const nghttp2_data_provider provider = {.read_callback = read_body};
    g_autofree nghttp2_nv *ng_headers = to_nghttp2_headers(headers, n_headers);
    ChH2Stream *stream = g_new0(ChH2Stream, 1);

    g_assert(ch_h2_session_takes_streams(session));
    stream->session = session;
    stream->events = *events;
    stream->data = data;
    stream->body = body != NULL ? g_bytes_ref(body) : NULL;
    stream->is_body_sent = body == NULL;
    stream->id = nghttp2_submit_request(
        session->ng, NULL, ng_headers, n_headers, body != NULL ? &provider : NULL, NULL);
    g_assert(stream->id > 0); /* it fails without memory or ids only */
    g_hash_table_insert(session->streams, GINT_TO_POINTER(stream->id), stream);
    ch_timer_arm(session->turn, 0);
    return stream;
}

void
ch_h2_stream_reset(ChH2Stream *stream, uint32_t code)
{
    ChH2Session *session = stream->session;

    g_hash_table_steal(session->streams, GINT_TO_POINTER(stream->id));
    if (!is_over(session)) {
        nghttp2_submit_rst_stream(session->ng, NGHTTP2_FLAG_NONE, stream->id, code);
        ch_timer_arm(session->turn, 0);
    }
    stream_free(stream);
}

bool
ch_h2_session_takes_streams(const ChH2Session *session)
{
    return !is_over(session) && !session->is_write_broken &&
           nghttp2_session_check_request_allowed(session->ng);
}

guint
ch_h2_session_n_streams(const ChH2Session *session)
{
    return g_hash_table_size(session->streams);
}
