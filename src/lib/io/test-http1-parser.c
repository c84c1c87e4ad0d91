/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http1-parser.h"

#include <string.h>

typedef struct {
    GString *body;
    int status;
    int n_calls; /* of on_headers */
    gsize n_headers;
    int stop_at_body; /* the n-th on_body says stop */
} Seen;

static bool
on_headers(gpointer data, int status, const ChHttpHeader *headers, gsize n_headers)
{
    Seen *seen = data;

    seen->status = status;
    seen->n_headers = n_headers;
    seen->n_calls++;
    return true;
}

static bool
on_body(gpointer data, const uint8_t *bytes, gsize length)
{
    Seen *seen = data;

    g_assert_cmpint(seen->n_calls, ==, 1);
    g_string_append_len(seen->body, (const char *)bytes, (gssize)length);
    return seen->stop_at_body == 0 || --seen->stop_at_body > 0;
}

static const ChHttp1Events events = {on_headers, on_body};

typedef struct {
    const char *name;
    const char *answer;
    int state; /* ChHttp1State */
    int status;
    const char *body;
    bool ends_by_close; /* MORE, but complete when the connection ends */
    bool closes;        /* DONE, but the connection cannot be used again */
    bool is_head;
    int code; /* of the error */
    gsize n_left;
} Case;

#define OK "HTTP/1.1 200 OK\r\n"
#define P  CH_HTTP_ERROR_PROTOCOL

