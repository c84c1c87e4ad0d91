/* SPDX-License-Identifier: Apache-2.0 */

/* The server on this thread's loop, against a client on a plain blocking socket of a second
 * thread's or non-blocking of this one's. */

#include "lib/io/http-server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/io/test-certs.h"
#include "lib/io/test-wait.h"
#include "lib/io/tls.h"

#define HOST      "host: x\r\n"
#define BIG_BYTES (8u << 20)

typedef struct {
    ChLoop *loop;
    ChHttpServer *server;
    GPtrArray *questions; /* "METHOD path?query body" */
    ChHttpExchange *held; /* of "/hold" and "/stream" */
    guint n_closed;
    guint n_drained;
} Fixture;

static void
on_drained(gpointer data)
{
    ((Fixture *)data)->n_drained++;
}

static void
on_closed(gpointer data)
{
    Fixture *f = data;

    f->n_closed++;
    f->held = NULL;
}

static const ChHttpStreamEvents stream_events = {on_drained, on_closed};

static void
on_question(ChHttpExchange *exchange, const ChHttpQuestion *question, gpointer data)
{
    static const ChHttpHeader type = {"content-type", "text/plain"};
    Fixture *f = data;
    g_autoptr(GBytes) body = NULL;
    char *line = g_strdup_printf("%s %s?%s %.*s",
                                 question->method,
                                 question->path,
                                 question->query != NULL ? question->query : "",
                                 (int)question->length,
                                 question->body);

    g_ptr_array_add(f->questions, line);
    if (g_str_equal(question->path, "/big")) {
        g_autofree char *much = g_strnfill(BIG_BYTES, 'b');

        body = g_bytes_new_take(g_steal_pointer(&much), BIG_BYTES);
        ch_http_exchange_reply(exchange, 200, &type, 1, body);
        return;
    }
    if (g_str_equal(question->path, "/hold")) {
        f->held = exchange;
        return;
    }
    if (g_str_equal(question->path, "/stream")) {
        f->held = exchange;
        g_assert_true(ch_http_exchange_begin(exchange, 200, &type, 1, &stream_events, f));
        return;
    }
    body = g_bytes_new(line, strlen(line));
    ch_http_exchange_reply(exchange, 200, &type, 1, body);
}

static void
fixture_init(Fixture *f, ChHttpServerOptions *options)
{
    g_autoptr(GError) error = NULL;

    *f = (Fixture){0};
    f->loop = ch_loop_new();
    f->questions = g_ptr_array_new_with_free_func(g_free);
    options->address = "127.0.0.1";
    f->server = ch_http_server_new(f->loop, options, on_question, f, &error);
    g_assert_no_error(error);
}

static void
fixture_clear(Fixture *f)
{
    ch_http_server_free(f->server);
    ch_loop_free(f->loop);
    g_ptr_array_unref(f->questions);
}

