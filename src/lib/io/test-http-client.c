/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http-client.h"

#include <arpa/inet.h>
#include <event2/bufferevent_ssl.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <glib/gstdio.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/io/test-certs.h"
#include "lib/io/test-h2-peer.h"
#include "lib/io/test-wait.h"
#include "lib/io/tls.h"

static TestCert ca, other_ca, server_cert;

static const char *const only_h2[] = {"h2", NULL};
static const char *const only_h1[] = {"http/1.1", NULL};

/* A server of one kind on the client's loop. */
typedef enum {
    KIND_H1,      /* evhttp */
    KIND_H1_TLS,  /* evhttp with TLS and ALPN http/1.1 */
    KIND_OLD_TLS, /* evhttp with TLS that knows no ALPN */
    KIND_H2_TLS,  /* TestH2Peer with TLS and ALPN h2 */
    KIND_RAW,     /* says `raw` to whatever comes, then does as `raw_end` says */
} Kind;

typedef enum {
    RAW_STAYS,
    RAW_CLOSES,
    RAW_RESETS,
} RawEnd;

typedef struct {
    ChLoop *loop;
    Kind kind;
    uint16_t port;
    char *unix_path;
    SSL_CTX *tls;
    struct evhttp *evhttp;
    struct evconnlistener *listener;
    int n_connections;
    GPtrArray *peers; /* TestH2Peer */
    GPtrArray *raws;  /* bufferevents: of KIND_RAW, and in their handshake */
    const char *raw;
    RawEnd raw_end;
    struct evhttp_request *streaming; /* of /stream */
    ChHttpClient *client;
} Fixture;

/* What came back. */
typedef struct {
    Fixture *fixture;
    ChHttpCall *call;
    int status;
    char *type; /* content-type */
    GString *body;
    int n_chunks;
    bool is_done;
    GError *error;
    bool cancels_at_headers;
    bool cancels_at_body;
    ChHttpCall *cancels_at_end; /* (nullable): another call */
    bool frees_client_at_headers;
    bool frees_client_at_body;
    bool frees_client_at_end;
} Answer;

/* Servers */

static void
serve_h1(struct evhttp_request *request, void *data)
{
    Fixture *f = data;
    const char *path = evhttp_request_get_uri(request);
    struct evbuffer *body = evhttp_request_get_input_buffer(request);
    g_autofree char *big = NULL;

    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/x-test");
    if (g_str_equal(path, "/stream")) {
        f->streaming = request;
        evhttp_send_reply_start(request, 200, "OK");
    } else if (g_str_equal(path, "/hang")) {
        f->streaming = request;
    } else if (g_str_equal(path, "/echo")) {
        evhttp_send_reply(request, 201, "Made", body);
    } else if (g_str_has_prefix(path, "/big/")) {
        struct evbuffer *out = evbuffer_new();

        big = g_strnfill((gsize)g_ascii_strtoull(path + 5, NULL, 10), 'b');
        evbuffer_add(out, big, strlen(big));
        evhttp_send_reply(request, 200, "OK", out);
        evbuffer_free(out);
    } else {
        evbuffer_add_printf(body, "%s", path + 1);
        evhttp_send_reply(request, 200, "OK", body);
    }
}

