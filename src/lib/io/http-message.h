/* SPDX-License-Identifier: Apache-2.0 */

/*
 * http-message: the words that the HTTP client, its HTTP/2 session and the server share: headers,
 * and the errors of a request. Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Header names and values of one message may take this much, counted as HTTP/2 does: 32 bytes more
 * for each header. */
#define CH_HTTP_MAX_HEADER_BYTES (1u << 20)

#define CH_HTTP_ERROR (ch_http_error_quark())
GQuark ch_http_error_quark(void);

typedef enum {
    CH_HTTP_ERROR_REFUSED = 1, /* connection refused: nothing reached the server */
    CH_HTTP_ERROR_CONNECT,     /* any other failure to connect (name, route, time-out) */
    CH_HTTP_ERROR_TLS,         /* handshake or certificate */
    CH_HTTP_ERROR_RESET,       /* connection reset or lost */
    CH_HTTP_ERROR_EOF,         /* closed in mid-answer, or before one */
    CH_HTTP_ERROR_UNSENT, /* GOAWAY or REFUSED_STREAM: the server says that it did not process it */
    CH_HTTP_ERROR_PROTOCOL, /* the server's bytes are no HTTP */
    CH_HTTP_ERROR_LIMIT,    /* header list beyond the limit */
    CH_HTTP_ERROR_TIMEOUT,  /* the request's own deadline */
    CH_HTTP_ERROR_STREAM,   /* HTTP/2: the server reset this stream, other than by REFUSED_STREAM */
} ChHttpErrorCode;

typedef struct {
    const char *name; /* lower-case */
    const char *value;
} ChHttpHeader;

/* Where an answer is delivered to. on_end comes exactly once and last, unless the request was
 * cancelled: then nothing comes any more. */
typedef struct {
    void (*on_headers)(gpointer data, int status, const ChHttpHeader *headers, gsize n_headers);
    void (*on_body)(gpointer data, const uint8_t *bytes, gsize length);
    void (*on_end)(gpointer data, const GError *error /* NULL: complete */);
} ChHttpSink;

/* (transfer full): an array of ChHttpHeader that owns its strings; g_array_unref() frees both. */
GArray *ch_http_headers_new(void);
/* Copies both. */
void ch_http_headers_add(
    GArray *headers, const char *name, gsize name_length, const char *value, gsize value_length);
/* Borrowed: the elements, headers->len of them. */
const ChHttpHeader *ch_http_headers_peek(const GArray *headers);

/* Case-insensitive look-up; borrowed, NULL when absent. */
const char *ch_http_header_get(const ChHttpHeader *headers, gsize n_headers, const char *name);

/* Whether @text may be a header's name or a method (RFC 9110 §5.6.2). */
bool ch_http_is_token(const char *text, gsize length);

/* The length on a chunk's line ("1a4;ext=1", without its line end); extensions are skipped.
 * Returns: false: no chunk line, or beyond 2^32 */
bool ch_http_chunk_length(const char *line, gsize *out_length);

/**
 * ch_http_error_new_lost: CH_HTTP_ERROR_RESET.
 * @errnum: of the failed read or write; 0: TLS failed
 *
 * Returns: (transfer full): with the text that Go has ("connection reset by peer")
 */
GError *ch_http_error_new_lost(int errnum);