static int
client_connect(const Fixture *f)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(ch_http_server_port(f->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(connect(fd, (const struct sockaddr *)&to, sizeof(to)), ==, 0);
    g_assert_cmpint(fcntl(fd, F_SETFL, O_NONBLOCK), ==, 0);
    return fd;
}

static void
client_send(int fd, const char *text)
{
    g_assert_cmpint(send(fd, text, strlen(text), MSG_NOSIGNAL), ==, (gssize)strlen(text));
}

/* Appends what is there. Returns: the connection is still open */
static bool
client_read(int fd, GString *text)
{
    char bytes[4096];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        g_string_append_len(text, bytes, n);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

#define wait_for_text(f, fd, text, wanted)                                                         \
    test_wait_until((f)->loop, (client_read(fd, text), strstr((text)->str, wanted) != NULL))
#define wait_for_end(f, fd, text) test_wait_until((f)->loop, !client_read(fd, text))

static guint
count(const char *text, const char *part)
{
    guint n = 0;

    while ((text = strstr(text, part)) != NULL) {
        n++;
        text += strlen(part);
    }
    return n;
}

/* One connection, one request, everything up to the end of the connection. */
static char *
ask(Fixture *f, const char *request)
{
    ch_autofd int fd = client_connect(f);
    g_autoptr(GString) text = g_string_new(NULL);

    client_send(fd, request);
    wait_for_end(f, fd, text);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
test_requests_on_one_connection_are_answered_in_order(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd,
                "GET /one?a=b HTTP/1.1\r\n" HOST "\r\n"
                "POST /two HTTP/1.1\r\n" HOST "content-length: 3\r\n\r\nabc"
                "GET /three HTTP/1.1\r\n" HOST "connection: close\r\n\r\n");
    wait_for_end(&f, fd, text);
    g_assert_cmpuint(f.questions->len, ==, 3);
    g_assert_cmpstr(f.questions->pdata[0], ==, "GET /one?a=b ");
    g_assert_cmpstr(f.questions->pdata[1], ==, "POST /two? abc");
    g_assert_cmpuint(count(text->str, "HTTP/1.1 200 OK\r\n"), ==, 3);
    g_assert_nonnull(strstr(text->str, "content-length: 14\r\n"));
    g_assert_true(g_str_has_suffix(text->str, "\r\n\r\nGET /three? "));
    g_assert_cmpuint(count(text->str, "connection: close\r\n"), ==, 1);
    fixture_clear(&f);
}

static void
test_chunked_body_is_put_together(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);
    static const char request[] = "PUT /x HTTP/1.1\r\n" HOST "connection: close\r\n"
                                  "transfer-encoding: chunked\r\n\r\n"
                                  "4\r\nwiki\r\n5;ext\r\npedia\r\n0\r\ntrailer: y\r\n\r\n";

    fixture_init(&f, &options);
    fd = client_connect(&f);
    for (const char *c = request; *c != '\0'; c++) {
        g_assert_cmpint(send(fd, c, 1, MSG_NOSIGNAL), ==, 1);
        event_base_loop(ch_loop_peek_base(f.loop), EVLOOP_NONBLOCK);
    }
    wait_for_end(&f, fd, text);
    g_assert_cmpstr(f.questions->pdata[0], ==, "PUT /x? wikipedia");
    fixture_clear(&f);
}

static const struct Refusal {
    const char *path;
    const char *request;
    const char *answer;
} refusals[] = {
    {"/http-server/refuses/garbage", "\x16\x03\x01 no http\r\n\r\n", "HTTP/1.1 400 "},
    {"/http-server/refuses/large-body",
     "POST / HTTP/1.1\r\n" HOST "content-length: 1001\r\n\r\n",
     "HTTP/1.1 413 "},
    {"/http-server/refuses/large-chunk",
     "POST / HTTP/1.1\r\n" HOST "transfer-encoding: chunked\r\n\r\n3e9\r\n",
     "HTTP/1.1 413 "},
    {"/http-server/refuses/bad-chunk",
     "POST / HTTP/1.1\r\n" HOST "transfer-encoding: chunked\r\n\r\nzz\r\n",
     "HTTP/1.1 400 "},
    {"/http-server/refuses/bad-chunk-end",
     "POST / HTTP/1.1\r\n" HOST "transfer-encoding: chunked\r\n\r\n1\r\nabc\r\n",
     "HTTP/1.1 400 "},
    {"/http-server/refuses/other-coding",
     "POST / HTTP/1.1\r\n" HOST "transfer-encoding: gzip\r\n\r\n",
     "HTTP/1.1 501 "},
};

static void
test_refusal(gconstpointer data)
{
    const struct Refusal *refusal = data;
    ChHttpServerOptions options = {.max_body_bytes = 1000};
    Fixture f;
    g_autofree char *answer = NULL;

    fixture_init(&f, &options);
    answer = ask(&f, refusal->request);
    g_assert_true(g_str_has_prefix(answer, refusal->answer));
    g_assert_cmpuint(f.questions->len, ==, 0);
    fixture_clear(&f);
}

/* A reader of C strings would see another length than one of bytes. */
static void
test_nul_in_a_chunk_line_is_refused(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "POST / HTTP/1.1\r\n" HOST "transfer-encoding: chunked\r\n\r\n");
    g_assert_cmpint(send(fd, "0\0001\r\n\r\n", 7, MSG_NOSIGNAL), ==, 7);
    wait_for_text(&f, fd, text, "\r\n\r\n");
    g_assert_true(g_str_has_prefix(text->str, "HTTP/1.1 400 "));
    fixture_clear(&f);
}