static struct bufferevent *
make_h1_bev(struct event_base *base, void *data)
{
    Fixture *f = data;

    f->n_connections++;
    if (f->tls == NULL)
        return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    return bufferevent_openssl_socket_new(
        base, -1, SSL_new(f->tls), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
}

static void
end_raw(Fixture *f, struct bufferevent *bev)
{
    const struct linger at_once = {.l_onoff = 1};

    if (f->raw_end == RAW_STAYS)
        return;
    if (f->raw_end == RAW_RESETS)
        setsockopt(bufferevent_getfd(bev), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    g_ptr_array_remove(f->raws, bev);
}

static void
on_raw_written(struct bufferevent *bev, void *data)
{
    end_raw(data, bev);
}

static void
on_raw_readable(struct bufferevent *bev, void *data)
{
    Fixture *f = data;

    evbuffer_drain(bufferevent_get_input(bev), SIZE_MAX);
    if (f->raw == NULL) {
        end_raw(f, bev);
        return;
    }
    bufferevent_setcb(bev, NULL, on_raw_written, NULL, f);
    bufferevent_write(bev, f->raw, strlen(f->raw));
}

static void
on_h2_handshake(struct bufferevent *bev, short what, void *data)
{
    Fixture *f = data;
    guint index;

    if (!(what & BEV_EVENT_CONNECTED)) {
        g_ptr_array_remove(f->raws, bev);
        return;
    }
    g_assert_true(g_ptr_array_find(f->raws, bev, &index));
    g_ptr_array_steal_index_fast(f->raws, index);
    g_ptr_array_add(f->peers, test_h2_peer_new(bev, 20));
}

static void
on_accept(struct evconnlistener *listener,
          evutil_socket_t fd,
          struct sockaddr *address,
          int length,
          void *data)
{
    Fixture *f = data;
    struct event_base *base = ch_loop_peek_base(f->loop);
    struct bufferevent *bev;

    f->n_connections++;
    if (f->kind == KIND_RAW) {
        bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
        g_ptr_array_add(f->raws, bev);
        bufferevent_setcb(bev, on_raw_readable, NULL, NULL, f);
        bufferevent_enable(bev, EV_READ | EV_WRITE);
        return;
    }
    bev = bufferevent_openssl_socket_new(
        base, fd, SSL_new(f->tls), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    g_ptr_array_add(f->raws, bev);
    bufferevent_setcb(bev, NULL, NULL, on_h2_handshake, f);
}

static evutil_socket_t
listen_on(Fixture *f)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    const bool is_unix = f->unix_path != NULL;
    const int fd =
        socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof in;

    if (is_unix) {
        g_strlcpy(un.sun_path, f->unix_path, sizeof un.sun_path);
        g_assert_no_errno(bind(fd, (struct sockaddr *)&un, sizeof un));
    } else {
        g_assert_no_errno(bind(fd, (struct sockaddr *)&in, sizeof in));
        g_assert_no_errno(getsockname(fd, (struct sockaddr *)&in, &length));
        f->port = ntohs(in.sin_port);
    }
    g_assert_no_errno(listen(fd, 128));
    return fd;
}

static void
start_server(Fixture *f)
{
    struct event_base *base = ch_loop_peek_base(f->loop);
    g_autoptr(GError) error = NULL;

    if (f->kind != KIND_H1 && f->kind != KIND_RAW) {
        f->tls = ch_tls_server_context_new(server_cert.cert_pem, server_cert.key_pem, &error);
        g_assert_no_error(error);
    }
    if (f->kind == KIND_H2_TLS)
        ch_tls_server_set_alpn(f->tls, only_h2);
    else if (f->kind == KIND_H1_TLS)
        ch_tls_server_set_alpn(f->tls, only_h1);

    if (f->kind == KIND_H2_TLS || f->kind == KIND_RAW) {
        f->listener =
            evconnlistener_new(base, on_accept, f, LEV_OPT_CLOSE_ON_FREE, 0, listen_on(f));
    } else {
        f->evhttp = evhttp_new(base);
        evhttp_set_bevcb(f->evhttp, make_h1_bev, f);
        evhttp_set_gencb(f->evhttp, serve_h1, f);
        evhttp_accept_socket(f->evhttp, listen_on(f));
    }
}

static void
start_client(Fixture *f, const ChHttpTarget *changes)
{
    ChHttpTarget target = *changes;
    g_autoptr(GError) error = NULL;

    target.is_tls |= f->tls != NULL;
    target.host = target.host != NULL ? target.host : "127.0.0.1";
    target.port = f->port;
    target.unix_path = f->unix_path;
    target.ca_pem = target.ca_pem != NULL ? target.ca_pem : ca.cert_pem;
    f->client = ch_http_client_new(f->loop, &target, &error);
    g_assert_no_error(error);
}

static void
set_up(Fixture *f, Kind kind)
{
    const ChHttpTarget unchanged = {0};

    *f = (Fixture){.loop = ch_loop_new(), .kind = kind};
    f->peers = g_ptr_array_new_with_free_func((GDestroyNotify)test_h2_peer_free);
    f->raws = g_ptr_array_new_with_free_func((GDestroyNotify)bufferevent_free);
    start_server(f);
    start_client(f, &unchanged);
}

static void
set_up_raw(Fixture *f, const char *raw, RawEnd end)
{
    set_up(f, KIND_RAW);
    f->raw = raw;
    f->raw_end = end;
}

static void
tear_down(Fixture *f)
{
    g_clear_pointer(&f->client, ch_http_client_free);
    g_clear_pointer(&f->evhttp, evhttp_free);
    g_clear_pointer(&f->listener, evconnlistener_free);
    g_ptr_array_unref(f->peers);
    g_ptr_array_unref(f->raws);
    SSL_CTX_free(f->tls);
    ch_loop_free(f->loop);
}

/* Requests */

static void
on_headers(gpointer data, int status, const ChHttpHeader *headers, gsize n_headers)
{
    Answer *a = data;

    g_assert_cmpint(a->status, ==, 0);
    a->status = status;
    a->type = g_strdup(ch_http_header_get(headers, n_headers, "content-type"));
    if (a->cancels_at_headers)
        ch_http_call_cancel(g_steal_pointer(&a->call));
    if (a->frees_client_at_headers)
        g_clear_pointer(&a->fixture->client, ch_http_client_free);
}

static void
on_body(gpointer data, const uint8_t *bytes, gsize length)
{
    Answer *a = data;

    g_assert_cmpint(a->status, !=, 0);
    g_string_append_len(a->body, (const char *)bytes, (gssize)length);
    a->n_chunks++;
    if (a->cancels_at_body)
        ch_http_call_cancel(g_steal_pointer(&a->call));
    if (a->frees_client_at_body)
        g_clear_pointer(&a->fixture->client, ch_http_client_free);
}

static void
on_end(gpointer data, const GError *error)
{
    Answer *a = data;

    g_assert_false(a->is_done);
    a->is_done = true;
    a->error = error != NULL ? g_error_copy(error) : NULL;
    if (a->cancels_at_end != NULL)
        ch_http_call_cancel(g_steal_pointer(&a->cancels_at_end));
    if (a->frees_client_at_end)
        g_clear_pointer(&a->fixture->client, ch_http_client_free);
}

static void
ask_with(Fixture *f, Answer *a, const ChHttpRequest *request)
{
    static const ChHttpSink sink = {on_headers, on_body, on_end};

    a->fixture = f;
    a->body = g_string_new(NULL);
    a->call = ch_http_client_send(f->client, request, &sink, a);
    g_assert_false(a->is_done);
}

static void
ask(Fixture *f, Answer *a, const char *path, const char *body)
{
    const ChHttpHeader headers[] = {{"Accept", "application/json"}};
    g_autoptr(GBytes) bytes = body != NULL ? g_bytes_new(body, strlen(body)) : NULL;
    const ChHttpRequest request = {.method = body != NULL ? "POST" : "GET",
                                   .path = path,
                                   .headers = headers,
                                   .n_headers = 1,
                                   .body = bytes};

    ask_with(f, a, &request);
}

static void
forget(Answer *a)
{
    g_free(a->type);
    g_string_free(a->body, TRUE);
    g_clear_error(&a->error);
}

/* One request and its error; 0: none. */
static void
expect(Fixture *f, const char *path, int code)
{
    Answer a = {0};

    ask(f, &a, path, NULL);
    test_wait_until(f->loop, a.is_done);
    if (code == 0)
        g_assert_no_error(a.error);
    else
        g_assert_error(a.error, CH_HTTP_ERROR, code);
    forget(&a);
}

/* What holds for every kind of server */

static const struct KindCase {
    const char *name;
    Kind kind;
} kind_cases[] = {
    {"h1", KIND_H1}, {"h1-tls", KIND_H1_TLS}, {"no-alpn", KIND_OLD_TLS}, {"h2", KIND_H2_TLS}};

static void
test_requests(gconstpointer data)
{
    const struct KindCase *c = data;
    g_autofree char *text = g_strnfill(500000, 't');
    Fixture f;
    Answer get = {0}, post = {0}, big = {0};

    set_up(&f, c->kind);
    ask(&f, &get, "/hello", NULL);
    ask(&f, &post, "/echo", text);
    ask(&f, &big, "/big/3000000", NULL);
    test_wait_until(f.loop, get.is_done && post.is_done && big.is_done);
    g_assert_no_error(get.error);
    g_assert_cmpint(get.status, ==, 200);
    g_assert_cmpstr(get.body->str, ==, "hello");
    if (c->kind != KIND_H2_TLS)
        g_assert_cmpstr(get.type, ==, "text/x-test");
    g_assert_no_error(post.error);
    g_assert_cmpstr(post.body->str, ==, text);
    g_assert_no_error(big.error);
    g_assert_cmpuint(big.body->len, ==, 3000000);
    forget(&get);
    forget(&post);
    forget(&big);
    tear_down(&f);
}

static void
test_fifty_at_once(gconstpointer data)
{
    const struct KindCase *c = data;
    Fixture f;
    Answer a[50] = {0};

    set_up(&f, c->kind);
    for (gsize i = 0; i < G_N_ELEMENTS(a); i++)
        ask(&f, &a[i], "/big/20000", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(a); i++) {
        test_wait_until(f.loop, a[i].is_done);
        g_assert_no_error(a[i].error);
        g_assert_cmpuint(a[i].body->len, ==, 20000);
        forget(&a[i]);
    }
    if (c->kind == KIND_H2_TLS)
        g_assert_cmpint(f.n_connections, ==, 1);
    else
        g_assert_cmpint(f.n_connections, <=, 50);
    tear_down(&f);
}

static void
test_one_after_another_reuses(gconstpointer data)
{
    const struct KindCase *c = data;
    Fixture f;

    set_up(&f, c->kind);
    for (int i = 0; i < 10; i++)
        expect(&f, "/hello", 0);
    g_assert_cmpint(f.n_connections, ==, 1);
    tear_down(&f);
}

/* Cancelled while it waits, connects, runs, and at each callback; the next request works. */
static void
test_cancel_at_each_stage(gconstpointer data)
{
    const struct KindCase *c = data;
    Fixture f;
    Answer waiting = {0}, connecting = {0}, running = {0};
    Answer at_headers = {.cancels_at_headers = true}, at_body = {.cancels_at_body = true};

    set_up(&f, c->kind);
    ask(&f, &waiting, "/hello", NULL);
    ch_http_call_cancel(waiting.call);
    ask(&f, &connecting, "/hello", NULL);
    test_wait_until(f.loop, f.n_connections == 1);
    ch_http_call_cancel(connecting.call);
    ask(&f, &running, "/hang", NULL);
    test_wait_until(f.loop,
                    f.streaming != NULL ||
                        (f.peers->len > 0 && ((TestH2Peer *)f.peers->pdata[0])->n_requests > 0));
    ch_http_call_cancel(running.call);
    ask(&f, &at_headers, "/big/100000", NULL);
    ask(&f, &at_body, "/big/100000", NULL);
    test_wait_until(f.loop, at_headers.call == NULL && at_body.call == NULL);
    expect(&f, "/hello", 0);
    g_assert_false(waiting.is_done || connecting.is_done || running.is_done);
    g_assert_false(at_headers.is_done || at_body.is_done);
    g_assert_cmpint(at_headers.n_chunks, ==, 0);
    g_assert_cmpint(at_body.n_chunks, ==, 1);
    forget(&waiting);
    forget(&connecting);
    forget(&running);
    forget(&at_headers);
    forget(&at_body);
    tear_down(&f);
}

static void
test_free_client_in_callback(gconstpointer data)
{
    const struct KindCase *c = data;

    for (int stage = 0; stage < 3; stage++) {
        const bool at_end = stage == 2;
        Fixture f;
        Answer a = {.frees_client_at_headers = stage == 0,
                    .frees_client_at_body = stage == 1,
                    .frees_client_at_end = at_end};
        Answer other = {0};

        set_up(&f, c->kind);
        ask(&f, &other, "/hang", NULL);
        ask(&f, &a, "/hello", NULL);
        test_wait_until(f.loop, f.client == NULL);
        test_wait_us(f.loop, 5000);
        g_assert_cmpint(a.is_done, ==, at_end);
        g_assert_false(other.is_done);
        forget(&a);
        forget(&other);
        tear_down(&f);
    }
}

/* Two requests that end together, each cancelling the other: which one is first does not matter. */
static void
expect_one_end(Fixture *f, const char *path)
{
    Answer a[2] = {0};

    ask(f, &a[0], path, NULL);
    ask(f, &a[1], "/hang", NULL);
    a[0].cancels_at_end = a[1].call;
    a[1].cancels_at_end = a[0].call;
    test_wait_until(f->loop, a[0].is_done || a[1].is_done);
    test_wait_us(f->loop, 1000);
    g_assert_true(a[0].is_done != a[1].is_done);
    forget(&a[0]);
    forget(&a[1]);
}

static void
test_cancel_another_at_end(gconstpointer data)
{
    const struct KindCase *c = data;
    Fixture f;

    set_up(&f, c->kind);
    expect_one_end(&f, "/close"); /* HTTP/2: the connection, and so both; HTTP/1.1: an answer */
    g_clear_pointer(&f.client, ch_http_client_free);
    g_clear_pointer(&f.evhttp, evhttp_free);
    g_clear_pointer(&f.listener, evconnlistener_free);
    start_client(&f, &(ChHttpTarget){0});
    expect_one_end(&f, "/hello"); /* refused while both wait */
    tear_down(&f);
}

static void
test_free_client_at_once(gconstpointer data)
{
    const struct KindCase *c = data;
    Fixture f;
    Answer a = {0};

    set_up(&f, c->kind);
    ask(&f, &a, "/hello", NULL);
    g_clear_pointer(&f.client, ch_http_client_free);
    test_wait_us(f.loop, 5000);
    g_assert_false(a.is_done);
    forget(&a);
    tear_down(&f);
}

static void
test_request_times_out(gconstpointer data)
{
    const struct KindCase *c = data;
    const ChHttpRequest request = {.method = "GET", .path = "/hang", .timeout_us = 50000};
    Fixture f;
    Answer a = {0};

    set_up(&f, c->kind);
    ask_with(&f, &a, &request);
    test_wait_until(f.loop, a.is_done);
    g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_TIMEOUT);
    expect(&f, "/hello", 0);
    forget(&a);
    tear_down(&f);
}

/* HTTP/1.1 */

static void
send_chunk(Fixture *f, const char *text)
{
    struct evbuffer *chunk = evbuffer_new();

    evbuffer_add(chunk, text, strlen(text));
    evhttp_send_reply_chunk(f->streaming, chunk);
    evbuffer_free(chunk);
}

static void
test_chunks_come_as_they_are_sent(void)
{
    Fixture f;
    Answer a = {0};

    set_up(&f, KIND_H1);
    ask(&f, &a, "/stream", NULL);
    test_wait_until(f.loop, a.status == 200);
    send_chunk(&f, "one");
    test_wait_until(f.loop, g_str_equal(a.body->str, "one"));
    expect(&f, "/hello", 0); /* others do not wait for the stream */
    send_chunk(&f, "two");
    test_wait_until(f.loop, g_str_equal(a.body->str, "onetwo"));
    g_assert_false(a.is_done);
    evhttp_send_reply_end(f.streaming);
    test_wait_until(f.loop, a.is_done);
    g_assert_no_error(a.error);
    g_assert_cmpint(a.n_chunks, ==, 2);
    forget(&a);
    tear_down(&f);
}

static void
test_unix_socket(void)
{
    const ChHttpTarget target = {.host = "localhost"};
    g_autofree char *dir = g_dir_make_tmp("test-http-XXXXXX", NULL);
    Fixture f = {.loop = ch_loop_new(), .kind = KIND_H1};

    f.unix_path = g_build_filename(dir, "socket", NULL);
    f.peers = g_ptr_array_new();
    f.raws = g_ptr_array_new();
    start_client(&f, &target);
    expect(&f, "/hello", CH_HTTP_ERROR_CONNECT); /* no such file */
    start_server(&f);
    expect(&f, "/hello", 0);
    g_clear_pointer(&f.evhttp, evhttp_free);
    test_wait_us(f.loop, 5000);                  /* the pooled connection's end is seen */
    expect(&f, "/hello", CH_HTTP_ERROR_REFUSED); /* the file is there, nobody listens */
    g_unlink(f.unix_path);
    g_rmdir(dir);
    g_free(f.unix_path);
    tear_down(&f);
}

/* The end of a path that does not fit must not lead elsewhere. */
static void
test_long_unix_path(void)
{
    const ChHttpTarget target = {.host = "localhost"};
    Fixture f = {.loop = ch_loop_new(), .kind = KIND_H1};

    f.unix_path = g_strnfill(200, '/');
    f.peers = g_ptr_array_new();
    f.raws = g_ptr_array_new();
    start_client(&f, &target);
    expect(&f, "/hello", CH_HTTP_ERROR_CONNECT);
    g_free(f.unix_path);
    tear_down(&f);
}

/* Nobody listens on 127.0.0.1, which comes first. */
static void
test_next_address_is_tried(void)
{
    const ChHttpTarget target = {.host = "localhost"};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    socklen_t length = sizeof in6;
    Fixture f;

    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&in6, sizeof in6) < 0) {
        g_test_skip("no IPv6");
        close(fd);
        return;
    }
    g_assert_no_errno(listen(fd, 8));
    g_assert_no_errno(getsockname(fd, (struct sockaddr *)&in6, &length));
    set_up(&f, KIND_H1);
    evhttp_accept_socket(f.evhttp, fd);
    g_clear_pointer(&f.client, ch_http_client_free);
    f.port = ntohs(in6.sin6_port);
    start_client(&f, &target);
    expect(&f, "/hello", 0);
    tear_down(&f);
}

