/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/h2-session.h"

#include <sys/socket.h>

#include "lib/io/test-h2-peer.h"
#include "lib/io/test-wait.h"

/* A session and its peer on one loop. */
typedef struct {
    ChLoop *loop;
    ChH2Session *session;
    TestH2Peer *peer;            /* NULL: a hostile one, see below */
    struct bufferevent *hostile; /* writes what a test wants */
    bool is_ready;
    bool got_goaway;
    bool is_closed;
    GError *error;        /* of on_closed */
    const char *frees_at; /* (nullable): the callback that frees the session */
} Fixture;

/* What came back for one request. */
typedef struct {
    Fixture *fixture;
    ChH2Stream *stream;
    char *status;
    char *trailer;
    gsize n_headers;
    GString *body;
    bool ended_with_headers;
    bool is_done;
    uint32_t h2_error;
    GError *error;
    bool resets_on_headers;
    bool resets_on_data;
} Answer;

static void
free_if_at(Fixture *f, const char *callback)
{
    if (g_strcmp0(f->frees_at, callback) == 0)
        g_clear_pointer(&f->session, ch_h2_session_free);
}

static void
on_ready(gpointer data)
{
    Fixture *f = data;

    f->is_ready = true;
    free_if_at(f, "ready");
}

static void
on_goaway(gpointer data)
{
    Fixture *f = data;

    f->got_goaway = true;
    free_if_at(f, "goaway");
}

static void
on_closed(gpointer data, const GError *error)
{
    Fixture *f = data;

    g_assert_false(f->is_closed);
    f->is_closed = true;
    f->error = error != NULL ? g_error_copy(error) : NULL;
    free_if_at(f, "closed");
}

static const ChH2SessionEvents session_events = {on_ready, on_goaway, on_closed};

static struct bufferevent *
wrap(ChLoop *loop, int fd)
{
    evutil_make_socket_nonblocking(fd);
    return bufferevent_socket_new(ch_loop_peek_base(loop), fd, BEV_OPT_CLOSE_ON_FREE);
}

static void
set_up(Fixture *f, uint32_t max_streams, const ChH2Options *options)
{
    int fds[2];

    *f = (Fixture){.loop = ch_loop_new()};
    g_assert_no_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    f->session = ch_h2_session_new(f->loop, wrap(f->loop, fds[0]), options, &session_events, f);
    f->peer = test_h2_peer_new(wrap(f->loop, fds[1]), max_streams);
}

/* The peer only says @bytes. */
static void
set_up_hostile(Fixture *f, const void *bytes, gsize length)
{
    int fds[2];

    *f = (Fixture){.loop = ch_loop_new()};
    g_assert_no_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    f->session = ch_h2_session_new(f->loop, wrap(f->loop, fds[0]), NULL, &session_events, f);
    f->hostile = wrap(f->loop, fds[1]);
    bufferevent_enable(f->hostile, EV_WRITE);
    bufferevent_write(f->hostile, bytes, length);
}

static void
tear_down(Fixture *f)
{
    g_clear_pointer(&f->session, ch_h2_session_free);
    g_clear_pointer(&f->peer, test_h2_peer_free);
    g_clear_pointer(&f->hostile, bufferevent_free);
    g_clear_error(&f->error);
    ch_loop_free(f->loop);
}

static void
on_headers(
    gpointer data, const ChHttpHeader *headers, gsize n_headers, bool is_trailer, bool end_stream)
{
    Answer *a = data;

    g_assert_false(a->is_done);
    if (is_trailer) {
        a->trailer = g_strdup(ch_http_header_get(headers, n_headers, "x-end"));
    } else {
        g_assert_null(a->status);
        a->status = g_strdup(ch_http_header_get(headers, n_headers, ":status"));
        a->n_headers = n_headers;
    }
    a->ended_with_headers = end_stream;
    if (a->resets_on_headers)
        ch_h2_stream_reset(g_steal_pointer(&a->stream), NGHTTP2_CANCEL);
    free_if_at(a->fixture, "headers");
}