static void
test_long_head_is_refused(void)
{
    ChHttpServerOptions options = {.max_header_bytes = 1000};
    Fixture f;
    g_autofree char *filler = g_strnfill(2000, 'a');
    g_autofree char *request = g_strconcat("GET / HTTP/1.1\r\n" HOST "a: ", filler, NULL);
    g_autofree char *answer = NULL;

    fixture_init(&f, &options);
    answer = ask(&f, request);
    g_assert_true(g_str_has_prefix(answer, "HTTP/1.1 431 "));
    fixture_clear(&f);
}

static void
test_connections_are_limited(void)
{
    ChHttpServerOptions options = {.max_connections = 2};
    Fixture f;
    ch_autofd int first = -EBADF;
    ch_autofd int second = -EBADF;
    ch_autofd int third = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);

    fixture_init(&f, &options);
    first = client_connect(&f);
    second = client_connect(&f);
    third = client_connect(&f);
    wait_for_end(&f, third, text);
    g_assert_cmpuint(ch_http_server_n_connections(f.server), ==, 2);
    ch_close_fd(&first);
    test_wait_until(f.loop, ch_http_server_n_connections(f.server) == 1);
    ch_close_fd(&third);
    third = client_connect(&f);
    client_send(third, "GET /again HTTP/1.1\r\n" HOST "\r\n");
    wait_for_text(&f, third, text, "/again");
    fixture_clear(&f);
}

/* A connection that cannot be accepted for want of descriptors waits, and the loop does not spin.
 */
static void
test_out_of_descriptors(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);
    struct rlimit before, none;
    clock_t cpu;

    fixture_init(&f, &options);
    fd = client_connect(&f);
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    none = (struct rlimit){0, before.rlim_max};
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    cpu = clock();
    test_wait_us(f.loop, 150000);
    cpu = clock() - cpu;
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &before), ==, 0);
    g_assert_cmpuint(ch_http_server_n_connections(f.server), ==, 0);
    g_assert_cmpint(cpu, <, CLOCKS_PER_SEC / 15);
    client_send(fd, "GET /late HTTP/1.1\r\n" HOST "\r\n");
    wait_for_text(&f, fd, text, "/late");
    fixture_clear(&f);
}

/* A byte now and then must not keep a connection for ever. */
static void
test_slow_request_is_cut_off(void)
{
    ChHttpServerOptions options = {.request_timeout_us = 100000};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);
    const gint64 start_us = g_get_monotonic_time();

    fixture_init(&f, &options);
    fd = client_connect(&f);
    test_wait_until(f.loop, ((void)send(fd, "G", 1, MSG_NOSIGNAL), !client_read(fd, text)));
    g_assert_cmpint(g_get_monotonic_time() - start_us, >=, 100000);
    fixture_clear(&f);
}

static void
test_idle_connection_is_closed(void)
{
    ChHttpServerOptions options = {.idle_timeout_us = 50000};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "GET /one HTTP/1.1\r\n" HOST "\r\n");
    wait_for_end(&f, fd, text);
    g_assert_nonnull(strstr(text->str, "/one"));
    fixture_clear(&f);
}

static void
test_answer_may_come_later(void)
{
    static const ChHttpHeader type = {"content-type", "text/plain"};
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GBytes) body = g_bytes_new_static("late", 4);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    /* the second request is here before the first is answered */
    client_send(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\nGET /next HTTP/1.1\r\n" HOST "\r\n");
    test_wait_until(f.loop, f.held != NULL);
    g_assert_cmpuint(f.questions->len, ==, 1);
    ch_http_exchange_reply(f.held, 404, &type, 1, body);
    wait_for_text(&f, fd, text, "/next");
    g_assert_true(g_str_has_prefix(text->str, "HTTP/1.1 404 Not Found\r\n"));
    g_assert_nonnull(strstr(text->str, "lateHTTP/1.1 200 OK"));
    fixture_clear(&f);
}

static void
test_answer_to_a_client_that_left_is_dropped(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    const struct linger reset = {.l_onoff = 1};

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    test_wait_until(f.loop, f.held != NULL);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    ch_close_fd(&fd);
    test_wait_until(f.loop, ch_http_server_n_connections(f.server) == 0);
    g_assert_cmpstr(ch_http_exchange_header(f.held, "Host"), ==, "x");
    ch_http_exchange_reply(f.held, 200, NULL, 0, NULL);
    fixture_clear(&f);
}

