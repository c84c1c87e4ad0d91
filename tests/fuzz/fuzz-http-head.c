/* SPDX-License-Identifier: Apache-2.0 */

/* The head of an HTTP/1.1 request, and the same bytes as a chunk's line. */

#include "lib/io/http-head.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *line = g_strndup((const char *)data, size);
    g_auto(ChHttpHead) head = {0};
    gsize length = 0;
    const int status = ch_http_head_parse((const char *)data, size, &head);

    if (status == 0) {
        g_assert_cmpint(head.path[0], ==, '/');
        g_assert_null(strpbrk(head.path, " \r\n"));
        g_assert_true(!head.is_chunked || head.length == 0);
        g_assert_cmpuint(head.headers->len, <=, CH_HTTP_HEAD_MAX_HEADERS);
        for (guint i = 0; i < head.headers->len; i++)
            g_assert_null(strpbrk(g_array_index(head.headers, ChHttpHeader, i).value, "\r\n"));
    } else {
        g_assert_null(head.text);
        g_assert_true(status == 400 || status == 501 || status == 505);
    }
    if (ch_http_chunk_length(line, &length))
        g_assert_cmpuint(length, <=, G_MAXUINT32);
    return 0;
}