static void
test_localhost_needs_no_lookup(void)
{
    const ChHttpTarget target = {.host = "localhost"};
    Fixture f;

    set_up(&f, KIND_H1);
    ch_http_client_free(f.client);
    start_client(&f, &target);
    expect(&f, "/hello", 0);
    tear_down(&f);
}

static const struct RawCase {
    const char *name;
    const char *raw;
    RawEnd end;
    int code;
} raw_cases[] = {
    {"silent-close", NULL, RAW_CLOSES, CH_HTTP_ERROR_EOF},
    {"silent-reset", NULL, RAW_RESETS, CH_HTTP_ERROR_RESET},
    {"half-an-answer",
     "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
     RAW_CLOSES,
     CH_HTTP_ERROR_EOF},
    {"half-a-chunk",
     "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf",
     RAW_CLOSES,
     CH_HTTP_ERROR_EOF},
    {"half-a-header", "HTTP/1.1 200 OK\r\ncont", RAW_CLOSES, CH_HTTP_ERROR_EOF},
    {"no-http", "SSH-2.0-OpenSSH_9.2\r\n", RAW_STAYS, CH_HTTP_ERROR_PROTOCOL},
    {"until-close", "HTTP/1.1 200 OK\r\n\r\nall", RAW_CLOSES, 0},
    {"more-than-asked", "HTTP/1.1 204 OK\r\n\r\nHTTP/1.1 204 OK\r\n\r\n", RAW_STAYS, 0},
};