static void
test_client_that_sends_no_more_gets_its_answer(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
    g_assert_cmpint(shutdown(fd, SHUT_WR), ==, 0);
    test_wait_until(f.loop, f.held != NULL);
    test_wait_us(f.loop, 20000);
    ch_http_exchange_reply(f.held, 204, NULL, 0, NULL);
    wait_for_end(&f, fd, text);
    g_assert_true(g_str_has_prefix(text->str, "HTTP/1.1 204 No Content\r\n"));
    fixture_clear(&f);
}

static void
test_stream_is_chunked_and_ends(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GBytes) hello = g_bytes_new_static("hello", 5);
    g_autoptr(GBytes) nothing = g_bytes_new_static("", 0);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    wait_for_text(&f, fd, text, "transfer-encoding: chunked\r\n\r\n");
    ch_http_exchange_write(f.held, hello);
    ch_http_exchange_write(f.held, nothing);
    g_assert_cmpuint(ch_http_exchange_n_pending(f.held), ==, 10);
    wait_for_text(&f, fd, text, "5\r\nhello\r\n");
    test_wait_until(f.loop, f.n_drained > 0);
    g_assert_cmpuint(ch_http_exchange_n_pending(f.held), ==, 0);
    ch_http_exchange_end(g_steal_pointer(&f.held));
    client_send(fd, "GET /next HTTP/1.1\r\n" HOST "\r\n");
    wait_for_text(&f, fd, text, "/next");
    g_assert_nonnull(strstr(text->str, "5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK"));
    g_assert_cmpuint(f.n_closed, ==, 0);
    fixture_clear(&f);
}

static void
test_old_client_gets_a_stream_until_the_end(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GBytes) hello = g_bytes_new_static("hello", 5);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "GET /stream HTTP/1.0\r\n\r\n");
    test_wait_until(f.loop, f.held != NULL);
    ch_http_exchange_write(f.held, hello);
    wait_for_text(&f, fd, text, "hello");
    ch_http_exchange_end(g_steal_pointer(&f.held)); /* with nothing left to write */
    wait_for_end(&f, fd, text);
    g_assert_true(g_str_has_suffix(text->str, "\r\n\r\nhello"));
    fixture_clear(&f);
}

static void
test_stream_learns_that_its_client_left(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    test_wait_until(f.loop, f.held != NULL);
    ch_close_fd(&fd);
    test_wait_until(f.loop, f.n_closed == 1);
    g_assert_cmpuint(ch_http_server_n_connections(f.server), ==, 0);
    fixture_clear(&f);
}

static void
test_streams_end_with_the_server(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    test_wait_until(f.loop, f.held != NULL);
    fixture_clear(&f);
    g_assert_cmpuint(f.n_closed, ==, 1);
}

static void
test_client_that_does_not_read_is_cut_off(void)
{
    ChHttpServerOptions options = {.request_timeout_us = 100000};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autofree char *much = g_strnfill(16u << 20, 'x');
    g_autoptr(GBytes) bytes = g_bytes_new(much, 16u << 20);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    test_wait_until(f.loop, f.held != NULL);
    ch_http_exchange_write(f.held, bytes);
    test_wait_until(f.loop, f.n_closed == 1);
    fixture_clear(&f);
}

static void
test_head_has_no_body(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    g_autofree char *answer = NULL;

    fixture_init(&f, &options);
    answer = ask(&f, "HEAD /x HTTP/1.1\r\n" HOST "connection: close\r\n\r\n");
    g_assert_nonnull(strstr(answer, "content-length: 9\r\n"));
    g_assert_true(g_str_has_suffix(answer, "\r\n\r\n"));
    fixture_clear(&f);
}

static void
test_head_of_a_stream_has_no_body(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GBytes) hello = g_bytes_new_static("hello", 5);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "HEAD /stream HTTP/1.1\r\n" HOST "\r\nGET /next HTTP/1.1\r\n" HOST "\r\n");
    test_wait_until(f.loop, f.held != NULL);
    ch_http_exchange_write(f.held, hello);
    ch_http_exchange_end(g_steal_pointer(&f.held));
    wait_for_text(&f, fd, text, "/next");
    g_assert_nonnull(strstr(text->str, "chunked\r\n\r\nHTTP/1.1 200 OK"));
    fixture_clear(&f);
}

