/* SPDX-License-Identifier: Apache-2.0 */

/*
 * server-connection: nghttp2 on a bufferevent.
 *
 * Theory of operation: bytes go from the bufferevent's input to nghttp2, whose callbacks find the
 * stream's call and drive it; afterwards, and whenever a call has something to send, flush() writes
 * what nghttp2 wants to send. What the socket does not take stays in the bufferevent's output, up
 * to OUTPUT_HIGH_BYTES; the rest follows when that has drained. Message bodies go from a call's
 * buffer to the output without a copy.
 */

#include <event2/buffer.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "lib/base/time.h"
#include "lib/grpc/server-internal.h"
#include "lib/io/write-now.h"

#define MAX_FRAME_BYTES   16384
#define OUTPUT_HIGH_BYTES (128u << 10)

/* As grpc-go's server: a peer idle for two hours is asked, and has 20 s to answer. */
#define KEEPALIVE_IDLE_US   (7200 * CH_SECOND_US)
#define KEEPALIVE_ANSWER_US (20 * CH_SECOND_US)

/* Goes out behind the first GOAWAY: its ACK proves that the peer knows of that. */
static const uint8_t drain_ping[8] = "draining";

static void
connection_free(ChGrpcConnection *connection)
{
    while (connection->calls.head != NULL)
        ch_grpc_server_call_detach(connection->calls.head->data);
    nghttp2_session_del(connection->session);
    bufferevent_free(connection->bev);
    ch_timer_free(connection->timer);
    ch_grpc_peer_unref(connection->peer);
    g_free(connection);
}

void
ch_grpc_connection_close(ChGrpcConnection *connection)
{
    ChGrpcServer *server = connection->server;

    g_queue_unlink(&server->connections, &connection->link);
    connection_free(connection);
    ch_grpc_server_connection_gone(server);
}

static bool
is_over(const ChGrpcConnection *connection)
{
    const bool has_nothing_to_do = !nghttp2_session_want_read(connection->session) &&
                                   !nghttp2_session_want_write(connection->session);
    const bool is_drained = connection->is_draining && connection->calls.length == 0 &&
                            !nghttp2_session_want_write(connection->session);

    return has_nothing_to_do || is_drained;
}

/* Most of the time a launcher has nothing to tell. */
static void
rest(ChGrpcConnection *connection)
{
    connection->had_stream = false;
    ch_h2_frame_lender_rest(&connection->lender);
}

void
ch_grpc_connection_flush(ChGrpcConnection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->bev);

    if (connection->is_reading)
        return; /* the reader flushes when it is done */
    if (ch_h2_transmit(connection->session, connection->bev, OUTPUT_HIGH_BYTES) < 0 ||
        (is_over(connection) && evbuffer_get_length(output) == 0))
        ch_grpc_connection_close(connection);
    else if (connection->had_stream && connection->calls.length == 0)
        rest(connection);
}

static void
on_read(struct bufferevent *bev, void *data)
{
    ChGrpcConnection *connection = data;
    bool is_usable;

    connection->last_read_us = ch_time_now_us();
    connection->is_reading = true;
    is_usable = ch_h2_receive(connection->session, bufferevent_get_input(bev)) == 0;
    connection->is_reading = false;
    if (is_usable)
        ch_grpc_connection_flush(connection);
    else
        ch_grpc_connection_close(connection); /* garbage */
}

static void
on_drained(struct bufferevent *bev, void *data)
{
    ch_grpc_connection_flush(data);
}

/* A peer that shut down its sending side is gone, as grpc-go sees it; so is one that sent nothing
 * at all (a health check). */
static void
on_event(struct bufferevent *bev, short what, void *data)
{
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        ch_grpc_connection_close(data);
}

static void
on_timer(gpointer data)
{
    ChGrpcConnection *connection = data;
    const int64_t idle_us = ch_time_now_us() - connection->last_read_us;

    if (!connection->has_preface || (connection->awaits_ping && idle_us >= KEEPALIVE_ANSWER_US)) {
        ch_grpc_connection_close(connection);
        return;
    }
    connection->awaits_ping = idle_us >= KEEPALIVE_IDLE_US;
    if (!connection->awaits_ping) {
        ch_timer_arm(connection->timer, KEEPALIVE_IDLE_US - idle_us);
        return;
    }
    ch_timer_arm(connection->timer, KEEPALIVE_ANSWER_US);
    nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL);
    ch_grpc_connection_flush(connection);
}

static void
on_preface(ChGrpcConnection *connection)
{
    if (connection->has_preface)
        return;
    connection->has_preface = true;
    ch_timer_arm(connection->timer, KEEPALIVE_IDLE_US);
}

void
ch_grpc_connection_drain(ChGrpcConnection *connection)
{
    if (!connection->has_preface) {
        ch_grpc_connection_close(connection);
        return;
    }
    nghttp2_submit_shutdown_notice(connection->session);
    nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, drain_ping);
    ch_grpc_connection_flush(connection);
}