/* Twice: the second request must not meet what the first one left behind. */
static void
test_raw(gconstpointer data)
{
    const struct RawCase *c = data;
    Fixture f;

    set_up_raw(&f, c->raw, c->end);
    expect(&f, "/", c->code);
    expect(&f, "/", c->code);
    g_assert_cmpint(f.n_connections, ==, 2);
    tear_down(&f);
}

static void
test_endless_headers(void)
{
    g_autofree char *line = g_strnfill(2000000, 'x');
    g_autofree char *raw = g_strconcat("HTTP/1.1 200 OK\r\na: ", line, NULL);
    Fixture f;

    set_up_raw(&f, raw, RAW_STAYS);
    expect(&f, "/", CH_HTTP_ERROR_LIMIT);
    tear_down(&f);
}

/* Text of a caller must not become lines of its own. */
static void
test_bad_requests_are_not_sent(void)
{
    const ChHttpHeader split = {"x-a", "b\r\nx-c: d"};
    const ChHttpRequest bad[] = {
        {.method = "GET", .path = "/a b"},
        {.method = "GET", .path = "/a\r\nx: y"},
        {.method = "GET", .path = "no-slash"},
        {.method = "GET", .path = "/", .headers = &split, .n_headers = 1},
    };
    Fixture f;

    set_up(&f, KIND_H1);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        Answer a = {0};

        ask_with(&f, &a, &bad[i]);
        test_wait_until(f.loop, a.is_done);
        g_assert_error(a.error, CH_HTTP_ERROR, CH_HTTP_ERROR_PROTOCOL);
        forget(&a);
    }
    g_assert_cmpint(f.n_connections, ==, 0);
    tear_down(&f);
}

