/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/request.h"

#include <string.h>

#define METHOD "GET "
#define PATH   "/metrics/XML"

#define DIGITS   "0123456789"
#define LETTERS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HOST_SET LETTERS DIGITS "-._~[]:"
#define SCHEME   LETTERS DIGITS "+-."

/* How many of the first bytes are in @set. */
static gsize
span(const char *bytes, gsize n_bytes, const char *set)
{
    gsize n = 0;

    while (n < n_bytes && bytes[n] != '\0' && strchr(set, bytes[n]) != NULL)
        n++;
    return n;
}

static int
hex_pair(const char *bytes, gsize n_bytes)
{
    if (n_bytes < 2 || !g_ascii_isxdigit(bytes[0]) || !g_ascii_isxdigit(bytes[1]))
        return -1;
    return g_ascii_xdigit_value(bytes[0]) << 4 | g_ascii_xdigit_value(bytes[1]);
}

/* The path up to the query, its escapes resolved. */
static bool
path_is_good(const char *path, gsize n_bytes)
{
    gsize at = 0;

    for (gsize i = 0; i < n_bytes && path[i] != '?'; i++) {
        int c = (guchar)path[i];

        if (c == '%') {
            c = hex_pair(path + i + 1, n_bytes - i - 1);
            i += 2;
        }
        if (at == strlen(PATH) || c != PATH[at])
            return false;
        at++;
    }
    return at == strlen(PATH);
}

/* Skips "scheme://host", if that is there. @n_bytes: in and out */
static const char *
skip_origin(const char *uri, gsize *n_bytes)
{
    const gsize scheme = span(uri, *n_bytes, SCHEME);
    gsize host;

    if (scheme == 0 || !g_ascii_isalpha(uri[0]) || *n_bytes - scheme < 3 ||
        memcmp(uri + scheme, "://", 3) != 0)
        return uri;
    host = span(uri + scheme + 3, *n_bytes - scheme - 3, HOST_SET);
    *n_bytes -= scheme + 3 + host;
    return uri + scheme + 3 + host;
}

bool
ch_metrics_request_is_good(const char *line, gsize length)
{
    const gsize method = strlen(METHOD);
    const char *path;

    if (length < method || memcmp(line, METHOD, method) != 0)
        return false;
    for (gsize i = 0; i < length; i++)
        if ((guchar)line[i] < 0x20 || line[i] == 0x7f)
            return false;
    length -= method;
    path = skip_origin(line + method, &length);
    return path_is_good(path, length);
}

/* The line at the start of @bytes. @out_length: without its end; @out_taken: with it. Returns:
 * false when it has no end yet */
static bool
find_line(const char *bytes, gsize n_bytes, gsize *out_length, gsize *out_taken)
{
    const char *end = n_bytes > 0 ? memchr(bytes, '\n', n_bytes) : NULL;

    if (end == NULL)
        return false;
    *out_taken = (gsize)(end - bytes) + 1;
    *out_length = *out_taken - 1;
    if (*out_length > 0 && bytes[*out_length - 1] == '\r')
        (*out_length)--;
    return true;
}

ChMetricsRequest
ch_metrics_request_take(const char *bytes, gsize n_bytes, gsize *out_taken)
{
    gsize length, taken, blank_length, blank_taken;

    *out_taken = 0;
    if (!find_line(bytes, n_bytes, &length, &taken) ||
        !find_line(bytes + taken, n_bytes - taken, &blank_length, &blank_taken)) {
        if (n_bytes < CH_METRICS_REQUEST_MAX)
            return CH_METRICS_REQUEST_PART;
        *out_taken = n_bytes;
        return CH_METRICS_REQUEST_MALFORMED;
    }
    if (blank_length > 0) {
        *out_taken = n_bytes;
        return CH_METRICS_REQUEST_MALFORMED;
    }
    *out_taken = taken + blank_taken;
    return ch_metrics_request_is_good(bytes, length) ? CH_METRICS_REQUEST_GOOD
                                                     : CH_METRICS_REQUEST_BAD;
}
