/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/serve.h"

#include <openssl/crypto.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/time.h"
#include "local/apiserver/status.h"

#define MAX_WARNINGS    16
#define MAX_CONNECTIONS 1024
#define BOOKMARK_US     (60 * CH_SECOND_US)
/* A watch stops taking frames while so much of it waits for the client. */
#define MAX_PENDING (256u << 10)

struct ChServe {
    ChLoop *loop; /* borrowed */
    ChApi *api;   /* borrowed */
    ChHttpServer *server;
    char *token;      /* owned (nullable) */
    ChRecord *record; /* borrowed (nullable) */
};

/* One watch and the connection that it goes to. */
typedef struct {
    ChServe *serve;
    ChWatch *watch;
    ChHttpExchange *exchange;
    ChTimer *timeout;
    ChTimer *bookmark;
} Stream;

/* --- watches ---------------------------------------------------------------------------------- */

static void stream_pump(gpointer data);

static void
stream_free(Stream *stream)
{
    ch_history_unlisten(ch_api_peek_history(stream->serve->api), stream_pump, stream);
    ch_timer_free(stream->timeout);
    ch_timer_free(stream->bookmark);
    ch_watch_free(stream->watch);
    g_free(stream);
}

static void
stream_end(Stream *stream)
{
    ch_http_exchange_end(stream->exchange);
    stream_free(stream);
}

/* Moves what is new to the client, as long as it keeps up. */
static void
stream_pump(gpointer data)
{
    Stream *stream = data;
    const int64_t now_us = ch_time_wall_us();

    while (ch_http_exchange_n_pending(stream->exchange) < MAX_PENDING) {
        g_autoptr(GBytes) frames = ch_watch_next(stream->watch, now_us);

        if (frames == NULL)
            break;
        ch_http_exchange_write(stream->exchange, frames);
    }
    if (ch_watch_is_over(stream->watch))
        stream_end(stream);
}

/* Only when the client has seen all there is, so that the bookmark tells the truth. */
static void
write_bookmark(Stream *stream)
{
    g_autoptr(GBytes) frames = NULL;

    if (!ch_watch_peek_spec(stream->watch)->wants_bookmarks ||
        ch_http_exchange_n_pending(stream->exchange) > 0)
        return;
    frames = ch_watch_bookmark(stream->watch);
    ch_http_exchange_write(stream->exchange, frames);
}

static void
on_bookmark_time(gpointer data)
{
    Stream *stream = data;

    write_bookmark(stream);
    ch_timer_arm(stream->bookmark, BOOKMARK_US);
}

static void
on_watch_timeout(gpointer data)
{
    Stream *stream = data;

    write_bookmark(stream); /* the client's next watch begins here */
    stream_end(stream);
}

static void
on_stream_closed(gpointer data)
{
    stream_free(data);
}

static const ChHttpStreamEvents stream_events = {
    .on_drained = stream_pump,
    .on_closed = on_stream_closed,
};

