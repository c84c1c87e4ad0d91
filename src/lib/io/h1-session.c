/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/h1-session.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>

#include "lib/io/http1-parser.h"
#include "lib/io/tls.h"
#include "lib/io/write-now.h"

/*
 * Theory of operation: a request is running while there is a parser. As callbacks may free the
 * session, everything that calls one holds a reference and looks at `is_freed` afterwards.
 */

struct ChH1Session {
    gint n_refs;
    struct bufferevent *bev;
    ChH1ClosedFunc on_closed;
    gpointer data;
    ChHttp1Parser *parser;
    ChHttpSink sink;
    gpointer sink_data;
    bool is_freed;        /* by its owner */
    bool is_closed;       /* no more requests */
    bool is_write_broken; /* the peer takes no more bytes, but may have answered before */
};

static void
session_unref(ChH1Session *session)
{
    if (--session->n_refs > 0)
        return;
    ch_http1_parser_free(session->parser);
    g_free(session);
}

static void
session_close(ChH1Session *session)
{
    if (session->is_closed || session->is_freed)
        return;
    session->is_closed = true;
    bufferevent_disable(session->bev, EV_READ | EV_WRITE);
    session->on_closed(session->data);
}

/* Ends the request. @stays: the connection may be used again. */
static void
finish(ChH1Session *session, bool stays, const GError *error)
{
    g_clear_pointer(&session->parser, ch_http1_parser_free);
    session->is_write_broken |= !stays; /* not idle while on_end runs */
    session->sink.on_end(session->sink_data, error);
    if (!stays)
        session_close(session);
}

static bool
pass_headers(gpointer data, int status, const ChHttpHeader *headers, gsize n_headers)
{
    ChH1Session *session = data;

    session->sink.on_headers(session->sink_data, status, headers, n_headers);
    return !session->is_freed;
}

static bool
pass_body(gpointer data, const uint8_t *bytes, gsize length)
{
    ChH1Session *session = data;

    session->sink.on_body(session->sink_data, bytes, length);
    return !session->is_freed;
}

static const ChHttp1Events parser_events = {pass_headers, pass_body};

/* An answer that came before the whole request was sent leaves a connection that is out of step. */
static bool
can_stay(const ChH1Session *session)
{
    return !session->is_write_broken && ch_http1_parser_keeps_alive(session->parser) &&
           evbuffer_get_length(bufferevent_get_output(session->bev)) == 0;
}

static void
receive(ChH1Session *session)
{
    struct evbuffer *input = bufferevent_get_input(session->bev);
    struct evbuffer_iovec chunk;

    while (!session->is_freed && session->parser != NULL &&
           evbuffer_peek(input, -1, NULL, &chunk, 1) > 0 && chunk.iov_len > 0) {
        g_autoptr(GError) error = NULL;
        gsize taken = 0;
        const ChHttp1State state =
            ch_http1_parser_feed(session->parser, chunk.iov_base, chunk.iov_len, &taken, &error);

        if (state == CH_HTTP1_STOPPED)
            return;
        evbuffer_drain(input, taken);
        if (state == CH_HTTP1_FAILED)
            finish(session, false, error);
        else if (state == CH_HTTP1_DONE)
            finish(session, can_stay(session), NULL);
    }
    /* Bytes that nobody asked for: what follows on this connection cannot be trusted. */
    if (!session->is_freed && session->parser == NULL && evbuffer_get_length(input) > 0)
        session_close(session);
}

static void
on_readable(struct bufferevent *bev, void *data)
{
    ChH1Session *session = data;

    session->n_refs++;
    receive(session);
    session_unref(session);
}

static void
end_of_connection(ChH1Session *session, const GError *error)
{
    if (session->parser == NULL)
        session_close(session);
    else if (error == NULL && ch_http1_parser_end(session->parser))
        finish(session, false, NULL);
    else if (error == NULL) {
        g_autoptr(GError) eof = g_error_new_literal(CH_HTTP_ERROR, CH_HTTP_ERROR_EOF, "EOF");

        finish(session, false, eof);
    } else {
        finish(session, false, error);
    }
}

static void
on_bev_event(struct bufferevent *bev, short what, void *data)
{
    ChH1Session *session = data;
    const int errnum = EVUTIL_SOCKET_ERROR();
    g_autoptr(GError) lost = NULL;

    /* The peer's last words may be in the socket yet: read on. (A TLS bufferevent has stopped
     * both directions by now.) */
    if ((what & BEV_EVENT_ERROR) && (what & BEV_EVENT_WRITING) &&
        bufferevent_openssl_get_ssl(bev) == NULL) {
        session->is_write_broken = true;
        return;
    }
    if (what & BEV_EVENT_ERROR)
        lost = ch_tls_error_of(bev, errnum);
    session->n_refs++;
    end_of_connection(session, lost);
    session_unref(session);
}

ChH1Session *
ch_h1_session_new(ChLoop *loop, struct bufferevent *bev, ChH1ClosedFunc on_closed, gpointer data)
{
    ChH1Session *session = g_new0(ChH1Session, 1);

    g_assert(ch_loop_is_current(loop));
    session->n_refs = 1;
    session->bev = bev;
    session->on_closed = on_closed;
    session->data = data;
    bufferevent_setcb(bev, on_readable, NULL, on_bev_event, session);
    ch_write_now_init(bev);
    return session;
}

void
ch_h1_session_free(ChH1Session *session)
{
    if (session == NULL)
        return;
    session->is_freed = true;
    bufferevent_setcb(session->bev, NULL, NULL, NULL, NULL);
    g_clear_pointer(&session->bev, bufferevent_free);
    session_unref(session);
}

static void
unref_body(const void *bytes, size_t length, void *data)
{
    g_bytes_unref(data);
}

static void
write_body(struct evbuffer *output, GBytes *body)
{
    gsize length;
    const void *bytes = g_bytes_get_data(body, &length);

    if (length > 0)
        evbuffer_add_reference(output, bytes, length, unref_body, g_bytes_ref(body));
}

static bool
wants_length(const char *method)
{
    return !g_str_equal(method, "GET") && !g_str_equal(method, "HEAD");
}

void
ch_h1_session_request(ChH1Session *session,
                      const char *method,
                      const char *path,
                      const char *authority,
                      const ChHttpHeader *headers,
                      gsize n_headers,
                      GBytes *body,
                      const ChHttpSink *sink,
                      gpointer data)
{
    struct evbuffer *output = bufferevent_get_output(session->bev);
    g_autoptr(GString) head = g_string_new(NULL);

    g_assert(ch_h1_session_is_idle(session));
    session->sink = *sink;
    session->sink_data = data;
    session->parser = ch_http1_parser_new(g_str_equal(method, "HEAD"), &parser_events, session);

    g_string_append_printf(head, "%s %s HTTP/1.1\r\nhost: %s\r\n", method, path, authority);
    for (gsize i = 0; i < n_headers; i++)
        g_string_append_printf(head, "%s: %s\r\n", headers[i].name, headers[i].value);
    if (body != NULL || wants_length(method))
        g_string_append_printf(head,
                               "content-length: %" G_GSIZE_FORMAT "\r\n",
                               body != NULL ? g_bytes_get_size(body) : 0);
    g_string_append(head, "\r\n");
    evbuffer_add(output, head->str, head->len);
    if (body != NULL)
        write_body(output, body);
    ch_write_now(session->bev);
}

bool
ch_h1_session_is_idle(const ChH1Session *session)
{
    return !session->is_freed && !session->is_closed && !session->is_write_broken &&
           session->parser == NULL;
}
