/* SPDX-License-Identifier: Apache-2.0 */

/*
 * http1-parser: the bytes of one HTTP/1.1 answer, in pieces of any size.
 *
 * Strict where leniency is how messages get smuggled (lengths, line ends, header names), and bound
 * in what it stores: only header lines, up to CH_HTTP_MAX_HEADER_BYTES with those of interim
 * answers and trailers. The body passes through. Pure. Thread: the owner's.
 */

#pragma once

#include "lib/io/http-message.h"

typedef struct ChHttp1Parser ChHttp1Parser;

typedef enum {
    CH_HTTP1_MORE = 0, /* the answer goes on */
    CH_HTTP1_DONE,     /* it is complete */
    CH_HTTP1_FAILED,   /* CH_HTTP_ERROR PROTOCOL or LIMIT is set; feed no more */
    CH_HTTP1_STOPPED,  /* a callback said false */
} ChHttp1State;

/* Both return false to stop the parsing at once (their owner is gone). */
typedef struct {
    bool (*on_headers)(gpointer data, int status, const ChHttpHeader *headers, gsize n_headers);
    bool (*on_body)(gpointer data, const uint8_t *bytes, gsize length);
} ChHttp1Events;

/* @is_head: the answer to a HEAD request: it has no body whatever its headers say */
ChHttp1Parser *ch_http1_parser_new(bool is_head, const ChHttp1Events *events, gpointer data);
void ch_http1_parser_free(ChHttp1Parser *parser);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChHttp1Parser, ch_http1_parser_free)

/**
 * ch_http1_parser_feed:
 * @out_taken: (out): bytes of @bytes that belong to the answer; written on MORE and DONE
 */
ChHttp1State ch_http1_parser_feed(
    ChHttp1Parser *parser, const uint8_t *bytes, gsize length, gsize *out_taken, GError **error);

/* The connection ended here. Returns: true: the answer is complete by that (it has no length). */
bool ch_http1_parser_end(const ChHttp1Parser *parser);

/* The connection can take another request; asked after DONE. */
bool ch_http1_parser_keeps_alive(const ChHttp1Parser *parser);
