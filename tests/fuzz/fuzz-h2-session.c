/* SPDX-License-Identifier: Apache-2.0 */

/* The bytes of an HTTP/2 server, told to a client session with three requests under way. Each
 * request ends at most once, and the session after all of them. */

#include "lib/io/h2-session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    guint n_ended;
    bool is_closed;
} Seen;

static void
on_session_event(gpointer data)
{
    const Seen *seen = data;

    g_assert_false(seen->is_closed);
}

static void
on_closed(gpointer data, const GError *error)
{
    Seen *seen = data;

    g_assert_false(seen->is_closed);
    g_assert_cmpuint(seen->n_ended, ==, 3);
    seen->is_closed = true;
}

static void
on_headers(
    gpointer data, const ChHttpHeader *headers, gsize n_headers, bool is_trailer, bool end_stream)
{
    if (!is_trailer) /* http-client counts on it */
        g_assert_cmpstr(headers[0].name, ==, ":status");
}

static void
on_data(gpointer data, const uint8_t *bytes, gsize length)
{
}

static void
on_close(gpointer data, uint32_t h2_error, const GError *error)
{
    Seen *seen = data;

    g_assert_false(seen->is_closed);
    seen->n_ended++;
    g_assert_cmpuint(seen->n_ended, <=, 3);
}

static void
ask(ChH2Session *session, Seen *seen, GBytes *body)
{
    static const ChH2StreamEvents events = {on_headers, on_data, on_close};
    static const ChHttpHeader headers[] = {
        {":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}};

    ch_h2_session_request(session, headers, G_N_ELEMENTS(headers), body, &events, seen);
}

/* Everything that is due; nothing waits for a socket or a clock. */
static void
turn(ChLoop *loop)
{
    for (int i = 0; i < 10; i++)
        event_base_loop(ch_loop_peek_base(loop), EVLOOP_NONBLOCK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ChH2SessionEvents events = {on_session_event, on_session_event, on_closed};
    static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    g_autoptr(ChLoop) loop = ch_loop_new();
    g_autoptr(GBytes) body = g_bytes_new_static("body", 4);
    struct bufferevent *pair[2];
    ChH2Session *session;
    Seen seen = {0};

    bufferevent_pair_new(ch_loop_peek_base(loop), BEV_OPT_CLOSE_ON_FREE, pair);
    bufferevent_enable(pair[1], EV_READ | EV_WRITE);
    session = ch_h2_session_new(loop, pair[0], NULL, &events, &seen);
    ask(session, &seen, NULL);
    ask(session, &seen, body);
    ask(session, &seen, NULL);
    bufferevent_write(pair[1], settings, sizeof settings); /* which lets all three go */
    turn(loop);
    bufferevent_write(pair[1], data, size);
    turn(loop);
    ch_h2_session_free(session);
    bufferevent_free(pair[1]);
    turn(loop);
    return 0;
}