static void
on_ping_answer(ChGrpcConnection *connection, const nghttp2_ping *ping)
{
    if (!connection->server->is_stopping ||
        memcmp(ping->opaque_data, drain_ping, sizeof(drain_ping)) != 0)
        return;
    connection->is_draining = true;
    nghttp2_submit_goaway(connection->session,
                          NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(connection->session),
                          NGHTTP2_NO_ERROR,
                          NULL,
                          0);
}

/* nghttp2's callbacks */

static ChGrpcServerCall *
call_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static bool
is_request(const nghttp2_frame *frame)
{
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

static int
on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
    ChGrpcConnection *connection = data;

    if (!is_request(frame))
        return 0;
    connection->had_stream = true;
    nghttp2_session_set_stream_user_data(
        session, frame->hd.stream_id, ch_grpc_server_call_new(connection, frame->hd.stream_id));
    return 0;
}

static int
on_header(nghttp2_session *session,
          const nghttp2_frame *frame,
          const uint8_t *name,
          size_t name_length,
          const uint8_t *value,
          size_t value_length,
          uint8_t flags,
          void *data)
{
    ChGrpcServerCall *call = call_of(session, frame->hd.stream_id);

    if (is_request(frame) && call != NULL)
        ch_grpc_request_add(&call->head, name, name_length, value, value_length);
    return 0;
}

static int
on_data_chunk(nghttp2_session *session,
              uint8_t flags,
              int32_t stream_id,
              const uint8_t *bytes,
              size_t length,
              void *data)
{
    ChGrpcServerCall *call = call_of(session, stream_id);

    if (call != NULL)
        ch_grpc_server_call_data(call, bytes, length);
    return 0;
}

static void
on_stream_frame(ChGrpcServerCall *call, const nghttp2_frame *frame)
{
    if (is_request(frame))
        ch_grpc_server_call_headers_done(call);
    ch_grpc_server_call_advance(call, (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0);
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
    ChGrpcConnection *connection = data;
    ChGrpcServerCall *call;

    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        call = call_of(session, frame->hd.stream_id);
        if (call != NULL)
            on_stream_frame(call, frame);
        break;
    case NGHTTP2_SETTINGS:
        on_preface(connection);
        break;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK)
            on_ping_answer(connection, &frame->ping);
        break;
    default:
        break;
    }
    return 0;
}

/* A response that ends before its request tells the peer to stop sending. */
static int
on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
    const int32_t stream_id = frame->hd.stream_id;

    if (frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        nghttp2_session_get_stream_remote_close(session, stream_id) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

static int
on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t h2_error, void *data)
{
    ChGrpcServerCall *call = call_of(session, stream_id);

    if (call != NULL)
        ch_grpc_server_call_detach(call);
    return 0;
}

static int
on_send_data(nghttp2_session *session,
             nghttp2_frame *frame,
             const uint8_t *header,
             size_t length,
             nghttp2_data_source *source,
             void *data)
{
    ChGrpcConnection *connection = data;
    ChGrpcServerCall *call = source->ptr;
    struct evbuffer *output = bufferevent_get_output(connection->bev);

    /* beyond OUTPUT_HIGH_BYTES too: the bytes only change hands */
    evbuffer_add(output, header, 9); /* the frame header; no padding is ever asked for */
    evbuffer_remove_buffer(call->unsent, output, length);
    return 0;
}

nghttp2_session_callbacks *
ch_grpc_connection_callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        g_error("out of memory");
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
    return callbacks;
}

static nghttp2_session *
session_new(ChGrpcServer *server, ChGrpcConnection *connection)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, MAX_FRAME_BYTES},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, server->options.max_streams},
        {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0}, /* saves as much as our own */
    };
    nghttp2_option *option;
    nghttp2_session *session;

    if (nghttp2_option_new(&option) != 0)
        g_error("out of memory");
    nghttp2_option_set_no_http_messaging(option, 1); /* request.h says why */
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_deflate_dynamic_table_size(option,
                                                      0); /* small headers: save its memory */
    if (nghttp2_session_server_new3(
            &session, server->callbacks, connection, option, &connection->lender.mem) != 0)
        g_error("out of memory");
    nghttp2_option_del(option);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, G_N_ELEMENTS(settings));
    return session;
}

void
ch_grpc_connection_open(ChGrpcServer *server, int fd, ChGrpcPeer *peer)
{
    ChGrpcConnection *connection = g_new0(ChGrpcConnection, 1);
    const int on = 1;

    evutil_make_socket_nonblocking(fd);
    /* fails on UNIX sockets, which need none */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

    connection->server = server;
    ch_h2_frame_lender_init(&connection->lender, server->loop);
    connection->peer = peer;
    connection->link.data = connection;
    g_queue_push_tail_link(&server->connections, &connection->link);
    connection->timer = ch_timer_new(server->loop, on_timer, connection);
    ch_timer_arm(connection->timer, server->options.preface_timeout_us);
    connection->bev =
        bufferevent_socket_new(ch_loop_peek_base(server->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(connection->bev, on_read, on_drained, on_event, connection);
    ch_write_now_init(connection->bev);
    connection->session = session_new(server, connection);
    ch_grpc_connection_flush(connection); /* a Go client sends nothing before our SETTINGS came */
}