/* Many requests at once from a client that does not take the answers. */
static void
test_unread_answers_hold_back_requests(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    gsize n_bytes = 0;
    char bytes[65536];
    ssize_t n;

    fixture_init(&f, &options);
    fd = client_connect(&f);
    for (int i = 0; i < 5; i++)
        client_send(fd, "GET /big HTTP/1.1\r\n" HOST "\r\n");
    test_wait_us(f.loop, 50000);
    g_assert_cmpuint(f.questions->len, ==, 1);
    test_wait_until(f.loop, ({
                        while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
                            n_bytes += (gsize)n;
                        n_bytes > 5 * BIG_BYTES;
                    }));
    g_assert_cmpuint(f.questions->len, ==, 5);
    fixture_clear(&f);
}

/* A slow line is not idle: with an answer on it, neither time-out is meant. */
static void
take_slowly(const char *request)
{
    /* long enough for a busy machine, and taking the answer takes longer */
    ChHttpServerOptions options = {.request_timeout_us = 1000000, .idle_timeout_us = 1000000};
    Fixture f;
    ch_autofd int fd = -EBADF;
    gsize n_bytes = 0;
    char bytes[512u << 10];
    ssize_t n = 1;

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, request);
    for (int i = 0; i < 20; i++) {
        test_wait_us(f.loop, 60000);
        n = recv(fd, bytes, sizeof(bytes), 0);
        n_bytes += n > 0 ? (gsize)n : 0;
    }
    test_wait_until(f.loop, ({
                        while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
                            n_bytes += (gsize)n;
                        n == 0;
                    }));
    g_assert_cmpuint(n_bytes, >, BIG_BYTES);
    fixture_clear(&f);
}

static void
test_slow_reader_gets_its_answer(void)
{
    take_slowly("GET /big HTTP/1.1\r\n" HOST "\r\n");
    take_slowly("GET /big HTTP/1.1\r\n" HOST "connection: close\r\n\r\n");
}

static void
test_waiting_body_is_called_for(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    ch_autofd int fd = -EBADF;
    g_autoptr(GString) text = g_string_new(NULL);

    fixture_init(&f, &options);
    fd = client_connect(&f);
    client_send(fd, "PUT /x HTTP/1.1\r\n" HOST "content-length: 2\r\nexpect: 100-continue\r\n\r\n");
    wait_for_text(&f, fd, text, "HTTP/1.1 100 Continue\r\n\r\n");
    client_send(fd, "ok");
    wait_for_text(&f, fd, text, "PUT /x? ok");
    fixture_clear(&f);
}

