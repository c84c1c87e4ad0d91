/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http-message.h"

#include <string.h>

#include "lib/base/errors.h"

G_DEFINE_QUARK(ch - http - error - quark, ch_http_error)

static void
clear_header(gpointer data)
{
    ChHttpHeader *header = data;

    g_free((char *)header->name);
    g_free((char *)header->value);
}

GArray *
ch_http_headers_new(void)
{
    GArray *headers = g_array_new(FALSE, FALSE, sizeof(ChHttpHeader));

    g_array_set_clear_func(headers, clear_header);
    return headers;
}

void
ch_http_headers_add(
    GArray *headers, const char *name, gsize name_length, const char *value, gsize value_length)
{
    const ChHttpHeader header = {g_strndup(name, name_length), g_strndup(value, value_length)};

    g_array_append_val(headers, header);
}

const ChHttpHeader *
ch_http_headers_peek(const GArray *headers)
{
    return (const ChHttpHeader *)(gpointer)headers->data;
}

const char *
ch_http_header_get(const ChHttpHeader *headers, gsize n_headers, const char *name)
{
    for (gsize i = 0; i < n_headers; i++) {
        if (g_ascii_strcasecmp(headers[i].name, name) == 0)
            return headers[i].value;
    }
    return NULL;
}

bool
ch_http_is_token(const char *text, gsize length)
{
    for (gsize i = 0; i < length; i++) {
        if (!g_ascii_isalnum(text[i]) &&
            (text[i] == '\0' || strchr("!#$%&'*+-.^_`|~", text[i]) == NULL))
            return false;
    }
    return length > 0;
}

bool
ch_http_chunk_length(const char *line, gsize *out_length)
{
    const gsize n_digits = strspn(line, "0123456789abcdefABCDEF");
    const char *rest = line + n_digits + strspn(line + n_digits, " \t");

    if (n_digits == 0 || n_digits > 8 || (*rest != '\0' && *rest != ';'))
        return false;
    *out_length = g_ascii_strtoull(line, NULL, 16);
    return true;
}

GError *
ch_http_error_new_lost(int errnum)
{
    char text[CH_ERRNO_TEXT_SIZE];

    return g_error_new_literal(CH_HTTP_ERROR,
                               CH_HTTP_ERROR_RESET,
                               errnum != 0 ? ch_errno_print(errnum, text)
                                           : "connection lost in TLS");
}
