/* SPDX-License-Identifier: Apache-2.0 */

/*
 * http-server-connection: one connection of an HTTP server: the requests that come on it, one after
 * the other, and the exchanges that answer them.
 *
 * Theory of operation: read_requests() calls step(), one for each state, until bytes are missing or
 * an exchange is open. libevent's callbacks are deferred, so that none comes from within a call of
 * the handler or of the ch_http_exchange_ functions; only events close a connection, so that it
 * outlives every step().
 */

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <time.h>

#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/io/http-head.h"
#include "lib/io/http-server-internal.h"

#define MAX_CHUNK_LINE 1024
/* What a client may send ahead of its turn; beyond, TCP holds it back. */
#define READ_AHEAD (256u << 10)
/* With more than this in answers that the client has not taken, its next request waits. */
#define MAX_UNSENT (256u << 10)
/* A refused client may go on sending for so long; closing at once would reset the connection and
 * take our answer with it. */
#define LINGER_US (2 * CH_SECOND_US)

/* What a connection does, and what it may read meanwhile. */
typedef enum {
    STATE_INVALID,
    STATE_HEAD,      /* reading a head; nothing read yet: idle between requests */
    STATE_BODY,      /* reading a body of known length, or the data of a chunk */
    STATE_CHUNK,     /* reading a chunk's line */
    STATE_CHUNK_END, /* reading the line end behind a chunk's data */
    STATE_TRAILER,   /* reading lines behind the last chunk */
    STATE_ANSWER,    /* an exchange is open; input waits */
    STATE_FLUSH,     /* closes when the output is gone */
    STATE_LINGER,    /* output is gone; input is thrown away for a while */
} State;

typedef struct {
    ChHttpServer *server;
    struct bufferevent *bev;
    ChTimer *deadline;
    State state;
    bool is_reading;      /* read_requests() runs: do not enter it again */
    bool is_timed;        /* the deadline is that of a request that has begun */
    bool has_unread_body; /* the request was refused before it was read: linger */
    ChHttpHead head;      /* of the request that is being read or answered */
    GByteArray *body;
    gsize left;               /* STATE_BODY: bytes to come */
    gsize n_unsent;           /* output when the deadline was set, for seeing that it moves */
    ChHttpExchange *exchange; /* STATE_ANSWER */
} Connection;

struct ChHttpExchange {
    Connection *connection; /* NULL: the client is gone */
    ChHttpHead head;
    GByteArray *body;
    bool is_streaming;
    ChHttpStreamEvents events;
    gpointer data;
};

static void
exchange_free(ChHttpExchange *exchange)
{
    ch_http_head_clear(&exchange->head);
    g_byte_array_unref(exchange->body);
    g_free(exchange);
}

/* Last act of a connection; called by the table that owns it. */
void
ch_http_connection_free(gpointer data)
{
    Connection *connection = data;
    ChHttpExchange *exchange = g_steal_pointer(&connection->exchange);

    if (exchange != NULL)
        exchange->connection = NULL;
    if (exchange != NULL && exchange->is_streaming) {
        exchange->events.on_closed(exchange->data);
        exchange_free(exchange);
    }
    ch_timer_free(connection->deadline);
    bufferevent_free(connection->bev);
    ch_http_head_clear(&connection->head);
    g_byte_array_unref(connection->body);
    g_free(connection);
}

static void
connection_close(Connection *connection)
{
    g_hash_table_remove(connection->server->connections, connection);
}

static gsize
n_unsent(const Connection *connection)
{
    return evbuffer_get_length(bufferevent_get_output(connection->bev));
}

/* Between requests, or before the end: only the client's taking of its answer moves the deadline.
 */