static void
on_data(gpointer data, const uint8_t *bytes, gsize length)
{
    Answer *a = data;

    g_assert_nonnull(a->status);
    g_string_append_len(a->body, (const char *)bytes, (gssize)length);
    if (a->resets_on_data)
        ch_h2_stream_reset(g_steal_pointer(&a->stream), NGHTTP2_CANCEL);
    free_if_at(a->fixture, "data");
}

static void
on_close(gpointer data, uint32_t h2_error, const GError *error)
{
    Answer *a = data;

    g_assert_false(a->is_done);
    g_assert_false(a->fixture->is_closed);
    a->is_done = true;
    a->h2_error = h2_error;
    a->error = error != NULL ? g_error_copy(error) : NULL;
    free_if_at(a->fixture, "close");
}

static const ChH2StreamEvents stream_events = {on_headers, on_data, on_close};

static void
ask(Fixture *f, Answer *a, const char *path, const char *body)
{
    const ChHttpHeader headers[] = {{":method", body != NULL ? "POST" : "GET"},
                                    {":scheme", "http"},
                                    {":authority", "localhost"},
                                    {":path", path},
                                    {"authorization", "Bearer x"}};
    g_autoptr(GBytes) bytes = body != NULL ? g_bytes_new(body, strlen(body)) : NULL;

    a->fixture = f;
    a->body = g_string_new(NULL);
    a->stream =
        ch_h2_session_request(f->session, headers, G_N_ELEMENTS(headers), bytes, &stream_events, a);
}

static void
forget(Answer *a)
{
    g_free(a->status);
    g_free(a->trailer);
    g_string_free(a->body, TRUE);
    g_clear_error(&a->error);
}

/* Answers */

static const struct AnswerCase {
    const char *name;
    const char *path;
    const char *request_body;
    const char *status;
    const char *body;
    int error_code; /* 0: none */
    uint32_t h2_error;
} answer_cases[] = {
    {"plain", "/hello", NULL, "200", "hello", 0, 0},
    {"body-is-sent", "/echo", "some words", "200", "some words", 0, 0},
    {"empty-body-is-sent", "/echo", "", "200", "", 0, 0},
    {"trailers", "/trailers", NULL, "200", "trailers", 0, 0},
    {"headers-only", "/only", NULL, "204", "", 0, 0},
    {"informational-is-skipped", "/early-hint", NULL, "200", "early-hint", 0, 0},
    {"refused-is-unsent", "/reset/7", NULL, NULL, "", CH_HTTP_ERROR_UNSENT, NGHTTP2_REFUSED_STREAM},
    {"cancel", "/reset/8", NULL, NULL, "", CH_HTTP_ERROR_STREAM, NGHTTP2_CANCEL},
    {"reset-without-error", "/reset/0", NULL, NULL, "", CH_HTTP_ERROR_STREAM, 0},
    {"half-an-answer",
     "/half/2",
     NULL,
     "200",
     "part",
     CH_HTTP_ERROR_STREAM,
     NGHTTP2_INTERNAL_ERROR},
    {"refused-after-its-beginning-was-processed",
     "/half/7",
     NULL,
     "200",
     "part",
     CH_HTTP_ERROR_STREAM,
     NGHTTP2_REFUSED_STREAM},
    {"half-without-error", "/half/0", NULL, "200", "part", CH_HTTP_ERROR_STREAM, 0},
};

static void
test_answer(gconstpointer data)
{
    const struct AnswerCase *c = data;
    Fixture f;
    Answer a = {0};

    set_up(&f, 0, NULL);
    ask(&f, &a, c->path, c->request_body);
    g_assert_cmpint(ch_h2_session_n_streams(f.session), ==, 1);
    test_wait_until(f.loop, a.is_done);
    g_assert_cmpstr(a.status, ==, c->status);
    g_assert_cmpstr(a.body->str, ==, c->body);
    g_assert_cmpuint(a.h2_error, ==, c->h2_error);
    if (c->error_code == 0)
        g_assert_no_error(a.error);
    else
        g_assert_error(a.error, CH_HTTP_ERROR, c->error_code);
    g_assert_cmpint(ch_h2_session_n_streams(f.session), ==, 0);
    g_assert_true(f.is_ready);
    g_assert_false(f.is_closed);
    g_assert_true(ch_h2_session_takes_streams(f.session));
    if (g_str_equal(c->path, "/trailers"))
        g_assert_cmpstr(a.trailer, ==, "yes");
    g_assert_cmpint(a.ended_with_headers, ==, a.trailer != NULL || g_str_equal(c->path, "/only"));
    forget(&a);
    tear_down(&f);
}

