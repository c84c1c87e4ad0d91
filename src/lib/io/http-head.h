/* SPDX-License-Identifier: Apache-2.0 */

/*
 * http-head: the head of an HTTP/1.1 request, parsed strictly (RFC 9112).
 *
 * What two readers could understand differently is refused, not guessed: bare line feeds, folded
 * lines, spaces before the colon, two lengths, a length beside a transfer coding. Pure. Thread:
 * any.
 */

#pragma once

#include "lib/io/http-message.h"

#define CH_HTTP_HEAD_MAX_HEADERS 100

typedef struct {
    char *text; /* owned: what everything below points into */
    const char *method;
    const char *path;  /* begins with '/'; as sent */
    const char *query; /* NULL: none */
    GArray *headers;   /* owned, of ChHttpHeader */
    bool is_http_1_0;
    bool keeps_alive;
    bool expects_continue;
    bool is_chunked;
    uint64_t length; /* of the body; 0 when is_chunked */
} ChHttpHead;

/**
 * ch_http_head_parse:
 * @bytes: the head with its empty line at the end
 * @out_head: (out): cleared by ch_http_head_clear(); untouched unless 0 is returned
 *
 * Returns: 0, or the status to refuse with: 400, 501 (transfer coding), 505 (version)
 */
int ch_http_head_parse(const char *bytes, gsize length, ChHttpHead *out_head);
void ch_http_head_clear(ChHttpHead *head);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChHttpHead, ch_http_head_clear)

/* (transfer none): "Not Found"; "" for codes without a name here */
const char *ch_http_reason_phrase(int status);