/* Connecting */

/* No descriptor is to be had for a while; the next request works. */
static void
test_out_of_descriptors(void)
{
    struct rlimit before, none;
    Fixture f;

    set_up(&f, KIND_H1);
    g_assert_no_errno(getrlimit(RLIMIT_NOFILE, &before));
    none = (struct rlimit){0, before.rlim_max};
    g_assert_no_errno(setrlimit(RLIMIT_NOFILE, &none));
    expect(&f, "/hello", CH_HTTP_ERROR_CONNECT);
    g_assert_no_errno(setrlimit(RLIMIT_NOFILE, &before));
    expect(&f, "/hello", 0);
    tear_down(&f);
}

static void
test_refused(void)
{
    const ChHttpTarget unchanged = {0};
    Fixture f;
    Answer a[3] = {0};

    for (int with_tls = 0; with_tls < 2; with_tls++) {
        set_up(&f, with_tls ? KIND_H2_TLS : KIND_H1);
        g_clear_pointer(&f.evhttp, evhttp_free);
        g_clear_pointer(&f.listener, evconnlistener_free);
        for (gsize i = 0; i < G_N_ELEMENTS(a); i++)
            ask(&f, &a[i], "/", NULL);
        for (gsize i = 0; i < G_N_ELEMENTS(a); i++) {
            test_wait_until(f.loop, a[i].is_done);
            g_assert_error(a[i].error, CH_HTTP_ERROR, CH_HTTP_ERROR_REFUSED);
            forget(&a[i]);
            a[i] = (Answer){0};
        }
        g_clear_pointer(&f.client, ch_http_client_free);
        start_client(&f, &unchanged); /* a client that is freed when one of several fails */
        a[0].frees_client_at_end = true;
        ask(&f, &a[0], "/", NULL);
        ask(&f, &a[1], "/", NULL);
        test_wait_until(f.loop, a[0].is_done);
        test_wait_us(f.loop, 5000);
        g_assert_false(a[1].is_done);
        forget(&a[0]);
        forget(&a[1]);
        memset(a, 0, sizeof a);
        tear_down(&f);
    }
}