static void
test_answer_larger_than_windows(void)
{
    Fixture f;
    Answer a = {0};

    set_up(&f, 0, NULL);
    ask(&f, &a, "/big/9000000", NULL);
    test_wait_until(f.loop, a.is_done);
    g_assert_no_error(a.error);
    g_assert_cmpuint(a.body->len, ==, 9000000);
    for (gsize i = 0; i < a.body->len; i += 997)
        g_assert_cmpint(a.body->str[i], ==, 'a' + (int)(i % 26));
    forget(&a);
    tear_down(&f);
}

static void
test_request_larger_than_windows(void)
{
    g_autofree char *body = g_strnfill(3000000, 'b');
    Fixture f;
    Answer a = {0};

    set_up(&f, 0, NULL);
    ask(&f, &a, "/echo", body);
    test_wait_until(f.loop, a.is_done);
    g_assert_no_error(a.error);
    g_assert_cmpstr(a.body->str, ==, body);
    forget(&a);
    tear_down(&f);
}

/* The peer grants a large window and then does not read: what waits here stays small. */
static void
test_output_is_bounded(void)
{
    static const uint8_t settings[] = {0,    0, 6, 4, 0, 0, 0, 0, 0, 0, 4,    0x7f, 0xff, 0xff,
                                       0xff, 0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0,    0,    0};
    g_autofree char *body = g_strnfill(20000000, 'b');
    Fixture f;
    Answer a = {0};
    gsize waiting = 0;
    int fds[2];
    struct bufferevent *bev;

    f = (Fixture){.loop = ch_loop_new()};
    g_assert_no_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    bev = wrap(f.loop, fds[0]);
    f.session = ch_h2_session_new(f.loop, bev, NULL, &session_events, &f);
    f.hostile = wrap(f.loop, fds[1]);
    bufferevent_enable(f.hostile, EV_WRITE);
    bufferevent_write(f.hostile, settings, sizeof settings);
    ask(&f, &a, "/echo", body);
    for (int i = 0; i < 100; i++) {
        test_wait_us(f.loop, 500);
        waiting = MAX(waiting, evbuffer_get_length(bufferevent_get_output(bev)));
    }
    g_assert_cmpuint(waiting, >, 16 * 1024);
    g_assert_cmpuint(waiting, <, 128 * 1024);
    forget(&a);
    tear_down(&f);
}

static void
test_early_answer_ends_the_request(void)
{
    g_autofree char *body = g_strnfill(300000, 'b');
    Fixture f;
    Answer a = {0};

    set_up(&f, 0, NULL);
    ask(&f, &a, "/early", body);
    test_wait_until(f.loop, a.is_done);
    g_assert_no_error(a.error);
    g_assert_cmpstr(a.body->str, ==, "early");
    forget(&a);
    tear_down(&f);
}

static void
test_stream_limit_queues(void)
{
    Fixture f;
    Answer a[20] = {0};

    set_up(&f, 3, NULL); /* which the client does not know yet */
    for (gsize i = 0; i < G_N_ELEMENTS(a); i++)
        ask(&f, &a[i], "/big/70000", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(a); i++) {
        test_wait_until(f.loop, a[i].is_done);
        g_assert_no_error(a[i].error);
        g_assert_cmpuint(a[i].body->len, ==, 70000);
        forget(&a[i]);
    }
    /* how many at a time, depends on whose turn it is */
    g_assert_cmpint(f.peer->max_running, >, 1);
    g_assert_cmpint(f.peer->max_running, <=, 3);
    tear_down(&f);
}

