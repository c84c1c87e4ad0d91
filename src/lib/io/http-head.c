/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http-head.h"

#include <string.h>

/* What may stand in a value: no control characters but tabs. */
static bool
is_value(const char *text)
{
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return false;
    }
    return true;
}

static bool
is_target(const char *text)
{
    if (*text != '/')
        return false;
    for (; *text != '\0'; text++) {
        if (!g_ascii_isgraph(*text) || *text == '#')
            return false;
    }
    return true;
}

/* Cuts the line at *@cursor off and moves on. Returns: NULL when it does not end in CR LF. */
static char *
next_line(char **cursor)
{
    char *line = *cursor;
    char *end = strchr(line, '\n');

    if (end == NULL || end == line || end[-1] != '\r')
        return NULL;
    end[-1] = '\0';
    *cursor = end + 1;
    return line;
}

static int
parse_request_line(char *line, ChHttpHead *head)
{
    char *target = strchr(line, ' ');
    char *version = target != NULL ? strchr(target + 1, ' ') : NULL;
    char *query;

    if (version == NULL)
        return 400;
    *target++ = '\0';
    *version++ = '\0';
    if (!ch_http_is_token(line, strlen(line)) || !is_target(target))
        return 400;
    if (!g_str_equal(version, "HTTP/1.1") && !g_str_equal(version, "HTTP/1.0"))
        return g_str_has_prefix(version, "HTTP/") ? 505 : 400;
    query = strchr(target, '?');
    if (query != NULL)
        *query++ = '\0';
    head->method = line;
    head->path = target;
    head->query = query;
    head->is_http_1_0 = g_str_equal(version, "HTTP/1.0");
    return 0;
}

static bool
parse_header(char *line, ChHttpHead *head)
{
    char *colon = strchr(line, ':');
    ChHttpHeader header;

    if (colon == NULL || head->headers->len >= CH_HTTP_HEAD_MAX_HEADERS)
        return false;
    *colon++ = '\0';
    g_strstrip(colon);
    if (!ch_http_is_token(line, strlen(line)) || !is_value(colon))
        return false;
    for (char *c = line; *c != '\0'; c++)
        *c = g_ascii_tolower(*c);
    header.name = line;
    header.value = colon;
    g_array_append_val(head->headers, header);
    return true;
}

/* Whether the comma-separated list has @token. */
static bool
has_token(const char *list, const char *token)
{
    g_auto(GStrv) words = g_strsplit(list, ",", CH_HTTP_HEAD_MAX_HEADERS);

    for (char **word = words; *word != NULL; word++) {
        if (g_ascii_strcasecmp(g_strstrip(*word), token) == 0)
            return true;
    }
    return false;
}

/* Headers that say how the message goes on. Returns: as ch_http_head_parse(). */
static int
apply_header(const ChHttpHeader *header, ChHttpHead *head, bool *has_length, guint *n_hosts)
{
    if (g_str_equal(header->name, "host")) {
        (*n_hosts)++;
    } else if (g_str_equal(header->name, "connection")) {
        if (has_token(header->value, "close"))
            head->keeps_alive = false;
        else if (has_token(header->value, "keep-alive"))
            head->keeps_alive = true;
    } else if (g_str_equal(header->name, "expect")) {
        if (g_ascii_strcasecmp(header->value, "100-continue") != 0)
            return 400;
        head->expects_continue = !head->is_http_1_0;
    } else if (g_str_equal(header->name, "transfer-encoding")) {
        if (head->is_chunked || head->is_http_1_0)
            return 400;
        if (g_ascii_strcasecmp(header->value, "chunked") != 0)
            return 501;
        head->is_chunked = true;
    } else if (g_str_equal(header->name, "content-length")) {
        guint64 length;

        if (*has_length || !g_ascii_isdigit(header->value[0]) ||
            !g_ascii_string_to_unsigned(header->value, 10, 0, G_MAXINT64, &length, NULL))
            return 400;
        head->length = length;
        *has_length = true;
    }
    return 0;
}

static int
apply_headers(ChHttpHead *head)
{
    bool has_length = false;
    guint n_hosts = 0;

    head->keeps_alive = !head->is_http_1_0;
    for (guint i = 0; i < head->headers->len; i++) {
        const ChHttpHeader *header = &g_array_index(head->headers, ChHttpHeader, i);
        const int status = apply_header(header, head, &has_length, &n_hosts);

        if (status != 0)
            return status;
    }
    if ((head->is_chunked && has_length) || n_hosts > 1 || (n_hosts == 0 && !head->is_http_1_0))
        return 400;
    return 0;
}

int
ch_http_head_parse(const char *bytes, gsize length, ChHttpHead *out_head)
{
    g_auto(ChHttpHead) head = {0};
    char *cursor, *line;
    int status;

    if (memchr(bytes, '\0', length) != NULL)
        return 400;
    head.text = g_strndup(bytes, length);
    head.headers = g_array_new(FALSE, FALSE, sizeof(ChHttpHeader));
    cursor = head.text;
    line = next_line(&cursor);
    status = line != NULL ? parse_request_line(line, &head) : 400;
    if (status != 0)
        return status;
    while ((line = next_line(&cursor)) != NULL && *line != '\0') {
        if (!parse_header(line, &head))
            return 400;
    }
    if (line == NULL)
        return 400;
    status = apply_headers(&head);
    if (status != 0)
        return status;
    *out_head = head;
    head = (ChHttpHead){0};
    return 0;
}

void
ch_http_head_clear(ChHttpHead *head)
{
    g_clear_pointer(&head->text, g_free);
    g_clear_pointer(&head->headers, g_array_unref);
    *head = (ChHttpHead){0};
}

const char *
ch_http_reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Entity"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(phrases); i++) {
        if (phrases[i].status == status)
            return phrases[i].phrase;
    }
    return "";
}
