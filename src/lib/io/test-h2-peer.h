/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-h2-peer: an HTTP/2 server (nghttp2's own server side) that behaves as a request's path says.
 * For the tests of this room; lives on the same loop as the client.
 *
 *   /hello      200, "hello"              /echo       200, the request's body
 *   /big/N      200, N bytes              /hang       nothing
 *   /stall      200, "part", then nothing /trailers   200, "trailers", trailer "x-end: yes"
 *   /only       204 with END_STREAM       /early-hint 103 before 200
 *   /reset/N    RST_STREAM(N)             /half/N     200, "part", RST_STREAM(N)
 *   /early      200, "early" without reading the request's body
 *   /many/N     200 with N headers of 1000 bytes
 *   /goaway     GOAWAY, then 200 "bye"    /close      closes the connection
 */

#pragma once

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <string.h>

typedef struct {
    struct bufferevent *bev;
    nghttp2_session *ng;
    int n_requests; /* HEADERS that came */
    int n_running;
    int max_running;
    uint32_t last_reset; /* code of the client's last RST_STREAM */
    int n_resets;
    int n_settings_acks;
    bool is_goaway;         /* the client said GOAWAY */
    bool is_closed;         /* the connection ended */
    uint32_t goaway_code;   /* the client's */
    GPtrArray *paths;       /* in the order of arrival */
    gsize max_output_bytes; /* the most that waited here */
} TestH2Peer;

typedef struct {
    char *path;
    GString *in;
    GString *out;
    gsize sent;
    bool stalls; /* out is not the whole answer */
    bool has_trailer;
} TestH2PeerStream;

static inline void
test_h2_peer_stream_free(TestH2PeerStream *stream)
{
    g_free(stream->path);
    g_string_free(stream->in, TRUE);
    g_string_free(stream->out, TRUE);
    g_free(stream);
}

static inline int
test_h2_peer_number(const char *text)
{
    return (int)g_ascii_strtoll(text, NULL, 10); /* 0 where a path has none */
}

static inline void
test_h2_peer_flush(TestH2Peer *peer)
{
    const uint8_t *bytes;
    ssize_t length;

    while (peer->bev != NULL && (length = nghttp2_session_mem_send(peer->ng, &bytes)) > 0)
        bufferevent_write(peer->bev, bytes, (size_t)length);
    if (peer->bev != NULL)
        peer->max_output_bytes =
            MAX(peer->max_output_bytes, evbuffer_get_length(bufferevent_get_output(peer->bev)));
}

#define TEST_NV(name, value)                                                                       \
    {                                                                                              \
        (uint8_t *)(name), (uint8_t *)(value), strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE   \
    }

static inline ssize_t
test_h2_peer_read(nghttp2_session *ng,
                  int32_t id,
                  uint8_t *buffer,
                  size_t length,
                  uint32_t *flags,
                  nghttp2_data_source *source,
                  void *data)
{
    TestH2PeerStream *stream = source->ptr;
    const gsize take = MIN(length, stream->out->len - stream->sent);

    memcpy(buffer, stream->out->str + stream->sent, take);
    stream->sent += take;
    if (stream->sent < stream->out->len)
        return (ssize_t)take;
    if (stream->stalls)
        return take > 0 ? (ssize_t)take : NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->has_trailer) {
        const nghttp2_nv trailer = TEST_NV("x-end", "yes");

        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(ng, id, &trailer, 1);
    }
    return (ssize_t)take;
}

static inline void
test_h2_peer_answer(TestH2Peer *peer, int32_t id, TestH2PeerStream *stream)
{
    const nghttp2_nv ok = TEST_NV(":status", "200");
    const nghttp2_data_provider provider = {{.ptr = stream}, test_h2_peer_read};

    nghttp2_submit_response(peer->ng, id, &ok, 1, &provider);
}

