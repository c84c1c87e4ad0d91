/* SPDX-License-Identifier: Apache-2.0 */

/* An HTTP/1.1 answer, whole and in small pieces: both ways must see the same. */

#include "lib/io/http1-parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    int status;
    gsize n_headers;
    gsize body_bytes;
} Seen;

static bool
on_headers(gpointer data, int status, const ChHttpHeader *headers, gsize n_headers)
{
    Seen *seen = data;

    g_assert_cmpint(seen->status, ==, 0);
    g_assert_true(status >= 200 && status <= 999);
    seen->status = status;
    seen->n_headers = n_headers;
    return true;
}

static bool
on_body(gpointer data, const uint8_t *bytes, gsize length)
{
    Seen *seen = data;

    g_assert_cmpint(seen->status, !=, 0);
    seen->body_bytes += length;
    return true;
}

static ChHttp1State
parse(const uint8_t *data, gsize size, gsize piece, Seen *seen)
{
    static const ChHttp1Events events = {on_headers, on_body};
    g_autoptr(ChHttp1Parser) parser = ch_http1_parser_new(false, &events, seen);
    ChHttp1State state = CH_HTTP1_MORE;

    for (gsize at = 0; at < size && state == CH_HTTP1_MORE;) {
        g_autoptr(GError) error = NULL;
        gsize taken = 0;

        state = ch_http1_parser_feed(parser, data + at, MIN(piece, size - at), &taken, &error);
        g_assert_true((state == CH_HTTP1_FAILED) == (error != NULL));
        g_assert_cmpuint(taken, <=, MIN(piece, size - at));
        at += taken;
    }
    return state;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Seen whole = {0}, pieces = {0};

    g_assert_cmpint(parse(data, size, size, &whole), ==, parse(data, size, 3, &pieces));
    g_assert_cmpint(whole.status, ==, pieces.status);
    g_assert_cmpuint(whole.n_headers, ==, pieces.n_headers);
    g_assert_cmpuint(whole.body_bytes, ==, pieces.body_bytes);
    return 0;
}
