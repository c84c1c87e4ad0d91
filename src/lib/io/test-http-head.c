/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http-head.h"

#include <string.h>

#define HOST "host: x\r\n"

static const struct Refusal {
    const char *path;
    const char *head;
    int status;
} refusals[] = {
    {"/http-head/bare-line-feed", "GET / HTTP/1.1\nhost: x\n\n", 400},
    {"/http-head/no-version", "GET /\r\n" HOST "\r\n", 400},
    {"/http-head/other-version", "GET / HTTP/2.0\r\n" HOST "\r\n", 505},
    {"/http-head/absolute-target", "GET http://x/ HTTP/1.1\r\n" HOST "\r\n", 400},
    {"/http-head/space-in-target", "GET /a b HTTP/1.1\r\n" HOST "\r\n", 400},
    {"/http-head/control-in-target", "GET /a\x01 HTTP/1.1\r\n" HOST "\r\n", 400},
    {"/http-head/bad-method", "G(T / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"/http-head/folded-line", "GET / HTTP/1.1\r\n" HOST "a: b\r\n c\r\n\r\n", 400},
    {"/http-head/space-before-colon", "GET / HTTP/1.1\r\n" HOST "a : b\r\n\r\n", 400},
    {"/http-head/control-in-value", "GET / HTTP/1.1\r\n" HOST "a: b\x01\r\n\r\n", 400},
    {"/http-head/carriage-return-in-value", "GET / HTTP/1.1\r\n" HOST "a: b\rc\r\n\r\n", 400},
    {"/http-head/no-host", "GET / HTTP/1.1\r\n\r\n", 400},
    {"/http-head/two-hosts", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400},
    {"/http-head/two-lengths",
     "GET / HTTP/1.1\r\n" HOST "content-length: 1\r\ncontent-length: 1\r\n\r\n",
     400},
    {"/http-head/signed-length", "GET / HTTP/1.1\r\n" HOST "content-length: +1\r\n\r\n", 400},
    {"/http-head/length-list", "GET / HTTP/1.1\r\n" HOST "content-length: 1, 1\r\n\r\n", 400},
    {"/http-head/huge-length",
     "GET / HTTP/1.1\r\n" HOST "content-length: 99999999999999999999\r\n\r\n",
     400},
    {"/http-head/length-beside-coding",
     "GET / HTTP/1.1\r\n" HOST "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
     400},
    {"/http-head/other-coding", "GET / HTTP/1.1\r\n" HOST "transfer-encoding: gzip\r\n\r\n", 501},
    {"/http-head/coding-list",
     "GET / HTTP/1.1\r\n" HOST "transfer-encoding: gzip, chunked\r\n\r\n",
     501},
    {"/http-head/coding-twice",
     "GET / HTTP/1.1\r\n" HOST "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
     400},
    {"/http-head/coding-in-1-0", "GET / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n", 400},
    {"/http-head/other-expectation", "GET / HTTP/1.1\r\n" HOST "expect: coffee\r\n\r\n", 400},
    {"/http-head/no-empty-line", "GET / HTTP/1.1\r\n" HOST, 400},
    {"/http-head/empty", "", 400},
};

static void
test_refusal(gconstpointer data)
{
    const struct Refusal *refusal = data;
    ChHttpHead head = {.method = "untouched"};

    g_assert_cmpint(
        ch_http_head_parse(refusal->head, strlen(refusal->head), &head), ==, refusal->status);
    g_assert_cmpstr(head.method, ==, "untouched");
}

static void
test_nul_is_refused(void)
{
    static const char text[] = "GET /\0 HTTP/1.1\r\n" HOST "\r\n";
    ChHttpHead head;

    g_assert_cmpint(ch_http_head_parse(text, sizeof(text) - 1, &head), ==, 400);
}

static void
test_plain_request(void)
{
    static const char text[] = "POST /a/b?c=d%20&e?f HTTP/1.1\r\nHost: x\r\nX-Y:  two words \t\r\n"
                               "Content-Length: 17\r\nExpect: 100-Continue\r\n\r\n";
    g_auto(ChHttpHead) head = {0};

    g_assert_cmpint(ch_http_head_parse(text, strlen(text), &head), ==, 0);
    g_assert_cmpstr(head.method, ==, "POST");
    g_assert_cmpstr(head.path, ==, "/a/b");
    g_assert_cmpstr(head.query, ==, "c=d%20&e?f");
    g_assert_cmpuint(head.headers->len, ==, 4);
    g_assert_cmpstr(g_array_index(head.headers, ChHttpHeader, 1).name, ==, "x-y");
    g_assert_cmpstr(g_array_index(head.headers, ChHttpHeader, 1).value, ==, "two words");
    g_assert_cmpuint(head.length, ==, 17);
    g_assert_true(head.expects_continue);
    g_assert_true(head.keeps_alive);
    g_assert_false(head.is_chunked);
}

static bool
keeps_alive(const char *text)
{
    g_auto(ChHttpHead) head = {0};

    g_assert_cmpint(ch_http_head_parse(text, strlen(text), &head), ==, 0);
    return head.keeps_alive;
}

static void
test_connection_header_decides_keep_alive(void)
{
    g_assert_true(keeps_alive("GET / HTTP/1.1\r\n" HOST "\r\n"));
    g_assert_false(keeps_alive("GET / HTTP/1.1\r\n" HOST "connection: x, Close\r\n\r\n"));
    g_assert_false(keeps_alive("GET / HTTP/1.0\r\n\r\n"));
    g_assert_true(keeps_alive("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"));
}

static void
test_headers_are_counted(void)
{
    g_autoptr(GString) text = g_string_new("GET / HTTP/1.1\r\n" HOST);
    g_auto(ChHttpHead) head = {0};
    ChHttpHead none;

    for (int i = 1; i < CH_HTTP_HEAD_MAX_HEADERS; i++)
        g_string_append(text, "a: b\r\n");
    g_string_append(text, "\r\n");
    g_assert_cmpint(ch_http_head_parse(text->str, text->len, &head), ==, 0);
    g_string_insert(text, (gssize)text->len - 2, "a: b\r\n");
    g_assert_cmpint(ch_http_head_parse(text->str, text->len, &none), ==, 400);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(refusals); i++)
        g_test_add_data_func(refusals[i].path, &refusals[i], test_refusal);
    g_test_add_func("/http-head/nul", test_nul_is_refused);
    g_test_add_func("/http-head/plain-request", test_plain_request);
    g_test_add_func("/http-head/keep-alive", test_connection_header_decides_keep_alive);
    g_test_add_func("/http-head/headers-are-counted", test_headers_are_counted);
    return g_test_run();
}
