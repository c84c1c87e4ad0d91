/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-peer: the other end of a connection under test: nghttp2 on a plain socket, without checks of
 * its own, that gathers what it hears. Turned by hand together with the loop.
 */

#pragma once

#include <event2/event.h>
#include <nghttp2/nghttp2.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/io/loop.h"

#define DEADLINE_US (60 * CH_SECOND_US) /* of what is to come; a busy machine is slow */

/* The first member of a test's fixture, which is what nghttp2's callbacks get. */
typedef struct {
    ChLoop *loop; /* owned, as is all of this */
    int fd;
    nghttp2_session *session;
    GString *headers; /* "name: value" a line, of all blocks */
    GByteArray *data; /* of all DATA frames */
    bool has_eof;
} TestPeer;

static inline ssize_t
test_peer_on_send(
    nghttp2_session *session, const uint8_t *bytes, size_t length, int flags, void *data)
{
    const TestPeer *peer = data;
    const ssize_t n = send(peer->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

    return n >= 0 ? n : NGHTTP2_ERR_WOULDBLOCK;
}

static inline ssize_t
test_peer_on_recv(nghttp2_session *session, uint8_t *buffer, size_t length, int flags, void *data)
{
    TestPeer *peer = data;
    const ssize_t n = recv(peer->fd, buffer, length, MSG_DONTWAIT);

    peer->has_eof |= n == 0;
    if (n > 0)
        return n;
    return n == 0 ? NGHTTP2_ERR_EOF : NGHTTP2_ERR_WOULDBLOCK;
}

static inline int
test_peer_on_header(nghttp2_session *session,
                    const nghttp2_frame *frame,
                    const uint8_t *name,
                    size_t name_length,
                    const uint8_t *value,
                    size_t value_length,
                    uint8_t flags,
                    void *data)
{
    TestPeer *peer = data;

    g_string_append_printf(peer->headers,
                           "%.*s: %.*s\n",
                           (int)name_length,
                           (const char *)name,
                           (int)value_length,
                           (const char *)value);
    return 0;
}

static inline int
test_peer_on_data(nghttp2_session *session,
                  uint8_t flags,
                  int32_t stream_id,
                  const uint8_t *bytes,
                  size_t length,
                  void *data)
{
    TestPeer *peer = data;

    g_byte_array_append(peer->data, bytes, (guint)length);
    return 0;
}

/* @peer: the first member of a fixture. @on_close: (nullable)
 * Returns: the descriptor of the end under test */
static inline int
test_peer_open(TestPeer *peer,
               bool is_server,
               nghttp2_on_frame_recv_callback on_frame,
               nghttp2_on_stream_close_callback on_close)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    *peer = (TestPeer){.loop = ch_loop_new(),
                       .fd = fds[1],
                       .headers = g_string_new(NULL),
                       .data = g_byte_array_new()};
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, test_peer_on_send);
    nghttp2_session_callbacks_set_recv_callback(callbacks, test_peer_on_recv);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, test_peer_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, test_peer_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option_new(&option);
    nghttp2_option_set_no_http_messaging(option, 1);
    if (is_server)
        nghttp2_session_server_new2(&peer->session, callbacks, peer, option);
    else
        nghttp2_session_client_new2(&peer->session, callbacks, peer, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, NULL, 0);
    return fds[0];
}

static inline void
test_peer_close(TestPeer *peer)
{
    ch_loop_free(peer->loop);
    nghttp2_session_del(peer->session);
    close(peer->fd);
    g_string_free(peer->headers, TRUE);
    g_byte_array_unref(peer->data);
}

/* Only the end under test. */
static inline void
test_peer_turn_loop(TestPeer *peer)
{
    event_base_loop(ch_loop_peek_base(peer->loop), EVLOOP_NONBLOCK);
}

static inline void
test_peer_turn(TestPeer *peer)
{
    (void)nghttp2_session_send(peer->session);
    test_peer_turn_loop(peer);
    (void)nghttp2_session_recv(peer->session);
}

static inline void
test_peer_run_until(TestPeer *peer, const bool *flag)
{
    const int64_t deadline_us = ch_time_now_us() + DEADLINE_US;

    while (!*flag) {
        g_assert_cmpint(ch_time_now_us(), <, deadline_us);
        test_peer_turn(peer);
    }
}

/* (transfer full): nghttp2_nv into @lines, each "name: value" */
static inline GArray *
test_peer_parse_headers(GStrv lines)
{
    GArray *nvs = g_array_new(FALSE, FALSE, sizeof(nghttp2_nv));

    for (gsize i = 0; lines[i] != NULL; i++) {
        char *separator = strstr(lines[i], ": ");
        const nghttp2_nv nv = {(uint8_t *)lines[i],
                               (uint8_t *)separator + 2,
                               (size_t)(separator - lines[i]),
                               strlen(separator + 2),
                               0};

        g_array_append_val(nvs, nv);
    }
    return nvs;
}