static void
set_deadline(Connection *connection, int64_t delay_us)
{
    connection->is_timed = false;
    connection->n_unsent = n_unsent(connection);
    ch_timer_arm(connection->deadline, delay_us);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void
add_date(struct evbuffer *out)
{
    const time_t now = (time_t)(ch_time_wall_us() / CH_SECOND_US);
    struct tm parts;
    char text[64];

    gmtime_r(&now, &parts);
    /* C locale: names of days are English, as the protocol wants them */
    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    evbuffer_add_printf(out, "date: %s\r\n", text);
}

static bool
is_safe_value(const char *value)
{
    return strpbrk(value, "\r\n") == NULL;
}

/* Status line and headers; @framing: the line that says where the body ends. */
static void
write_head(Connection *connection,
           int status,
           const ChHttpHeader *headers,
           gsize n_headers,
           const char *framing)
{
    struct evbuffer *out = bufferevent_get_output(connection->bev);

    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n", status, ch_http_reason_phrase(status));
    for (gsize i = 0; i < n_headers; i++) {
        g_return_if_fail(is_safe_value(headers[i].name) && is_safe_value(headers[i].value));
        evbuffer_add_printf(out, "%s: %s\r\n", headers[i].name, headers[i].value);
    }
    add_date(out);
    if (!connection->head.keeps_alive)
        evbuffer_add_printf(out, "connection: close\r\n");
    evbuffer_add_printf(out, "%s\r\n", framing);
}

static void
drop_bytes(const void *memory, size_t length, void *bytes)
{
    g_bytes_unref(bytes);
}

static void
write_bytes(struct evbuffer *out, GBytes *bytes)
{
    gsize length;
    const void *memory = g_bytes_get_data(bytes, &length);

    if (length > 0)
        evbuffer_add_reference(out, memory, length, drop_bytes, g_bytes_ref(bytes));
}

/* From now on the connection only empties its output; on_written() goes on. */
static void
start_flush(Connection *connection)
{
    connection->state = STATE_FLUSH;
    set_deadline(connection, connection->server->limits.request_timeout_us);
    if (connection->n_unsent == 0)
        bufferevent_trigger(connection->bev, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

/* The answer is complete: on to the next request, or to the end. */
static void
finish_answer(Connection *connection)
{
    const bool keeps_alive = connection->head.keeps_alive;

    ch_http_head_clear(&connection->head);
    if (!keeps_alive) {
        start_flush(connection);
        return;
    }
    connection->state = STATE_HEAD;
    set_deadline(connection, connection->server->limits.idle_timeout_us);
    if (!connection->is_reading) /* the next request may be here already */
        bufferevent_trigger(
            connection->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

/* A whole answer of this server's own, then the end. */
static void
refuse(Connection *connection, int status)
{
    g_autofree char *framing = NULL;
    const char *phrase = ch_http_reason_phrase(status);
    const ChHttpHeader type = {"content-type", "text/plain; charset=utf-8"};

    connection->head.keeps_alive = false;
    connection->has_unread_body = true;
    framing = g_strdup_printf("content-length: %" G_GSIZE_FORMAT "\r\n", strlen(phrase) + 1);
    write_head(connection, status, &type, 1, framing);
    evbuffer_add_printf(bufferevent_get_output(connection->bev), "%s\n", phrase);
    start_flush(connection);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The request is complete: to the handler. */
static void
ask_handler(Connection *connection)
{
    ChHttpServer *server = connection->server;
    ChHttpExchange *exchange = g_new0(ChHttpExchange, 1);
    ChHttpQuestion question;

    exchange->connection = connection;
    exchange->head = connection->head; /* the exchange owns it; the connection keeps the facts */
    connection->head.text = NULL;
    connection->head.headers = NULL;
    exchange->body = g_steal_pointer(&connection->body);
    connection->body = g_byte_array_new();
    connection->exchange = exchange;
    connection->state = STATE_ANSWER;
    ch_timer_disarm(connection->deadline);
    question = (ChHttpQuestion){
        .method = exchange->head.method,
        .path = exchange->head.path,
        .query = exchange->head.query,
        .body = exchange->body->len > 0 ? exchange->body->data : (const uint8_t *)"",
        .length = exchange->body->len,
    };
    server->handler(exchange, &question, server->data);
}

/* Where to go after a head. */
static void
start_body(Connection *connection)
{
    const ChHttpHead *head = &connection->head;

    if (!head->is_chunked && head->length > connection->server->limits.max_body_bytes) {
        refuse(connection, 413);
        return;
    }
    if (head->expects_continue && (head->is_chunked || head->length > 0))
        evbuffer_add_printf(bufferevent_get_output(connection->bev),
                            "HTTP/1.1 100 Continue\r\n\r\n");
    connection->left = (gsize)head->length;
    connection->state = head->is_chunked ? STATE_CHUNK : STATE_BODY;
}

/* Each step_ function takes what it can from the input. Returns: false: more bytes are needed */
static bool
step_head(Connection *connection, struct evbuffer *in)
{
    const gsize limit = connection->server->limits.max_header_bytes;
    struct evbuffer_ptr end;
    gsize length;
    int status;

    if (evbuffer_get_length(in) == 0 || n_unsent(connection) > MAX_UNSENT)
        return false;
    end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
    if (end.pos > (ev_ssize_t)limit || (end.pos < 0 && evbuffer_get_length(in) > limit)) {
        refuse(connection, 431);
        return true;
    }
    if (end.pos < 0)
        return false;
    length = (gsize)end.pos + 4;
    status = ch_http_head_parse(
        (const char *)evbuffer_pullup(in, (ev_ssize_t)length), length, &connection->head);
    evbuffer_drain(in, length);
    if (status != 0)
        refuse(connection, status);
    else
        start_body(connection);
    return true;
}

static bool
step_body(Connection *connection, struct evbuffer *in)
{
    const gsize take = MIN(connection->left, evbuffer_get_length(in));
    const guint before = connection->body->len;

    if (take > 0) {
        g_byte_array_set_size(connection->body, before + (guint)take);
        evbuffer_remove(in, connection->body->data + before, take);
        connection->left -= take;
    }
    if (connection->left > 0)
        return false;
    if (connection->head.is_chunked)
        connection->state = STATE_CHUNK_END;
    else
        ask_handler(connection);
    return true;
}

/* (transfer full): the next CR LF line; NULL: not there yet, or refused. */
static char *
take_line(Connection *connection, struct evbuffer *in)
{
    const gsize n_waiting = evbuffer_get_length(in);
    gsize length = 0;
    char *line = evbuffer_readln(in, &length, EVBUFFER_EOL_CRLF_STRICT);
    char *copy = g_strdup(line);
    const bool is_good = line != NULL ? length <= MAX_CHUNK_LINE && strlen(line) == length
                                      : n_waiting <= MAX_CHUNK_LINE;

    free(line); /* malloc'ed by libevent */
    if (is_good)
        return copy;
    g_free(copy);
    refuse(connection, 400);
    return NULL;
}

static bool
step_chunk(Connection *connection, struct evbuffer *in)
{
    g_autofree char *line = take_line(connection, in);

    if (line == NULL)
        return connection->state == STATE_FLUSH;
    if (!ch_http_chunk_length(line, &connection->left))
        refuse(connection, 400);
    else if (connection->left + connection->body->len > connection->server->limits.max_body_bytes)
        refuse(connection, 413);
    else
        connection->state = connection->left == 0 ? STATE_TRAILER : STATE_BODY;
    return true;
}

static bool
step_chunk_end(Connection *connection, struct evbuffer *in)
{
    char end[2];

    if (evbuffer_get_length(in) < sizeof(end))
        return false;
    evbuffer_remove(in, end, sizeof(end));
    if (memcmp(end, "\r\n", 2) != 0)
        refuse(connection, 400);
    else
        connection->state = STATE_CHUNK;
    return true;
}

/* Trailers are read and forgotten; the request's deadline bounds their number. */
static bool
step_trailer(Connection *connection, struct evbuffer *in)
{
    g_autofree char *line = take_line(connection, in);

    if (line == NULL)
        return connection->state == STATE_FLUSH;
    if (*line == '\0')
        ask_handler(connection);
    return true;
}

static bool
step(Connection *connection)
{
    struct evbuffer *in = bufferevent_get_input(connection->bev);

    switch (connection->state) {
    case STATE_HEAD:
        return step_head(connection, in);
    case STATE_BODY:
        return step_body(connection, in);
    case STATE_CHUNK:
        return step_chunk(connection, in);
    case STATE_CHUNK_END:
        return step_chunk_end(connection, in);
    case STATE_TRAILER:
        return step_trailer(connection, in);
    case STATE_FLUSH:
    case STATE_LINGER:
        evbuffer_drain(in, evbuffer_get_length(in));
        return false;
    case STATE_ANSWER: /* what comes now waits in the buffer, READ_AHEAD of it */
    case STATE_INVALID:
        break;
    }
    return false;
}

/* Some of a request is here, and some is not. */
static bool
is_mid_request(const Connection *connection)
{
    if (connection->state == STATE_HEAD)
        return evbuffer_get_length(bufferevent_get_input(connection->bev)) > 0 &&
               n_unsent(connection) <= MAX_UNSENT;
    return connection->state == STATE_BODY || connection->state == STATE_CHUNK ||
           connection->state == STATE_CHUNK_END || connection->state == STATE_TRAILER;
}

static void
read_requests(Connection *connection)
{
    connection->is_reading = true;
    while (step(connection))
        continue;
    connection->is_reading = false;
    /* once for the whole request: more bytes do not buy more time */
    if (!connection->is_timed && is_mid_request(connection)) {
        connection->is_timed = true;
        ch_timer_arm(connection->deadline, connection->server->limits.request_timeout_us);
    }
}

/* --- events ----------------------------------------------------------------------------------- */

static void
on_readable(struct bufferevent *bev, void *data)
{
    read_requests(data);
}

/* Says that nothing more comes, and lets the client finish its sentence. */
static void
start_linger(Connection *connection)
{
    SSL *ssl =
        connection->server->tls != NULL ? bufferevent_openssl_get_ssl(connection->bev) : NULL;

    if (ssl != NULL && SSL_is_init_finished(ssl))
        (void)SSL_shutdown(ssl); /* best effort: the answer is out already */
    (void)shutdown(bufferevent_getfd(connection->bev), SHUT_WR);
    connection->state = STATE_LINGER;
    ch_timer_arm(connection->deadline, LINGER_US);
}

static void
on_written(struct bufferevent *bev, void *data)
{
    Connection *connection = data;
    ChHttpExchange *exchange = connection->exchange;

    /* deferred, it may come after something new was written */
    if (n_unsent(connection) > 0)
        return;
    if (exchange != NULL && exchange->is_streaming) {
        if (exchange->events.on_drained != NULL)
            exchange->events.on_drained(exchange->data);
        return;
    }
    if (connection->state == STATE_HEAD)
        read_requests(connection); /* one may have waited for this */
    else if (connection->state == STATE_FLUSH && connection->has_unread_body)
        start_linger(connection);
    else if (connection->state == STATE_FLUSH)
        connection_close(connection);
}

/* The client sends no more, but it may be waiting for what it asked for (`printf ... | nc`). */
static void
on_end_of_input(Connection *connection)
{
    const ChHttpExchange *exchange = connection->exchange;

    if (exchange != NULL && !exchange->is_streaming)
        connection->head.keeps_alive = false;
    else if (exchange == NULL && connection->state != STATE_LINGER && n_unsent(connection) > 0)
        start_flush(connection);
    else
        connection_close(connection);
}

static void
on_event(struct bufferevent *bev, short what, void *data)
{
    if (what & (BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
        connection_close(data);
    else if (what & BEV_EVENT_EOF)
        on_end_of_input(data);
}

/* An answer on its way is not cut off for being long; the stream's own time-out finds the client
 * that takes nothing. */
static void
on_deadline(gpointer data)
{
    Connection *connection = data;
    const bool is_taking = n_unsent(connection) > 0 && n_unsent(connection) < connection->n_unsent;

    if (!connection->is_timed && is_taking)
        set_deadline(connection, connection->server->limits.request_timeout_us);
    else
        connection_close(connection);
}

/* (transfer full): the stream of an accepted socket, which it takes over; NULL: no memory for TLS.
 * Callbacks are deferred: none comes from within a call of ours. */
static struct bufferevent *
make_stream(ChHttpServer *server, int fd)
{
    const int options = BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS;
    struct event_base *base = ch_loop_peek_base(server->loop);
    struct bufferevent *bev;
    SSL *ssl;

    if (server->tls == NULL)
        return bufferevent_socket_new(base, fd, options);
    ssl = SSL_new(server->tls);
    if (ssl == NULL)
        return NULL;
    bev = bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, options);
    if (bev == NULL)
        SSL_free(ssl);
    else
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

void
ch_http_connection_open(ChHttpServer *server, int socket_fd)
{
    const int64_t write_us = server->limits.request_timeout_us;
    const struct timeval write_timeout = {write_us / CH_SECOND_US, write_us % CH_SECOND_US};
    ch_autofd int fd = socket_fd;
    struct bufferevent *bev = make_stream(server, fd);
    Connection *connection;
    int on = 1;

    if (bev == NULL)
        return;
    (void)setsockopt(g_steal_fd(&fd), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    connection = g_new0(Connection, 1);
    connection->server = server;
    connection->bev = bev;
    connection->state = STATE_HEAD;
    connection->body = g_byte_array_new();
    connection->deadline = ch_timer_new(server->loop, on_deadline, connection);
    g_hash_table_add(server->connections, connection);
    ch_timer_arm(connection->deadline, server->limits.request_timeout_us);
    bufferevent_setcb(bev, on_readable, on_written, on_event, connection);
    bufferevent_setwatermark(bev, EV_READ, 0, MAX(READ_AHEAD, server->limits.max_header_bytes * 2));
    bufferevent_set_timeouts(bev, NULL, &write_timeout);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

/* --- exchanges -------------------------------------------------------------------------------- */

const char *
ch_http_exchange_header(const ChHttpExchange *exchange, const char *name)
{
    const GArray *headers = exchange->head.headers;

    return ch_http_header_get(ch_http_headers_peek(headers), headers->len, name);
}

SSL *
ch_http_exchange_peek_ssl(const ChHttpExchange *exchange)
{
    if (exchange->connection == NULL || exchange->connection->server->tls == NULL)
        return NULL;
    return bufferevent_openssl_get_ssl(exchange->connection->bev);
}

static bool
wants_body(const ChHttpExchange *exchange)
{
    return !g_str_equal(exchange->head.method, "HEAD");
}

/* Parts exchange and connection: the answer is written. */
static void
end_exchange(ChHttpExchange *exchange)
{
    Connection *connection = exchange->connection;

    connection->exchange = NULL;
    exchange_free(exchange);
    finish_answer(connection);
}

void
ch_http_exchange_reply(ChHttpExchange *exchange,
                       int status,
                       const ChHttpHeader *headers,
                       gsize n_headers,
                       GBytes *body)
{
    Connection *connection = exchange->connection;
    const gsize length = body != NULL ? g_bytes_get_size(body) : 0;
    g_autofree char *framing = NULL;

    g_return_if_fail(!exchange->is_streaming);
    if (connection == NULL) {
        exchange_free(exchange);
        return;
    }
    framing = g_strdup_printf("content-length: %" G_GSIZE_FORMAT "\r\n", length);
    write_head(connection, status, headers, n_headers, framing);
    if (body != NULL && wants_body(exchange))
        write_bytes(bufferevent_get_output(connection->bev), body);
    end_exchange(exchange);
}

bool
ch_http_exchange_begin(ChHttpExchange *exchange,
                       int status,
                       const ChHttpHeader *headers,
                       gsize n_headers,
                       const ChHttpStreamEvents *events,
                       gpointer data)
{
    Connection *connection = exchange->connection;

    if (connection == NULL) {
        exchange_free(exchange);
        return false;
    }
    exchange->is_streaming = true;
    exchange->events = *events;
    exchange->data = data;
    if (exchange->head.is_http_1_0)
        connection->head.keeps_alive = false; /* the end of the stream is the end of the body */
    write_head(connection,
               status,
               headers,
               n_headers,
               exchange->head.is_http_1_0 ? "" : "transfer-encoding: chunked\r\n");
    return true;
}

void
ch_http_exchange_write(ChHttpExchange *exchange, GBytes *bytes)
{
    struct evbuffer *out = bufferevent_get_output(exchange->connection->bev);
    const gsize length = g_bytes_get_size(bytes);

    if (length == 0 || !wants_body(exchange)) /* an empty chunk would end the stream */
        return;
    if (!exchange->head.is_http_1_0)
        evbuffer_add_printf(out, "%" G_GSIZE_MODIFIER "x\r\n", length);
    write_bytes(out, bytes);
    if (!exchange->head.is_http_1_0)
        evbuffer_add(out, "\r\n", 2);
}

gsize
ch_http_exchange_n_pending(const ChHttpExchange *exchange)
{
    return n_unsent(exchange->connection);
}

void
ch_http_exchange_end(ChHttpExchange *exchange)
{
    if (!exchange->head.is_http_1_0 && wants_body(exchange))
        evbuffer_add(bufferevent_get_output(exchange->connection->bev), "0\r\n\r\n", 5);
    end_exchange(exchange);
}