static void
test_no_limit_is_no_limit(void)
{
    Fixture f;
    Answer a[300] = {0};

    set_up(&f, 0, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(a); i++)
        ask(&f, &a[i], "/stall", NULL);
    test_wait_until(f.loop, f.peer->max_running == G_N_ELEMENTS(a));
    for (gsize i = 0; i < G_N_ELEMENTS(a); i++)
        forget(&a[i]);
    tear_down(&f);
}

static void
test_queued_request_is_cancelled(void)
{
    Fixture f;
    Answer running = {0}, queued = {0}, next = {0};

    set_up(&f, 1, NULL);
    test_wait_until(f.loop, f.is_ready);
    ask(&f, &running, "/stall", NULL);
    ask(&f, &queued, "/hello", NULL);
    test_wait_until(f.loop, running.body->len > 0);
    ch_h2_stream_reset(queued.stream, NGHTTP2_CANCEL);
    ch_h2_stream_reset(running.stream, NGHTTP2_CANCEL);
    ask(&f, &next, "/only", NULL);
    test_wait_until(f.loop, next.is_done);
    g_assert_no_error(next.error);
    g_assert_cmpint(f.peer->n_requests, ==, 2);
    g_assert_cmpuint(f.peer->last_reset, ==, NGHTTP2_CANCEL);
    g_assert_false(queued.is_done);
    g_assert_false(running.is_done);
    forget(&running);
    forget(&queued);
    forget(&next);
    tear_down(&f);
}

static void
test_reset_within_callbacks(void)
{
    Fixture f;
    Answer at_headers = {.resets_on_headers = true}, at_data = {.resets_on_data = true};
    Answer next = {0};

    set_up(&f, 0, NULL);
    ask(&f, &at_headers, "/big/100000", NULL);
    ask(&f, &at_data, "/big/100000", NULL);
    test_wait_until(f.loop, f.peer->n_resets == 2);
    ask(&f, &next, "/hello", NULL);
    test_wait_until(f.loop, next.is_done);
    g_assert_false(at_headers.is_done || at_data.is_done);
    g_assert_cmpuint(at_headers.body->len, ==, 0);
    g_assert_cmpint(ch_h2_session_n_streams(f.session), ==, 0);
    forget(&at_headers);
    forget(&at_data);
    forget(&next);
    tear_down(&f);
}

/* Each with streams that run, that wait for their turn, and bytes of the peer's still to be read.
 */
static const struct FreeCase {
    const char *callback;
    const char *path; /* of the request that leads there */
} free_cases[] = {
    {"ready", "/hello"},
    {"headers", "/big/100000"},
    {"data", "/big/100000"},
    {"close", "/big/100000"},
    {"close", "/goaway"}, /* of one that was never sent */
    {"goaway", "/goaway"},
    {"closed", "/close"},
};

static void
test_free_within_callback(gconstpointer data)
{
    const struct FreeCase *c = data;
    Fixture f;
    Answer a = {0}, others[4] = {0};
    guint n_done;

    set_up(&f, 3, NULL);
    ask(&f, &others[0], "/stall", NULL);
    ask(&f, &others[1], "/hang", NULL);
    f.frees_at = c->callback;
    ask(&f, &a, c->path, NULL);
    ask(&f, &others[2], "/hello", NULL);
    ask(&f, &others[3], "/hello", NULL);
    test_wait_until(f.loop, f.session == NULL);
    n_done = a.is_done;
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        n_done += others[i].is_done;
    test_wait_us(f.loop, 1000);
    g_assert_cmpuint(n_done, ==, g_str_equal(c->callback, "close") ? 1 : f.is_closed ? 5 : 0);
    forget(&a);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        forget(&others[i]);
    tear_down(&f);
}

/* The connection's end */