static inline void
test_h2_peer_many_headers(TestH2Peer *peer, int32_t id, int n)
{
    g_autofree nghttp2_nv *nvs = g_new0(nghttp2_nv, n + 1);
    g_autofree char *value = g_strnfill(1000, 'v');
    const nghttp2_nv ok = TEST_NV(":status", "200");
    const nghttp2_nv one = TEST_NV("x-many", value);

    nvs[0] = ok;
    for (int i = 1; i <= n; i++)
        nvs[i] = one;
    nghttp2_submit_response(peer->ng, id, nvs, (size_t)n + 1, NULL);
}

/* Once a request is complete (or at once, for the paths that do not wait). */
static inline void
test_h2_peer_act(TestH2Peer *peer, int32_t id, TestH2PeerStream *stream)
{
    const char *path = stream->path;
    const char *slash = strrchr(path, '/');
    const int n = test_h2_peer_number(slash + 1);
    const nghttp2_nv no_content = TEST_NV(":status", "204");
    const nghttp2_nv hint = TEST_NV(":status", "103");

    if (g_str_has_prefix(path, "/big/")) {
        for (int i = 0; i < n; i++)
            g_string_append_c(stream->out, (char)('a' + i % 26));
    } else if (g_str_equal(path, "/echo")) {
        g_string_append_len(stream->out, stream->in->str, (gssize)stream->in->len);
    } else if (g_str_equal(path, "/hang")) {
        return;
    } else if (g_str_equal(path, "/stall") || g_str_has_prefix(path, "/half/")) {
        g_string_append(stream->out, "part");
        stream->stalls = true;
    } else if (g_str_equal(path, "/only")) {
        nghttp2_submit_headers(peer->ng, NGHTTP2_FLAG_END_STREAM, id, NULL, &no_content, 1, NULL);
        return;
    } else if (g_str_has_prefix(path, "/reset/")) {
        nghttp2_submit_rst_stream(peer->ng, NGHTTP2_FLAG_NONE, id, (uint32_t)n);
        return;
    } else if (g_str_has_prefix(path, "/many/")) {
        test_h2_peer_many_headers(peer, id, n);
        return;
    } else if (g_str_equal(path, "/goaway")) {
        nghttp2_submit_goaway(peer->ng, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR, NULL, 0);
        g_string_append(stream->out, "bye");
    } else if (g_str_equal(path, "/close")) {
        g_clear_pointer(&peer->bev, bufferevent_free);
        return;
    } else {
        stream->has_trailer = g_str_equal(path, "/trailers");
        if (g_str_equal(path, "/early-hint"))
            nghttp2_submit_headers(peer->ng, NGHTTP2_FLAG_NONE, id, NULL, &hint, 1, NULL);
        g_string_append(stream->out, slash + 1);
    }
    test_h2_peer_answer(peer, id, stream);
}

static inline int
test_h2_peer_begin(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    TestH2Peer *peer = data;
    TestH2PeerStream *stream = g_new0(TestH2PeerStream, 1);

    stream->in = g_string_new(NULL);
    stream->out = g_string_new(NULL);
    nghttp2_session_set_stream_user_data(ng, frame->hd.stream_id, stream);
    peer->n_requests++;
    peer->n_running++;
    peer->max_running = MAX(peer->max_running, peer->n_running);
    return 0;
}

static inline int
test_h2_peer_header(nghttp2_session *ng,
                    const nghttp2_frame *frame,
                    const uint8_t *name,
                    size_t name_length,
                    const uint8_t *value,
                    size_t value_length,
                    uint8_t flags,
                    void *data)
{
    TestH2Peer *peer = data;
    TestH2PeerStream *stream = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);

    if (g_str_equal((const char *)name, ":path")) {
        stream->path = g_strndup((const char *)value, value_length);
        g_ptr_array_add(peer->paths, g_strdup(stream->path));
    }
    return 0;
}

static inline int
test_h2_peer_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    TestH2Peer *peer = data;
    TestH2PeerStream *stream = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK))
        peer->n_settings_acks++;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        peer->last_reset = frame->rst_stream.error_code;
        peer->n_resets++;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        peer->is_goaway = true;
        peer->goaway_code = frame->goaway.error_code;
    }
    if (stream == NULL || stream->path == NULL)
        return 0;
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && end) {
        if (!g_str_equal(stream->path, "/early"))
            test_h2_peer_act(peer, frame->hd.stream_id, stream);
    } else if (frame->hd.type == NGHTTP2_HEADERS && g_str_equal(stream->path, "/early")) {
        test_h2_peer_act(peer, frame->hd.stream_id, stream);
    }
    return 0;
}

