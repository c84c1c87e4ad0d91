/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-server: a scripted HTTP/1.1 server on the tested loop, which can also break the rules; and a
 * clock that a test controls.
 */

#pragma once

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/io/test-wait.h"
#include "lib/kube/client.h"

/* ---- clock: timers run at once, and the time that they stand for has passed ---- */

typedef struct {
    ChKubeClock clock;
    int64_t now_us, wall_us;
    double random;
    GString *delays; /* in milliseconds, "800 1600 " */
} TestClock;

static inline int64_t
test_clock_now(gpointer data)
{
    return ((TestClock *)data)->now_us;
}

static inline int64_t
test_clock_wall(gpointer data)
{
    return ((TestClock *)data)->wall_us;
}

static inline double
test_clock_random(gpointer data)
{
    return ((TestClock *)data)->random;
}

static inline int64_t
test_clock_timer(gpointer data, int64_t delay_us)
{
    TestClock *clock = data;

    if (delay_us > 0)
        g_string_append_printf(clock->delays, "%" G_GINT64_FORMAT " ", delay_us / 1000);
    clock->now_us += delay_us;
    clock->wall_us += delay_us;
    return delay_us > 0 ? 1 : 0;
}

static inline void
test_clock_init(TestClock *clock)
{
    *clock = (TestClock){
        .clock = {test_clock_now, test_clock_wall, test_clock_random, test_clock_timer, clock},
        .now_us = 1000 * CH_SECOND_US,
        .wall_us = G_GINT64_CONSTANT(1700000000) * CH_SECOND_US,
        .delays = g_string_new(NULL),
    };
}

static inline void
test_clock_clear(TestClock *clock)
{
    g_string_free(clock->delays, TRUE);
}

/* ---- server ---- */

typedef struct TestServer TestServer;

/* A request that has arrived whole. The connection stays valid until the peer or the test ends it.
 */
typedef struct {
    TestServer *server;
    struct bufferevent *bev;
    char *method, *target, *headers, *body;
} TestRequest;

typedef void (*TestHandler)(gpointer data, TestRequest *request);

struct TestServer {
    ChLoop *loop;
    struct evconnlistener *listener;
    uint16_t port;
    GPtrArray *connections; /* struct bufferevent */
    TestHandler handler;
    gpointer data;
    guint n_requests;
};

static inline void
test_cut(TestServer *server, struct bufferevent *bev)
{
    g_assert_true(g_ptr_array_remove(server->connections, bev));
    bufferevent_free(bev);
}

static inline void
test_server_event(struct bufferevent *bev, short what, void *data)
{
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        test_cut(data, bev);
}

static inline gsize
test_content_length(const char *headers)
{
    const char *line = strstr(headers, "content-length: ");

    return line != NULL ? (gsize)g_ascii_strtoull(line + strlen("content-length: "), NULL, 10) : 0;
}

static inline void
test_server_read(struct bufferevent *bev, void *data)
{
    TestServer *server = data;
    struct evbuffer *input = bufferevent_get_input(bev);
    const gsize available = evbuffer_get_length(input);
    g_autofree char *text = g_strndup((const char *)evbuffer_pullup(input, -1), available);
    char *end = strstr(text, "\r\n\r\n");
    g_autofree char *headers = NULL;
    g_autofree char *body = NULL;
    g_auto(GStrv) words = NULL;
    gsize length;

    if (end == NULL)
        return;
    headers = g_ascii_strdown(text, end - text);
    length = test_content_length(headers);
    if (available < (gsize)(end + 4 - text) + length)
        return;
    body = g_strndup(end + 4, length);
    evbuffer_drain(input, (gsize)(end + 4 - text) + length);
    *strstr(text, "\r\n") = '\0';
    words = g_strsplit(text, " ", 3);
    server->n_requests++;
    server->handler(server->data, &(TestRequest){server, bev, words[0], words[1], headers, body});
}

static inline void
test_server_accept(struct evconnlistener *listener,
                   evutil_socket_t fd,
                   struct sockaddr *address,
                   int length,
                   void *data)
{
    TestServer *server = data;
    struct bufferevent *bev =
        bufferevent_socket_new(ch_loop_peek_base(server->loop), fd, BEV_OPT_CLOSE_ON_FREE);

    bufferevent_setcb(bev, test_server_read, NULL, test_server_event, server);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    g_ptr_array_add(server->connections, bev);
}

/* Listens at the server's port; the first time at any. */
static inline void
test_server_listen(TestServer *server)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(server->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;

    server->listener =
        evconnlistener_new_bind(ch_loop_peek_base(server->loop),
                                test_server_accept,
                                server,
                                LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC,
                                -1,
                                (struct sockaddr *)&address,
                                sizeof address);
    g_assert_nonnull(server->listener);
    getsockname(
        evconnlistener_get_fd(server->listener), (struct sockaddr *)(void *)&address, &length);
    server->port = ntohs(address.sin_port);
}

/* Refuses connections from now on, and cuts those that there are. */
static inline void
test_server_stop(TestServer *server)
{
    g_clear_pointer(&server->listener, evconnlistener_free);
    while (server->connections->len > 0)
        test_cut(server, g_ptr_array_index(server->connections, 0));
}

static inline void
test_server_init(TestServer *server, ChLoop *loop, TestHandler handler, gpointer data)
{
    *server = (TestServer){.loop = loop, .handler = handler, .data = data};
    server->connections = g_ptr_array_new();
    test_server_listen(server);
}

static inline void
test_server_clear(TestServer *server)
{
    test_server_stop(server);
    g_ptr_array_unref(server->connections);
}

/* Sends @text at once, which a bufferevent would not, and closes the connection. */
static inline void
test_cut_after(TestRequest *request, const char *text)
{
    const gssize n = write(bufferevent_getfd(request->bev), text, strlen(text));

    g_assert_true(n >= 0 && (gsize)n == strlen(text));
    test_cut(request->server, request->bev);
}

static inline void
test_send(struct bufferevent *bev, const char *text)
{
    bufferevent_write(bev, text, strlen(text));
}

/* A whole answer. @headers: (nullable) lines, each with its CRLF */
static inline void
test_reply(struct bufferevent *bev, int status, const char *headers, const char *body)
{
    g_autofree char *head =
        g_strdup_printf("HTTP/1.1 %d x\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n"
                        "%s\r\n",
                        status,
                        strlen(body),
                        headers != NULL ? headers : "");

    test_send(bev, head);
    test_send(bev, body);
}

static inline void
test_stream_begin(struct bufferevent *bev)
{
    test_send(bev, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
}

static inline void
test_stream_chunk(struct bufferevent *bev, const char *text)
{
    g_autofree char *head = g_strdup_printf("%zx\r\n", strlen(text));

    if (*text == '\0')
        return;
    test_send(bev, head);
    test_send(bev, text);
    test_send(bev, "\r\n");
}

static inline void
test_stream_end(struct bufferevent *bev)
{
    test_send(bev, "0\r\n\r\n");
}

/* ---- client ---- */

static inline ChKubeClient *
test_client_new(ChLoop *loop, const TestServer *server, TestClock *clock)
{
    g_autofree char *url = g_strdup_printf("http://127.0.0.1:%u", server->port);
    g_autoptr(GError) error = NULL;
    g_autoptr(ChKubeConfig) config = ch_kube_config_load(NULL, url, &error);
    ChKubeClient *client;

    g_assert_no_error(error);
    client = ch_kube_client_new(loop, config, &error);
    g_assert_no_error(error);
    if (clock != NULL)
        ch_kube_client_set_clock(client, &clock->clock);
    return client;
}