static void
test_goaway_lets_streams_finish(void)
{
    Fixture f;
    Answer running = {0}, unsent = {0}, stalled = {0};

    set_up(&f, 2, NULL);
    test_wait_until(f.loop, f.is_ready);
    ask(&f, &stalled, "/stall", NULL);
    ask(&f, &running, "/goaway", NULL);
    ask(&f, &unsent, "/hello", NULL);
    test_wait_until(f.loop, running.is_done && unsent.is_done);
    g_assert_true(f.got_goaway);
    g_assert_false(ch_h2_session_takes_streams(f.session));
    g_assert_no_error(running.error);
    g_assert_cmpstr(running.body->str, ==, "bye" /* after the GOAWAY */);
    g_assert_error(unsent.error, CH_HTTP_ERROR, CH_HTTP_ERROR_UNSENT);
    g_assert_false(stalled.is_done);
    g_assert_false(f.is_closed);
    ch_h2_stream_reset(stalled.stream, NGHTTP2_CANCEL); /* the last one: the session ends */
    test_wait_until(f.loop, f.is_closed);
    g_assert_no_error(f.error);
    forget(&stalled);
    forget(&running);
    forget(&unsent);
    tear_down(&f);
}

static void
test_eof_in_mid_answer(void)
{
    Fixture f;
    Answer a = {0}, closer = {0};

    set_up(&f, 0, NULL);
    f.frees_at = "closed";
    ask(&f, &a, "/stall", NULL);
    test_wait_until(f.loop, a.body->len > 0);
    ask(&f, &closer, "/close", NULL);
    test_wait_until(f.loop, f.is_closed);
    g_assert_true(a.is_done && closer.is_done);
    g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_EOF);
    g_assert_cmpstr(a.error->message, ==, "EOF");
    g_assert_error(f.error, CH_HTTP_ERROR, CH_HTTP_ERROR_EOF);
    forget(&a);
    forget(&closer);
    tear_down(&f);
}

static void
test_idle_close_is_orderly(void)
{
    Fixture f;

    set_up(&f, 0, NULL);
    test_wait_until(f.loop, f.peer->n_settings_acks == 1); /* else unread bytes reset it */
    g_clear_pointer(&f.peer->bev, bufferevent_free);
    test_wait_until(f.loop, f.is_closed);
    g_assert_no_error(f.error);
    g_assert_false(ch_h2_session_takes_streams(f.session));
    tear_down(&f);
}

/* Closing with unread bytes makes the kernel say ECONNRESET. */
static void
test_reset_connection(void)
{
    Fixture f;
    Answer a = {0};

    set_up_hostile(&f, "", 0);
    ask(&f, &a, "/hello", NULL);
    test_wait_us(f.loop, 10000); /* the request leaves */
    g_clear_pointer(&f.hostile, bufferevent_free);
    test_wait_until(f.loop, f.is_closed);
    g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_RESET);
    g_assert_cmpstr(a.error->message, ==, "connection reset by peer");
    forget(&a);
    tear_down(&f);
}

/* The peer reads no more, and says nothing either: what has not left goes to somebody else. */
static void
test_peer_that_reads_no_more(void)
{
    Fixture f;
    Answer a = {0}, waits = {0};

    set_up_hostile(&f, "", 0);
    ask(&f, &a, "/hello", NULL);
    ask(&f, &waits, "/hello", NULL); /* for the first SETTINGS */
    g_assert_no_errno(shutdown(bufferevent_getfd(f.hostile), SHUT_RD));
    test_wait_until(f.loop, f.got_goaway);
    g_assert_false(ch_h2_session_takes_streams(f.session));
    g_assert_false(a.is_done); /* its answer may be on the way */
    g_assert_true(waits.is_done);
    g_assert_error(waits.error, CH_HTTP_ERROR, CH_HTTP_ERROR_UNSENT);
    g_clear_pointer(&f.hostile, bufferevent_free);
    test_wait_until(f.loop, f.is_closed);
    g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_EOF);
    forget(&a);
    forget(&waits);
    tear_down(&f);
}

/* Every frame in pieces of one byte. */
static void
test_answer_byte_by_byte(void)
{
    static const uint8_t answer[] = "\0\0\0\4\0\0\0\0\0"            /* SETTINGS */
                                    "\0\0\1\1\4\0\0\0\1\x88"        /* HEADERS :status 200 */
                                    "\0\0\5\0\0\0\0\0\1hello"       /* DATA */
                                    "\0\0\5\0\x9\0\0\0\1\4\0\0\0\0" /* padding only, END_STREAM */
                                    "\0\0\x8\6\0\0\0\0\0pingping";  /* PING */
    Fixture f;
    Answer a = {0};

    set_up_hostile(&f, "", 0);
    ask(&f, &a, "/hello", NULL);
    for (gsize i = 0; i < sizeof answer - 1; i++) {
        test_wait_us(f.loop, 0);
        g_assert_cmpint(send(bufferevent_getfd(f.hostile), answer + i, 1, 0), ==, 1);
        event_base_loop(ch_loop_peek_base(f.loop), EVLOOP_NONBLOCK);
    }
    test_wait_until(f.loop, a.is_done);
    g_assert_no_error(a.error);
    g_assert_cmpstr(a.body->str, ==, "hello");
    g_assert_true(ch_h2_session_takes_streams(f.session));
    forget(&a);
    tear_down(&f);
}