static void
expect_with(Kind kind, const ChHttpTarget *target, int code)
{
    Fixture f;

    set_up(&f, kind);
    g_clear_pointer(&f.client, ch_http_client_free);
    start_client(&f, target);
    expect(&f, "/hello", code);
    tear_down(&f);
}

static void
test_tls_failures(void)
{
    const ChHttpTarget stranger = {.ca_pem = other_ca.cert_pem};
    const ChHttpTarget no_check = {.ca_pem = other_ca.cert_pem, .insecure_skip_verify = true};
    const ChHttpTarget wrong_name = {.server_name = "other.example"};
    const ChHttpTarget right_name = {.server_name = "node.example"};
    const ChHttpTarget plain_server = {.is_tls = true};

    expect_with(KIND_H2_TLS, &stranger, CH_HTTP_ERROR_TLS);
    expect_with(KIND_H1_TLS, &stranger, CH_HTTP_ERROR_TLS);
    expect_with(KIND_H2_TLS, &no_check, 0);
    expect_with(KIND_H2_TLS, &wrong_name, CH_HTTP_ERROR_TLS);
    expect_with(KIND_H2_TLS, &right_name, 0);
    expect_with(KIND_H1, &plain_server, CH_HTTP_ERROR_TLS);
}

static void
test_client_certificate_is_refused_late(void)
{
    const ChHttpTarget nobody = {0};
    const ChHttpTarget known = {.cert_pem = server_cert.cert_pem, .key_pem = server_cert.key_pem};
    g_autoptr(GError) error = NULL;
    Fixture f;

    set_up(&f, KIND_H2_TLS);
    g_assert_true(ch_tls_server_want_client_ca(f.tls, ca.cert_pem, true, &error));
    g_clear_pointer(&f.client, ch_http_client_free);
    start_client(&f, &nobody);
    expect(&f, "/hello", CH_HTTP_ERROR_TLS);
    g_clear_pointer(&f.client, ch_http_client_free);
    start_client(&f, &known);
    expect(&f, "/hello", 0);
    tear_down(&f);
}