static inline int
test_h2_peer_chunk(
    nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *bytes, size_t length, void *data)
{
    TestH2PeerStream *stream = nghttp2_session_get_stream_user_data(ng, id);

    if (stream != NULL)
        g_string_append_len(stream->in, (const char *)bytes, (gssize)length);
    return 0;
}

static inline int
test_h2_peer_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *data)
{
    TestH2PeerStream *stream = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_DATA && stream != NULL &&
        g_str_has_prefix(stream->path, "/half/"))
        nghttp2_submit_rst_stream(ng,
                                  NGHTTP2_FLAG_NONE,
                                  frame->hd.stream_id,
                                  (uint32_t)test_h2_peer_number(stream->path + 6));
    return 0;
}

static inline int
test_h2_peer_close(nghttp2_session *ng, int32_t id, uint32_t code, void *data)
{
    TestH2Peer *peer = data;
    TestH2PeerStream *stream = nghttp2_session_get_stream_user_data(ng, id);

    peer->n_running--;
    if (stream != NULL)
        test_h2_peer_stream_free(stream);
    nghttp2_session_set_stream_user_data(ng, id, NULL);
    return 0;
}

static inline void
test_h2_peer_readable(struct bufferevent *bev, void *data)
{
    TestH2Peer *peer = data;
    struct evbuffer *input = bufferevent_get_input(bev);
    const gsize length = evbuffer_get_length(input);
    const ssize_t taken = nghttp2_session_mem_recv(peer->ng, evbuffer_pullup(input, -1), length);

    g_assert_cmpint(taken, ==, (gssize)length);
    if (peer->bev == NULL)
        return; /* /close */
    evbuffer_drain(input, length);
    test_h2_peer_flush(peer);
}

static inline void
test_h2_peer_event(struct bufferevent *bev, short what, void *data)
{
    TestH2Peer *peer = data;

    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
        peer->is_closed = true;
        bufferevent_disable(bev, EV_READ | EV_WRITE);
    }
}

/* @bev: (transfer full). @max_streams: 0: not announced */
static inline TestH2Peer *
test_h2_peer_new(struct bufferevent *bev, uint32_t max_streams)
{
    TestH2Peer *peer = g_new0(TestH2Peer, 1);
    const nghttp2_settings_entry limit = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max_streams};
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;

    peer->bev = bev;
    peer->paths = g_ptr_array_new_with_free_func(g_free);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, test_h2_peer_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, test_h2_peer_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, test_h2_peer_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, test_h2_peer_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, test_h2_peer_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, test_h2_peer_close);
    nghttp2_option_new(&option);
    nghttp2_option_set_max_send_header_block_length(option, 4 << 20);
    nghttp2_session_server_new2(&peer->ng, callbacks, peer, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(peer->ng, NGHTTP2_FLAG_NONE, &limit, max_streams > 0 ? 1 : 0);
    bufferevent_setcb(bev, test_h2_peer_readable, NULL, test_h2_peer_event, peer);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    test_h2_peer_flush(peer);
    return peer;
}

static inline void
test_h2_peer_free(TestH2Peer *peer)
{
    nghttp2_stream *root = nghttp2_session_get_root_stream(peer->ng);

    for (nghttp2_stream *s = nghttp2_stream_get_first_child(root); s != NULL;
         s = nghttp2_stream_get_next_sibling(s)) {
        TestH2PeerStream *stream =
            nghttp2_session_get_stream_user_data(peer->ng, nghttp2_stream_get_stream_id(s));

        if (stream != NULL)
            test_h2_peer_stream_free(stream);
    }
    nghttp2_session_del(peer->ng);
    g_clear_pointer(&peer->bev, bufferevent_free);
    g_ptr_array_unref(peer->paths);
    g_free(peer);
}
