/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http1-parser.h"

#include <string.h>

#define MAX_CHUNK_LINE_BYTES 4096

typedef enum {
    STEP_STATUS_LINE,
    STEP_HEADER,
    STEP_BODY_LENGTH,    /* `left` bytes */
    STEP_BODY_UNTIL_END, /* of the connection */
    STEP_CHUNK_SIZE,
    STEP_CHUNK_DATA, /* `left` bytes */
    STEP_CHUNK_END,  /* the line end behind a chunk */
    STEP_TRAILER,
    STEP_DONE,
} Step;

struct ChHttp1Parser {
    Step step;
    ChHttp1Events events;
    gpointer data;
    bool is_head;
    GString *line;      /* what came of a line that is not complete */
    gsize header_bytes; /* so far, of all blocks */
    GArray *headers;    /* ChHttpHeader with owned strings */
    int status;
    bool is_version_1_0;
    uint64_t left;
};

static bool
fail(GError **error, int code /* ChHttpErrorCode */, const char *what)
{
    g_set_error(error, CH_HTTP_ERROR, code, "bad HTTP/1.1: %s", what);
    return false;
}

static bool
fail_protocol(GError **error, const char *what)
{
    return fail(error, CH_HTTP_ERROR_PROTOCOL, what);
}

/* Status line and headers */

static bool
parse_status_line(ChHttp1Parser *parser, GError **error)
{
    const char *line = parser->line->str;

    if (parser->line->len < 12 || strncmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' ||
        (line[7] != '0' && line[7] != '1') || (line[12] != ' ' && line[12] != '\0'))
        return fail_protocol(error, "status line");
    for (int i = 9; i < 12; i++) {
        if (!g_ascii_isdigit(line[i]))
            return fail_protocol(error, "status line");
    }
    parser->is_version_1_0 = line[7] == '0';
    parser->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    if (parser->status < 100 || parser->status == 101) /* nobody asked for another protocol */
        return fail_protocol(error, "status");
    parser->step = STEP_HEADER;
    return true;
}

static bool
parse_header(ChHttp1Parser *parser, GError **error)
{
    const char *line = parser->line->str;
    const char *colon = strchr(line, ':');
    ChHttpHeader header;

    if (colon == NULL || !ch_http_is_token(line, (gsize)(colon - line)))
        return fail_protocol(error, "header"); /* continued lines (RFC 9112 §5.2) end here, too */
    header.name = g_ascii_strdown(line, colon - line);
    header.value = g_strstrip(g_strdup(colon + 1));
    g_array_append_val(parser->headers, header);
    return true;
}

/* One length, said once or several times alike. */
static bool
parse_length(ChHttp1Parser *parser, bool *out_has_length, GError **error)
{
    const ChHttpHeader *headers = ch_http_headers_peek(parser->headers);
    bool has_length = false;

    for (guint i = 0; i < parser->headers->len; i++) {
        guint64 length;

        if (!g_str_equal(headers[i].name, "content-length"))
            continue;
        if (!g_ascii_string_to_unsigned(headers[i].value, 10, 0, G_MAXINT64, &length, NULL) ||
            (has_length && length != parser->left))
            return fail_protocol(error, "content-length");
        parser->left = length;
        has_length = true;
    }
    *out_has_length = has_length;
    return true;
}

static bool
has_no_body(const ChHttp1Parser *parser)
{
    return parser->is_head || parser->status == 204 || parser->status == 304;
}

/* Where the body's end is (RFC 9112 §6.3). */
static bool
choose_body(ChHttp1Parser *parser, GError **error)
{
    const char *coding = ch_http_header_get(
        ch_http_headers_peek(parser->headers), parser->headers->len, "transfer-encoding");
    bool has_length;

    if (!parse_length(parser, &has_length, error))
        return false;
    if (has_no_body(parser)) {
        parser->step = STEP_DONE;
    } else if (coding != NULL) {
        if (g_ascii_strcasecmp(coding, "chunked") != 0)
            return fail_protocol(error, "transfer-encoding");
        parser->step = STEP_CHUNK_SIZE;
    } else if (has_length) {
        parser->step = parser->left > 0 ? STEP_BODY_LENGTH : STEP_DONE;
    } else {
        parser->step = STEP_BODY_UNTIL_END;
    }
    return true;
}

static ChHttp1State
end_of_headers(ChHttp1Parser *parser, GError **error)
{
    if (parser->status < 200) { /* interim: the real one follows */
        g_array_set_size(parser->headers, 0);
        parser->step = STEP_STATUS_LINE;
        return CH_HTTP1_MORE;
    }
    if (!choose_body(parser, error))
        return CH_HTTP1_FAILED;
    if (!parser->events.on_headers(parser->data,
                                   parser->status,
                                   ch_http_headers_peek(parser->headers),
                                   parser->headers->len))
        return CH_HTTP1_STOPPED;
    return CH_HTTP1_MORE;
}

/* Chunks */

static bool
parse_chunk_size(ChHttp1Parser *parser, GError **error)
{
    gsize length;

    if (!ch_http_chunk_length(parser->line->str, &length))
        return fail_protocol(error, "chunk size");
    parser->left = length;
    parser->step = parser->left > 0 ? STEP_CHUNK_DATA : STEP_TRAILER;
    return true;
}

/* Lines */

static bool
is_line_step(Step step)
{
    return step == STEP_STATUS_LINE || step == STEP_HEADER || step == STEP_CHUNK_SIZE ||
           step == STEP_CHUNK_END || step == STEP_TRAILER;
}