/* @watch is taken over. */
static void
start_stream(ChServe *serve, ChHttpExchange *exchange, ChWatch *watch)
{
    const ChHttpHeader type = {"content-type", "application/json"};
    Stream *stream = g_new0(Stream, 1);

    stream->serve = serve;
    stream->watch = watch;
    stream->exchange = exchange;
    stream->timeout = ch_timer_new(serve->loop, on_watch_timeout, stream);
    stream->bookmark = ch_timer_new(serve->loop, on_bookmark_time, stream);
    ch_history_listen(ch_api_peek_history(serve->api), stream_pump, stream);
    if (!ch_http_exchange_begin(exchange, 200, &type, 1, &stream_events, stream)) {
        stream_free(stream);
        return;
    }
    ch_timer_arm(stream->timeout, ch_watch_peek_spec(watch)->timeout_us);
    ch_timer_arm(stream->bookmark, BOOKMARK_US);
    stream_pump(stream);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Probes need no token, as on a cluster. */
static bool
is_public(const char *path)
{
    static const char *const paths[] = {"/healthz", "/livez", "/readyz", "/version", NULL};

    return g_strv_contains(paths, path);
}

static bool
is_authorized(const ChServe *serve, const ChHttpExchange *exchange, const char *path)
{
    static const char scheme[] = "Bearer ";
    const char *header;

    if (serve->token == NULL || is_public(path))
        return true;
    header = ch_http_exchange_header(exchange, "authorization");
    if (header == NULL || g_ascii_strncasecmp(header, scheme, strlen(scheme)) != 0)
        return false;
    header += strlen(scheme);
    /* in constant time: how much of a guess was right must not show */
    return strlen(header) == strlen(serve->token) &&
           CRYPTO_memcmp(header, serve->token, strlen(serve->token)) == 0;
}

static void
reply(ChHttpExchange *exchange, const ChApiAnswer *answer)
{
    g_autofree char *retry_after = g_strdup_printf("%d", answer->retry_after_s);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    ChHttpHeader headers[2 + MAX_WARNINGS] = {{"content-type", answer->content_type}};
    gsize n_headers = 1;

    if (answer->retry_after_s > 0)
        headers[n_headers++] = (ChHttpHeader){"retry-after", retry_after};
    for (guint i = 0; answer->warnings != NULL && i < MIN(answer->warnings->len, MAX_WARNINGS);
         i++) {
        /* RFC 9110 §5.5; what client-go expects */
        char *text = g_strdup_printf("299 - \"unknown field \\\"%s\\\"\"",
                                     (const char *)answer->warnings->pdata[i]);

        g_ptr_array_add(texts, text);
        headers[n_headers++] = (ChHttpHeader){"warning", text};
    }
    ch_http_exchange_reply(exchange, answer->code, headers, n_headers, answer->body);
}

static void
reply_unauthorized(ChHttpExchange *exchange)
{
    g_autoptr(ChRefusal) refusal = ch_refuse_unauthorized();
    gsize length;
    char *text = ch_json_print(refusal->body, &length);
    g_auto(ChApiAnswer) answer = {
        .code = refusal->code,
        .content_type = "application/json",
        .body = g_bytes_new_take(text, length),
    };

    reply(exchange, &answer);
}

static void
on_question(ChHttpExchange *exchange, const ChHttpQuestion *question, gpointer data)
{
    ChServe *serve = data;
    const int64_t now_us = ch_time_wall_us();
    const ChApiRequest request = {
        .method = question->method,
        .path = question->path,
        .query = question->query,
        .content_type = ch_http_exchange_header(exchange, "content-type"),
        .accept = ch_http_exchange_header(exchange, "accept"),
        .body = question->body,
        .length = question->length,
    };
    g_auto(ChApiAnswer) answer = {0};

    if (!is_authorized(serve, exchange, request.path)) {
        reply_unauthorized(exchange);
        return;
    }
    ch_api_handle(serve->api, &request, now_us, &answer);
    ch_record_append(serve->record,
                     &request,
                     ch_http_exchange_header(exchange, "user-agent"),
                     answer.code,
                     now_us);
    ch_log_verbose(4,
                   NULL,
                   "%s %s%s%s: %d",
                   request.method,
                   request.path,
                   request.query != NULL ? "?" : "",
                   request.query != NULL ? request.query : "",
                   answer.code);
    if (answer.watch != NULL)
        start_stream(serve, exchange, g_steal_pointer(&answer.watch));
    else
        reply(exchange, &answer);
}

ChServe *
ch_serve_new(ChLoop *loop,
             ChApi *api,
             const ChHttpServerOptions *options,
             const char *token,
             ChRecord *record,
             GError **error)
{
    g_autoptr(ChServe) serve = g_new0(ChServe, 1);
    ChHttpServerOptions with_limits = *options;

    serve->loop = loop;
    serve->api = api;
    serve->token = g_strdup(token);
    serve->record = record;
    with_limits.max_connections = MAX_CONNECTIONS;
    with_limits.max_body_bytes = CH_API_MAX_BODY;
    serve->server = ch_http_server_new(loop, &with_limits, on_question, serve, error);
    return serve->server != NULL ? g_steal_pointer(&serve) : NULL;
}

void
ch_serve_free(ChServe *serve)
{
    if (serve == NULL)
        return;
    ch_http_server_free(serve->server);
    g_free(serve->token);
    g_free(serve);
}

uint16_t
ch_serve_port(const ChServe *serve)
{
    return ch_http_server_port(serve->server);
}