static void
test_used_port_is_an_error(void)
{
    ChHttpServerOptions options = {0};
    Fixture f;
    g_autoptr(GError) error = NULL;

    fixture_init(&f, &options);
    options.port = ch_http_server_port(f.server);
    g_assert_null(ch_http_server_new(f.loop, &options, on_question, &f, &error));
    g_assert_error(error, CH_ERRNO, EADDRINUSE);
    g_clear_error(&error);
    options.address = "localhost";
    g_assert_null(ch_http_server_new(f.loop, &options, on_question, &f, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    fixture_clear(&f);
}

/* --- TLS -------------------------------------------------------------------------------------- */

/* A blocking client of OpenSSL's own on a thread of its own. */
typedef struct {
    uint16_t port;
    const char *ca_pem;
    char *answer;
    gint is_done;
} TlsClient;

static gpointer
run_tls_client(gpointer data)
{
    TlsClient *client = data;
    const ChTlsClientOptions options = {.ca_pem = client->ca_pem};
    g_autoptr(SSL_CTX) context = ch_tls_client_context_new(&options, NULL);
    SSL *ssl = ch_tls_client_new(context, "127.0.0.1", NULL, NULL);
    const struct sockaddr_in to = {
        .sin_family = AF_INET,
        .sin_port = htons(client->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    ch_autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static const char request[] = "GET /tls HTTP/1.1\r\n" HOST "connection: close\r\n\r\n";
    g_autoptr(GString) text = g_string_new(NULL);
    char bytes[1024];
    int n;

    g_assert_cmpint(connect(fd, (const struct sockaddr *)&to, sizeof(to)), ==, 0);
    SSL_set_fd(ssl, fd);
    g_assert_cmpint(SSL_connect(ssl), ==, 1);
    g_assert_cmpint(SSL_write(ssl, request, sizeof(request) - 1), ==, (int)sizeof(request) - 1);
    while ((n = SSL_read(ssl, bytes, sizeof(bytes))) > 0)
        g_string_append_len(text, bytes, n);
    g_assert_cmpint(SSL_get_error(ssl, n), ==, SSL_ERROR_ZERO_RETURN); /* closed as TLS wants it */
    SSL_free(ssl);
    client->answer = g_string_free(g_steal_pointer(&text), FALSE);
    g_atomic_int_set(&client->is_done, 1);
    return NULL;
}

static void
test_tls(void)
{
    ChHttpServerOptions options = {0};
    TestCert ca, leaf;
    Fixture f;
    g_autoptr(SSL_CTX) context = NULL;
    TlsClient client = {0};
    GThread *thread;
    g_autofree char *plain = NULL;

    test_cert_init(&ca, NULL, NULL, 3600);
    test_cert_init(&leaf, &ca, "IP:127.0.0.1", 3600);
    context = ch_tls_server_context_new(leaf.cert_pem, leaf.key_pem, NULL);
    options.tls = context;
    fixture_init(&f, &options);
    client.port = ch_http_server_port(f.server);
    client.ca_pem = ca.cert_pem;
    thread = g_thread_new("client", run_tls_client, &client);
    test_wait_until(f.loop, g_atomic_int_get(&client.is_done));
    g_thread_join(thread);
    g_assert_true(g_str_has_prefix(client.answer, "HTTP/1.1 200 OK\r\n"));
    g_free(client.answer);
    g_assert_cmpuint(f.questions->len, ==, 1);
    fixture_clear(&f);

    /* plain text is not served, and does not hold its connection */
    options.request_timeout_us = 100000;
    fixture_init(&f, &options);
    plain = ask(&f, "GET /plain HTTP/1.1\r\n" HOST "\r\n");
    g_assert_null(strstr(plain, "200"));

    {
        ch_autofd int silent = client_connect(&f);
        g_autoptr(GString) text = g_string_new(NULL);

        wait_for_end(&f, silent, text);
    }
    g_assert_cmpuint(f.questions->len, ==, 0);
    fixture_clear(&f);
    test_cert_clear(&leaf);
    test_cert_clear(&ca);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http-server/in-order", test_requests_on_one_connection_are_answered_in_order);
    g_test_add_func("/http-server/chunked-body", test_chunked_body_is_put_together);
    for (gsize i = 0; i < G_N_ELEMENTS(refusals); i++)
        g_test_add_data_func(refusals[i].path, &refusals[i], test_refusal);
    g_test_add_func("/http-server/refuses/nul-in-chunk-line", test_nul_in_a_chunk_line_is_refused);
    g_test_add_func("/http-server/refuses/long-head", test_long_head_is_refused);
    g_test_add_func("/http-server/connections-are-limited", test_connections_are_limited);
    g_test_add_func("/http-server/out-of-descriptors", test_out_of_descriptors);
    g_test_add_func("/http-server/slow-request-is-cut-off", test_slow_request_is_cut_off);
    g_test_add_func("/http-server/idle-connection-is-closed", test_idle_connection_is_closed);
    g_test_add_func("/http-server/answer-may-come-later", test_answer_may_come_later);
    g_test_add_func("/http-server/client-left", test_answer_to_a_client_that_left_is_dropped);
    g_test_add_func("/http-server/half-closed", test_client_that_sends_no_more_gets_its_answer);
    g_test_add_func("/http-server/stream", test_stream_is_chunked_and_ends);
    g_test_add_func("/http-server/stream-1-0", test_old_client_gets_a_stream_until_the_end);
    g_test_add_func("/http-server/stream-client-left", test_stream_learns_that_its_client_left);
    g_test_add_func("/http-server/stream-server-ends", test_streams_end_with_the_server);
    g_test_add_func("/http-server/stream-not-read", test_client_that_does_not_read_is_cut_off);
    g_test_add_func("/http-server/head", test_head_has_no_body);
    g_test_add_func("/http-server/head-of-a-stream", test_head_of_a_stream_has_no_body);
    g_test_add_func("/http-server/unread-answers", test_unread_answers_hold_back_requests);
    g_test_add_func("/http-server/slow-reader", test_slow_reader_gets_its_answer);
    g_test_add_func("/http-server/expect-continue", test_waiting_body_is_called_for);
    g_test_add_func("/http-server/used-port", test_used_port_is_an_error);
    g_test_add_func("/http-server/tls", test_tls);
    return g_test_run();
}