/* TCP answers, TLS does not. */
static void
test_handshake_deadline(void)
{
    const ChHttpTarget target = {.is_tls = true, .connect_timeout_us = 50000};
    Fixture f;

    set_up(&f, KIND_RAW);
    f.raw = "";
    g_clear_pointer(&f.client, ch_http_client_free);
    start_client(&f, &target);
    expect(&f, "/", CH_HTTP_ERROR_CONNECT);
    tear_down(&f);
}

static void
test_handshake_is_cut_off(void)
{
    const ChHttpTarget target = {.is_tls = true};
    Fixture f;

    for (RawEnd end = RAW_CLOSES; end <= RAW_RESETS; end++) {
        set_up_raw(&f, NULL, end);
        g_clear_pointer(&f.client, ch_http_client_free);
        start_client(&f, &target);
        expect(&f, "/", end == RAW_CLOSES ? CH_HTTP_ERROR_EOF : CH_HTTP_ERROR_RESET);
        tear_down(&f);
    }
}

/* HTTP/2 */

static void
test_goaway_is_replaced(void)
{
    Fixture f;
    Answer running = {0}, last = {0};

    set_up(&f, KIND_H2_TLS);
    ask(&f, &running, "/stall", NULL);
    test_wait_until(f.loop, running.n_chunks == 1);
    ask(&f, &last, "/goaway", NULL);
    test_wait_until(f.loop, last.is_done);
    g_assert_no_error(last.error);
    expect(&f, "/hello", 0); /* on another connection */
    g_assert_cmpint(f.n_connections, ==, 2);
    g_assert_false(running.is_done); /* still on the first one */
    forget(&running);
    forget(&last);
    tear_down(&f);
}

static void
test_lost_connection_is_replaced(void)
{
    Fixture f;
    Answer running = {0};

    set_up(&f, KIND_H2_TLS);
    ask(&f, &running, "/stall", NULL);
    test_wait_until(f.loop, running.n_chunks == 1);
    expect(&f, "/close", CH_HTTP_ERROR_EOF);
    test_wait_until(f.loop, running.is_done);
    g_assert_error(running.error, CH_HTTP_ERROR, CH_HTTP_ERROR_EOF);
    expect(&f, "/hello", 0);
    g_assert_cmpint(f.n_connections, ==, 2);
    forget(&running);
    tear_down(&f);
}