/* clang-format off */
static const Case cases[] = {
    {"length", OK "Content-Length: 5\r\n\r\nhello", CH_HTTP1_DONE, 200, "hello"},
    {"length-of-zero", OK "content-length: 0\r\n\r\n", CH_HTTP1_DONE, 200, ""},
    {"same-length-twice", OK "content-length: 1\r\ncontent-length: 1\r\n\r\nx", CH_HTTP1_DONE, 200, "x"},
    {"rest-is-not-taken", OK "content-length: 1\r\n\r\nxyz", CH_HTTP1_DONE, 200, "x", .n_left = 2},
    {"chunked", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
     CH_HTTP1_DONE, 200, "abc0123456789"},
    {"trailers", OK "transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n", CH_HTTP1_DONE, 200, "a"},
    {"chunked-beats-length", OK "content-length: 9\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
     CH_HTTP1_DONE, 200, ""},
    {"bare-line-feeds", "HTTP/1.1 200 OK\ncontent-length: 1\n\nx", CH_HTTP1_DONE, 200, "x"},
    {"no-reason", "HTTP/1.1 404\r\ncontent-length: 0\r\n\r\n", CH_HTTP1_DONE, 404, ""},
    {"until-close", OK "\r\nall of it", CH_HTTP1_MORE, 200, "all of it", .ends_by_close = true},
    {"interim", "HTTP/1.1 100 Continue\r\n\r\n" OK "content-length: 0\r\n\r\n", CH_HTTP1_DONE, 200, ""},
    {"no-content", "HTTP/1.1 204 No Content\r\n\r\n", CH_HTTP1_DONE, 204, ""},
    {"head", OK "content-length: 5\r\n\r\n", CH_HTTP1_DONE, 200, "", .is_head = true},
    {"close", OK "connection: close\r\ncontent-length: 0\r\n\r\n", CH_HTTP1_DONE, 200, "", .closes = true},
    {"old-version", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", CH_HTTP1_DONE, 200, "", .closes = true},
    {"half-a-body", OK "content-length: 5\r\n\r\nhel", CH_HTTP1_MORE, 200, "hel"},
    {"half-a-chunk", OK "transfer-encoding: chunked\r\n\r\n5\r\nhel", CH_HTTP1_MORE, 200, "hel"},
    {"no-last-chunk", OK "transfer-encoding: chunked\r\n\r\n1\r\nx\r\n", CH_HTTP1_MORE, 200, "x"},
    {"half-headers", OK "content-le", CH_HTTP1_MORE, 0, ""},
    {"garbage", "\x16\x03\x01 TLS\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"other-version", "HTTP/2.0 200 OK\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"status-of-letters", "HTTP/1.1 2x0 OK\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"long-status", "HTTP/1.1 2000 OK\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"other-protocol", "HTTP/1.1 101 Switching\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"header-without-colon", OK "oops\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"blank-before-colon", OK "a : b\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"continued-header", OK "a: b\r\n c\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"carriage-return-in-line", OK "a: b\rc\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"two-lengths", OK "content-length: 1\r\ncontent-length: 2\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"negative-length", OK "content-length: -1\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"huge-length", OK "content-length: 99999999999999999999\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"list-of-lengths", OK "content-length: 1, 1\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"other-coding", OK "transfer-encoding: gzip, chunked\r\n\r\n", CH_HTTP1_FAILED, 0, "", .code = P},
    {"no-chunk-size", OK "transfer-encoding: chunked\r\n\r\n\r\n", CH_HTTP1_FAILED, 200, "", .code = P},
    {"huge-chunk", OK "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n", CH_HTTP1_FAILED, 200, "", .code = P},
    {"negative-chunk", OK "transfer-encoding: chunked\r\n\r\n-1\r\n", CH_HTTP1_FAILED, 200, "", .code = P},
    {"chunk-longer-than-said", OK "transfer-encoding: chunked\r\n\r\n1\r\nxy\r\n", CH_HTTP1_FAILED, 200, "x", .code = P},
};
/* clang-format on */

/* Feeds in pieces of @piece bytes. */
static void
check(const Case *c, gsize piece)
{
    const gsize length = strlen(c->answer);
    Seen seen = {.body = g_string_new(NULL)};
    g_autoptr(ChHttp1Parser) parser = ch_http1_parser_new(c->is_head, &events, &seen);
    g_autoptr(GError) error = NULL;
    ChHttp1State state = CH_HTTP1_MORE;
    gsize at = 0;

    while (at < length && state == CH_HTTP1_MORE) {
        gsize taken = 0;

        state = ch_http1_parser_feed(
            parser, (const uint8_t *)c->answer + at, MIN(piece, length - at), &taken, &error);
        at += taken;
    }
    g_assert_cmpint(state, ==, c->state);
    g_assert_cmpint(seen.status, ==, c->status);
    g_assert_cmpstr(seen.body->str, ==, c->body);
    if (state == CH_HTTP1_FAILED)
        g_assert_error(error, CH_HTTP_ERROR, c->code);
    else
        g_assert_no_error(error);
    if (state == CH_HTTP1_MORE)
        g_assert_cmpint(ch_http1_parser_end(parser), ==, c->ends_by_close);
    if (state == CH_HTTP1_DONE) {
        g_assert_cmpint(ch_http1_parser_keeps_alive(parser), ==, !c->closes);
        g_assert_cmpuint(length - at, ==, c->n_left);
    }
    g_string_free(seen.body, TRUE);
}

static void
test_case(gconstpointer data)
{
    check(data, G_MAXSIZE);
    check(data, 7);
    check(data, 1);
}

static void
expect_limit(const char *head, const char *line, gsize n_lines)
{
    g_autoptr(GString) answer = g_string_new(head);
    Seen seen = {.body = g_string_new(NULL)};
    g_autoptr(ChHttp1Parser) parser = ch_http1_parser_new(false, &events, &seen);
    g_autoptr(GError) error = NULL;
    gsize taken;

    for (gsize i = 0; i < n_lines; i++)
        g_string_append(answer, line);
    g_assert_cmpint(
        ch_http1_parser_feed(parser, (const uint8_t *)answer->str, answer->len, &taken, &error),
        ==,
        CH_HTTP1_FAILED);
    g_assert_error(error, CH_HTTP_ERROR, CH_HTTP_ERROR_LIMIT);
    g_string_free(seen.body, TRUE);
}

static void
test_limits(void)
{
    expect_limit(OK "a: ", "xxxxxxxxxxxxxxxx", 70000);        /* one endless line */
    expect_limit(OK, "a: b\r\n", 30000);                      /* many small ones */
    expect_limit("", "HTTP/1.1 100 Continue\r\n\r\n", 50000); /* no end of interim answers */
    expect_limit(OK "transfer-encoding: chunked\r\n\r\n1;", "x", 5000);
    expect_limit(OK "transfer-encoding: chunked\r\n\r\n0\r\n", "a: b\r\n", 200000);
}

static void
test_callback_stops(void)
{
    const char *answer = OK "transfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n";
    Seen seen = {.body = g_string_new(NULL), .stop_at_body = 1};
    g_autoptr(ChHttp1Parser) parser = ch_http1_parser_new(false, &events, &seen);
    g_autoptr(GError) error = NULL;
    gsize taken;

    g_assert_cmpint(
        ch_http1_parser_feed(parser, (const uint8_t *)answer, strlen(answer), &taken, &error),
        ==,
        CH_HTTP1_STOPPED);
    g_assert_cmpstr(seen.body->str, ==, "a");
    g_string_free(seen.body, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/http1-parser/%s", cases[i].name);

        g_test_add_data_func(path, &cases[i], test_case);
    }
    g_test_add_func("/http1-parser/limits", test_limits);
    g_test_add_func("/http1-parser/callback-stops", test_callback_stops);
    return g_test_run();
}