static void
test_pings_keep_a_live_peer(void)
{
    const ChH2Options options = {.ping_idle_us = 3000, .ping_timeout_us = 5000000};
    Fixture f;

    set_up(&f, 0, &options);
    test_wait_us(f.loop, 50000);
    g_assert_false(f.is_closed);
    tear_down(&f);
}

static void
test_ping_finds_a_dead_peer(void)
{
    const ChH2Options options = {.ping_idle_us = 10000, .ping_timeout_us = 300000};
    Fixture f;
    Answer a = {0};

    set_up(&f, 0, &options);
    test_wait_until(f.loop, f.is_ready);
    bufferevent_disable(f.peer->bev, EV_READ);
    ask(&f, &a, "/hello", NULL);
    test_wait_until(f.loop, f.is_closed);
    g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_RESET);
    g_assert_error(f.error, CH_HTTP_ERROR, CH_HTTP_ERROR_RESET);
    forget(&a);
    tear_down(&f);
}

/* As grpc-go does: larger and smaller windows while a body is under way. */
static void
test_settings_change_in_mid_stream(void)
{
    g_autofree char *body = g_strnfill(2000000, 'b');
    const nghttp2_settings_entry larger = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 262140};
    const nghttp2_settings_entry smaller = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100};
    Fixture f;
    Answer a = {0};

    set_up(&f, 0, NULL);
    ask(&f, &a, "/echo", body);
    test_wait_until(f.loop, f.peer->n_requests == 1);
    nghttp2_submit_settings(f.peer->ng, NGHTTP2_FLAG_NONE, &larger, 1);
    test_h2_peer_flush(f.peer);
    test_wait_until(f.loop, f.peer->n_settings_acks == 2);
    nghttp2_submit_settings(f.peer->ng, NGHTTP2_FLAG_NONE, &smaller, 1);
    test_h2_peer_flush(f.peer);
    test_wait_until(f.loop, a.is_done);
    g_assert_no_error(a.error);
    g_assert_cmpuint(a.body->len, ==, 2000000);
    g_assert_cmpint(f.peer->n_settings_acks, ==, 3);
    forget(&a);
    tear_down(&f);
}

/* Hostile peers */

static void
test_header_list_limit(void)
{
    Fixture f;
    Answer large = {0}, within = {0};

    set_up(&f, 0, NULL);
    ask(&f, &large, "/many/1100", NULL); /* compresses to almost nothing */
    ask(&f, &within, "/many/900", NULL);
    test_wait_until(f.loop, large.is_done && within.is_done);
    g_assert_error(large.error, CH_HTTP_ERROR, CH_HTTP_ERROR_LIMIT);
    g_assert_null(large.status);
    g_assert_no_error(within.error);
    g_assert_cmpuint(within.n_headers, ==, 901);
    g_assert_false(f.is_closed);
    forget(&large);
    forget(&within);
    tear_down(&f);
}

static void
append_frame(
    GByteArray *out, uint8_t type, uint8_t flags, uint8_t stream, const void *bytes, gsize length)
{
    const uint8_t head[] = {(uint8_t)(length >> 16),
                            (uint8_t)(length >> 8),
                            (uint8_t)length,
                            type,
                            flags,
                            0,
                            0,
                            0,
                            stream};

    g_byte_array_append(out, head, sizeof head);
    if (length > 0)
        g_byte_array_append(out, bytes, (guint)length);
}