static bool
count_line_bytes(ChHttp1Parser *parser, gsize length, GError **error)
{
    const bool is_chunk = parser->step == STEP_CHUNK_SIZE || parser->step == STEP_CHUNK_END;

    if (is_chunk)
        return parser->line->len + length <= MAX_CHUNK_LINE_BYTES ||
               fail(error, CH_HTTP_ERROR_LIMIT, "chunk size line too long");
    parser->header_bytes += length;
    return parser->header_bytes <= CH_HTTP_MAX_HEADER_BYTES ||
           fail(error, CH_HTTP_ERROR_LIMIT, "headers too long");
}

/* Cuts the line's end off; what is left must be text. */
static bool
trim_line(GString *line, GError **error)
{
    g_string_truncate(line, line->len - 1);
    if (line->len > 0 && line->str[line->len - 1] == '\r')
        g_string_truncate(line, line->len - 1);
    if (memchr(line->str, '\0', line->len) != NULL || memchr(line->str, '\r', line->len) != NULL)
        return fail_protocol(error, "control character in a line");
    return true;
}

static ChHttp1State
take_line(ChHttp1Parser *parser, GError **error)
{
    const bool is_empty = parser->line->len == 0;
    bool is_good = true;

    switch (parser->step) {
    case STEP_STATUS_LINE:
        is_good = parse_status_line(parser, error);
        break;
    case STEP_HEADER:
        if (is_empty)
            return end_of_headers(parser, error);
        /* Each costs more here than its bytes. */
        is_good = count_line_bytes(parser, 32, error) && parse_header(parser, error);
        break;
    case STEP_CHUNK_SIZE:
        is_good = parse_chunk_size(parser, error);
        break;
    case STEP_CHUNK_END:
        is_good = is_empty || fail_protocol(error, "chunk longer than its size");
        parser->step = STEP_CHUNK_SIZE;
        break;
    case STEP_TRAILER: /* read over: nobody uses them */
        if (is_empty)
            parser->step = STEP_DONE;
        break;
    case STEP_BODY_LENGTH:
    case STEP_BODY_UNTIL_END:
    case STEP_CHUNK_DATA:
    case STEP_DONE:
        g_assert_not_reached();
    }
    return is_good ? CH_HTTP1_MORE : CH_HTTP1_FAILED;
}

static ChHttp1State
feed_line(
    ChHttp1Parser *parser, const uint8_t *bytes, gsize length, gsize *out_taken, GError **error)
{
    const uint8_t *end = memchr(bytes, '\n', length);
    const gsize take = end != NULL ? (gsize)(end - bytes) + 1 : length;
    ChHttp1State state;

    *out_taken = take;
    if (!count_line_bytes(parser, take, error))
        return CH_HTTP1_FAILED;
    g_string_append_len(parser->line, (const char *)bytes, (gssize)take);
    if (end == NULL)
        return CH_HTTP1_MORE;
    if (!trim_line(parser->line, error))
        return CH_HTTP1_FAILED;
    state = take_line(parser, error);
    if (state != CH_HTTP1_STOPPED)
        g_string_truncate(parser->line, 0);
    return state;
}

static ChHttp1State
feed_body(ChHttp1Parser *parser, const uint8_t *bytes, gsize length, gsize *out_taken)
{
    gsize take = length;

    if (parser->step != STEP_BODY_UNTIL_END) {
        take = (gsize)MIN(length, parser->left);
        parser->left -= take;
        if (parser->left == 0)
            parser->step = parser->step == STEP_CHUNK_DATA ? STEP_CHUNK_END : STEP_DONE;
    }
    *out_taken = take;
    return parser->events.on_body(parser->data, bytes, take) ? CH_HTTP1_MORE : CH_HTTP1_STOPPED;
}

ChHttp1State
ch_http1_parser_feed(
    ChHttp1Parser *parser, const uint8_t *bytes, gsize length, gsize *out_taken, GError **error)
{
    gsize at = 0;

    while (at < length && parser->step != STEP_DONE) {
        gsize taken;
        const ChHttp1State state = is_line_step(parser->step)
                                       ? feed_line(parser, bytes + at, length - at, &taken, error)
                                       : feed_body(parser, bytes + at, length - at, &taken);

        if (state != CH_HTTP1_MORE)
            return state; /* STOPPED: the parser may be gone */
        at += taken;
    }
    *out_taken = at;
    return parser->step == STEP_DONE ? CH_HTTP1_DONE : CH_HTTP1_MORE;
}

bool
ch_http1_parser_end(const ChHttp1Parser *parser)
{
    return parser->step == STEP_BODY_UNTIL_END || parser->step == STEP_DONE;
}

bool
ch_http1_parser_keeps_alive(const ChHttp1Parser *parser)
{
    const char *connection = ch_http_header_get(
        ch_http_headers_peek(parser->headers), parser->headers->len, "connection");

    return parser->step == STEP_DONE && !parser->is_version_1_0 &&
           (connection == NULL || g_ascii_strcasecmp(connection, "keep-alive") == 0);
}

ChHttp1Parser *
ch_http1_parser_new(bool is_head, const ChHttp1Events *events, gpointer data)
{
    ChHttp1Parser *parser = g_new0(ChHttp1Parser, 1);

    parser->is_head = is_head;
    parser->events = *events;
    parser->data = data;
    parser->line = g_string_new(NULL);
    parser->headers = ch_http_headers_new();
    return parser;
}

void
ch_http1_parser_free(ChHttp1Parser *parser)
{
    if (parser == NULL)
        return;
    g_string_free(parser->line, TRUE);
    g_array_unref(parser->headers);
    g_free(parser);
}