static void
test_stream_errors(void)
{
    Fixture f;

    set_up(&f, KIND_H2_TLS);
    expect(&f, "/reset/7", CH_HTTP_ERROR_UNSENT);
    expect(&f, "/half/2", CH_HTTP_ERROR_STREAM);
    expect(&f, "/many/1100", CH_HTTP_ERROR_LIMIT);
    expect(&f, "/trailers", 0);
    g_assert_cmpint(f.n_connections, ==, 1);
    tear_down(&f);
}

static void
test_dead_peer_is_found(void)
{
    const ChHttpTarget target = {.ping_idle_us = 20000, .ping_timeout_us = 300000};
    Fixture f;
    Answer watch = {0};

    set_up(&f, KIND_H2_TLS);
    g_clear_pointer(&f.client, ch_http_client_free);
    start_client(&f, &target);
    ask(&f, &watch, "/stall", NULL);
    test_wait_until(f.loop, watch.n_chunks == 1);
    bufferevent_disable(((TestH2Peer *)f.peers->pdata[0])->bev, EV_READ);
    test_wait_until(f.loop, watch.is_done);
    g_assert_error(watch.error, CH_HTTP_ERROR, CH_HTTP_ERROR_RESET);
    forget(&watch);
    tear_down(&f);
}

static void
add_for_each_kind(const char *name, GTestDataFunc func)
{
    for (gsize i = 0; i < G_N_ELEMENTS(kind_cases); i++) {
        g_autofree char *path = g_strdup_printf("/http-client/%s/%s", name, kind_cases[i].name);

        g_test_add_data_func(path, &kind_cases[i], func);
    }
}

int
main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    test_cert_init(&ca, NULL, NULL, 3600);
    test_cert_init(&other_ca, NULL, NULL, 3600);
    test_cert_init(&server_cert, &ca, "IP:127.0.0.1,DNS:node.example", 3600);
    add_for_each_kind("cancel-another-at-end", test_cancel_another_at_end);
    add_for_each_kind("requests", test_requests);
    add_for_each_kind("fifty-at-once", test_fifty_at_once);
    add_for_each_kind("one-after-another-reuses", test_one_after_another_reuses);
    add_for_each_kind("cancel-at-each-stage", test_cancel_at_each_stage);
    add_for_each_kind("free-client-in-callback", test_free_client_in_callback);
    add_for_each_kind("free-client-at-once", test_free_client_at_once);
    add_for_each_kind("request-times-out", test_request_times_out);
    for (gsize i = 0; i < G_N_ELEMENTS(raw_cases); i++) {
        g_autofree char *path = g_strdup_printf("/http-client/raw/%s", raw_cases[i].name);

        g_test_add_data_func(path, &raw_cases[i], test_raw);
    }
    g_test_add_func("/http-client/chunks-come-as-they-are-sent", test_chunks_come_as_they_are_sent);
    g_test_add_func("/http-client/unix-socket", test_unix_socket);
    g_test_add_func("/http-client/long-unix-path", test_long_unix_path);
    g_test_add_func("/http-client/next-address-is-tried", test_next_address_is_tried);
    g_test_add_func("/http-client/localhost-needs-no-lookup", test_localhost_needs_no_lookup);
    g_test_add_func("/http-client/endless-headers", test_endless_headers);
    g_test_add_func("/http-client/bad-requests-are-not-sent", test_bad_requests_are_not_sent);
    g_test_add_func("/http-client/out-of-descriptors", test_out_of_descriptors);
    g_test_add_func("/http-client/refused", test_refused);
    g_test_add_func("/http-client/tls-failures", test_tls_failures);
    g_test_add_func("/http-client/client-certificate-is-refused-late",
                    test_client_certificate_is_refused_late);
    g_test_add_func("/http-client/handshake-deadline", test_handshake_deadline);
    g_test_add_func("/http-client/handshake-is-cut-off", test_handshake_is_cut_off);
    g_test_add_func("/http-client/goaway-is-replaced", test_goaway_is_replaced);
    g_test_add_func("/http-client/lost-connection-is-replaced", test_lost_connection_is_replaced);
    g_test_add_func("/http-client/stream-errors", test_stream_errors);
    g_test_add_func("/http-client/dead-peer-is-found", test_dead_peer_is_found);
    status = g_test_run();
    test_cert_clear(&ca);
    test_cert_clear(&other_ca);
    test_cert_clear(&server_cert);
    return status;
}