/* Feeds @bytes to a session with one request; they must end it. */
static void
expect_end(const void *bytes, gsize length, int code)
{
    Fixture f;
    Answer a = {0};

    set_up_hostile(&f, bytes, length);
    ask(&f, &a, "/hello", NULL);
    test_wait_until(f.loop, f.is_closed);
    g_assert_error(a.error, CH_HTTP_ERROR, code);
    g_assert_error(f.error, CH_HTTP_ERROR, code);
    forget(&a);
    tear_down(&f);
}

static void
test_garbage(void)
{
    g_autofree char *noise = g_malloc(100000);

    for (gsize i = 0; i < 100000; i++)
        noise[i] = (char)g_test_rand_int();
    expect_end("HTTP/1.1 400 Bad Request\r\n\r\n", 28, CH_HTTP_ERROR_PROTOCOL);
    noise[0] = 0x7f; /* a frame of 8 MiB */
    expect_end(noise, 100000, CH_HTTP_ERROR_PROTOCOL);
}

/* Half a frame, and then the end. */
static void
test_truncated_frame(void)
{
    Fixture f;
    Answer a = {0};

    set_up_hostile(&f, "\0\0\6\4\0\0\0\0\0\0", 10);
    ask(&f, &a, "/hello", NULL);
    test_wait_us(f.loop, 10000);
    g_assert_false(f.is_closed); /* it may yet come */
    g_assert_no_errno(shutdown(bufferevent_getfd(f.hostile), SHUT_WR));
    test_wait_until(f.loop, f.is_closed);
    g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_EOF);
    forget(&a);
    tear_down(&f);
}

static void
test_continuation_flood(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    uint8_t fragment[1000];

    memset(fragment, 0x88, sizeof fragment); /* ":status: 200" again and again */
    append_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    append_frame(bytes, NGHTTP2_HEADERS, 0, 1, "\x88", 1);
    for (int i = 0; i < 10000; i++)
        append_frame(bytes, NGHTTP2_CONTINUATION, 0, 1, fragment, sizeof fragment);
    expect_end(bytes->data, bytes->len, CH_HTTP_ERROR_PROTOCOL);
}

/* Each wants an acknowledgement, which nobody reads. */
static void
test_settings_flood(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    for (int i = 0; i < 100000; i++)
        append_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    expect_end(bytes->data, bytes->len, CH_HTTP_ERROR_PROTOCOL);
}

static void
test_ping_flood(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    append_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    for (int i = 0; i < 100000; i++)
        append_frame(bytes, NGHTTP2_PING, 0, 0, "12345678", 8);
    expect_end(bytes->data, bytes->len, CH_HTTP_ERROR_PROTOCOL);
}

static void
test_push_is_not_taken(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    Fixture f;
    Answer a = {0};

    append_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    append_frame(bytes, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    append_frame(bytes, NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, "\0\0\0\2\x82", 5);
    set_up_hostile(&f, "", 0);
    ask(&f, &a, "/hello", NULL);
    test_wait_us(f.loop, 10000); /* the request leaves first */
    bufferevent_write(f.hostile, bytes->data, bytes->len);
    test_wait_until(f.loop, f.is_closed);
    g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_PROTOCOL);
    forget(&a);
    tear_down(&f);
}

/* (A stream's window cannot be overrun: what arrives is delivered and given back at once.) */
static void
test_data_on_idle_stream(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    uint8_t chunk[16384] = {0};

    append_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    append_frame(bytes, NGHTTP2_DATA, 0, 3, chunk, sizeof chunk);
    expect_end(bytes->data, bytes->len, CH_HTTP_ERROR_PROTOCOL);
}

static void
test_data_without_headers(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    Fixture f;
    Answer a = {0};

    append_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    append_frame(bytes, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "x", 1);
    set_up_hostile(&f, "", 0);
    ask(&f, &a, "/hello", NULL);
    test_wait_us(f.loop, 10000); /* the request leaves first */
    bufferevent_write(f.hostile, bytes->data, bytes->len);
    test_wait_until(f.loop, a.is_done);
    g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_PROTOCOL);
    g_assert_cmpuint(a.body->len, ==, 0);
    forget(&a);
    tear_down(&f);
}

