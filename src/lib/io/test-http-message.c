/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http-message.h"

#include <errno.h>
#include <string.h>

static void
test_lookup_ignores_case(void)
{
    static const ChHttpHeader headers[] = {{"content-type", "a"}, {"Retry-After", "5"}};

    g_assert_cmpstr(ch_http_header_get(headers, 2, "Content-Type"), ==, "a");
    g_assert_cmpstr(ch_http_header_get(headers, 2, "retry-after"), ==, "5");
    g_assert_null(ch_http_header_get(headers, 1, "retry-after"));
    g_assert_null(ch_http_header_get(NULL, 0, "retry-after"));
}

static void
test_lost_has_gos_text(void)
{
    g_autoptr(GError) reset = ch_http_error_new_lost(ECONNRESET);
    g_autoptr(GError) tls = ch_http_error_new_lost(0);

    g_assert_error(reset, CH_HTTP_ERROR, CH_HTTP_ERROR_RESET);
    g_assert_cmpstr(reset->message, ==, "connection reset by peer");
    g_assert_error(tls, CH_HTTP_ERROR, CH_HTTP_ERROR_RESET);
}

static void
test_chunk_lines(void)
{
    gsize length = 0;

    g_assert_true(ch_http_chunk_length("1aF", &length));
    g_assert_cmpuint(length, ==, 0x1af);
    g_assert_true(ch_http_chunk_length("0;name=value", &length));
    g_assert_cmpuint(length, ==, 0);
    g_assert_true(ch_http_chunk_length("5 \t;x", &length));
    g_assert_false(ch_http_chunk_length("5 5", &length));
    g_assert_false(ch_http_chunk_length("", &length));
    g_assert_false(ch_http_chunk_length("-1", &length));
    g_assert_false(ch_http_chunk_length("0x1", &length));
    g_assert_false(ch_http_chunk_length("123456789", &length));
}

static void
test_headers_own_their_strings(void)
{
    g_autoptr(GArray) headers = ch_http_headers_new();
    char name[] = "a: one", *value = name + 3;

    ch_http_headers_add(headers, name, 1, value, 3);
    memset(name, 'x', sizeof(name) - 1);
    g_assert_cmpstr(
        ch_http_header_get(ch_http_headers_peek(headers), headers->len, "A"), ==, "one");
}

static void
test_tokens(void)
{
    g_assert_true(ch_http_is_token("x-Y_1", 5));
    g_assert_true(ch_http_is_token("a b", 1));
    g_assert_false(ch_http_is_token("a b", 3));
    g_assert_false(ch_http_is_token("", 0));
    g_assert_false(ch_http_is_token("a\0", 2));
    g_assert_false(ch_http_is_token("a:", 2));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http-message/lookup-ignores-case", test_lookup_ignores_case);
    g_test_add_func("/http-message/lost-has-gos-text", test_lost_has_gos_text);
    g_test_add_func("/http-message/headers-own-their-strings", test_headers_own_their_strings);
    g_test_add_func("/http-message/tokens", test_tokens);
    g_test_add_func("/http-message/chunk-lines", test_chunk_lines);
    return g_test_run();
}