/* A window that grows beyond 2^31-1. */
static void
test_window_overflow(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    append_frame(bytes, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    append_frame(bytes, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
    append_frame(bytes, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
    expect_end(bytes->data, bytes->len, CH_HTTP_ERROR_PROTOCOL);
}

/* The send buffer is every session's of the loop; what another one does with it must not show. */
static void
test_preface_survives_another_session(void)
{
    Fixture f;
    Answer a = {0};

    set_up(&f, 100, NULL);
    memset(ch_loop_peek_scratch(f.loop), 0xff, CH_LOOP_SCRATCH_BYTES);
    ask(&f, &a, "/big/10", NULL);
    test_wait_until(f.loop, a.is_done);
    g_assert_no_error(a.error);
    g_assert_cmpuint(a.body->len, ==, 10);
    forget(&a);
    tear_down(&f);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(answer_cases); i++) {
        g_autofree char *path = g_strdup_printf("/h2-session/answer/%s", answer_cases[i].name);

        g_test_add_data_func(path, &answer_cases[i], test_answer);
    }
    g_test_add_func("/h2-session/preface-survives-another-session",
                    test_preface_survives_another_session);
    g_test_add_func("/h2-session/answer-larger-than-windows", test_answer_larger_than_windows);
    g_test_add_func("/h2-session/request-larger-than-windows", test_request_larger_than_windows);
    g_test_add_func("/h2-session/output-is-bounded", test_output_is_bounded);
    g_test_add_func("/h2-session/early-answer-ends-the-request",
                    test_early_answer_ends_the_request);
    g_test_add_func("/h2-session/stream-limit-queues", test_stream_limit_queues);
    g_test_add_func("/h2-session/no-limit-is-no-limit", test_no_limit_is_no_limit);
    g_test_add_func("/h2-session/queued-request-is-cancelled", test_queued_request_is_cancelled);
    g_test_add_func("/h2-session/reset-within-callbacks", test_reset_within_callbacks);
    for (gsize i = 0; i < G_N_ELEMENTS(free_cases); i++) {
        g_autofree char *path = g_strdup_printf(
            "/h2-session/free-within-%s%s", free_cases[i].callback, free_cases[i].path);

        g_test_add_data_func(path, &free_cases[i], test_free_within_callback);
    }
    g_test_add_func("/h2-session/goaway-lets-streams-finish", test_goaway_lets_streams_finish);
    g_test_add_func("/h2-session/eof-in-mid-answer", test_eof_in_mid_answer);
    g_test_add_func("/h2-session/idle-close-is-orderly", test_idle_close_is_orderly);
    g_test_add_func("/h2-session/reset-connection", test_reset_connection);
    g_test_add_func("/h2-session/peer-that-reads-no-more", test_peer_that_reads_no_more);
    g_test_add_func("/h2-session/answer-byte-by-byte", test_answer_byte_by_byte);
    g_test_add_func("/h2-session/pings-keep-a-live-peer", test_pings_keep_a_live_peer);
    g_test_add_func("/h2-session/ping-finds-a-dead-peer", test_ping_finds_a_dead_peer);
    g_test_add_func("/h2-session/settings-change-in-mid-stream",
                    test_settings_change_in_mid_stream);
    g_test_add_func("/h2-session/hostile/header-list-limit", test_header_list_limit);
    g_test_add_func("/h2-session/hostile/garbage", test_garbage);
    g_test_add_func("/h2-session/hostile/truncated-frame", test_truncated_frame);
    g_test_add_func("/h2-session/hostile/continuation-flood", test_continuation_flood);
    g_test_add_func("/h2-session/hostile/settings-flood", test_settings_flood);
    g_test_add_func("/h2-session/hostile/ping-flood", test_ping_flood);
    g_test_add_func("/h2-session/hostile/push-is-not-taken", test_push_is_not_taken);
    g_test_add_func("/h2-session/hostile/data-on-idle-stream", test_data_on_idle_stream);
    g_test_add_func("/h2-session/hostile/data-without-headers", test_data_without_headers);
    g_test_add_func("/h2-session/hostile/window-overflow", test_window_overflow);
    return g_test_run();
}
