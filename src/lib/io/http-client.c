/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http-client.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "lib/base/time.h"
#include "lib/io/connector.h"
#include "lib/io/h1-session.h"
#include "lib/io/h2-session.h"
#include "lib/io/tls.h"

/*
 * Theory of operation
 *
 * A call is in exactly one place: a queue (`waiting`, or `failing` while fail_waiting() works it
 * off), an HTTP/2 stream, or an HTTP/1.1 connection. dispatch() moves calls from `waiting` to
 * connections that can take them and starts connectors for the rest; it runs on a timer of zero
 * whenever a call or a connection has come or gone, so send() itself calls nobody back.
 *
 * As long as the server may speak HTTP/2, one connector at a time makes the one connection; when it
 * turned out to speak HTTP/1.1, each waiting call gets a connector of its own.
 *
 * Callbacks may cancel any call and free the client: call_end() is the last thing its callers do,
 * and fail_waiting(), which ends several calls, holds a reference and looks at `is_freed`.
 */

#define DEFAULT_CONNECT_TIMEOUT_US (30 * CH_SECOND_US)
#define DEFAULT_PING_IDLE_US       (30 * CH_SECOND_US)
#define DEFAULT_PING_TIMEOUT_US    (15 * CH_SECOND_US)

/* HTTP/1.1: the most connections, running and idle; those that stay when idle, and for how long. */
#define MAX_H1_CONNECTIONS 100
#define MAX_H1_IDLE        4
#define H1_IDLE_US         (30 * CH_SECOND_US)

typedef enum {
    PROTOCOL_UNKNOWN, /* the first TLS handshake tells */
    PROTOCOL_H2,
    PROTOCOL_H1,
} Protocol;

typedef struct {
    ChHttpClient *client;
    ChH1Session *session;
    ChHttpCall *call; /* NULL: idle */
    int64_t idle_since_us;
} H1Connection;

typedef struct {
    ChHttpClient *client;
    ChH2Session *session;
} H2Connection;

typedef struct {
    ChHttpClient *client;
    ChConnector *connector;
} Attempt;

struct ChHttpClient {
    gint n_refs;
    bool is_freed; /* by its owner: no callback any more */
    ChLoop *loop;
    bool is_tls;
    ChConnectorOptions connect; /* strings owned; a reference to tls */
    char *authority;            /* owned */
    ChH2Options pings;
    Protocol protocol;
    ChTimer *turn;       /* armed: dispatch() is due */
    ChTimer *sweep;      /* armed: an idle HTTP/1.1 connection may be due to close */
    GQueue waiting;      /* ChHttpCall */
    GQueue failing;      /* ChHttpCall */
    GPtrArray *calls;    /* ChHttpCall, owned: all of them */
    GPtrArray *attempts; /* Attempt, owned */
    GPtrArray *h1;       /* H1Connection, owned */
    GPtrArray *h2;       /* H2Connection, owned: one that takes requests, and those that drain */
};

struct ChHttpCall {
    ChHttpClient *client;
    ChHttpSink sink;
    gpointer data;
    char *method;
    char *path;
    GArray *headers; /* ChHttpHeader, strings owned */
    GBytes *body;
    ChTimer *timer; /* (nullable): the whole answer's */
    GQueue *queue;  /* that holds it, or */
    ChH2Stream *stream;
    H1Connection *h1;
    bool is_bad; /* not to be sent: see is_sendable() */
};

static void
arm_turn(ChHttpClient *client)
{
    ch_timer_arm(client->turn, 0);
}

/* Calls */

/* A watch runs for long and needs its request no more. */
static void
call_drop_request(ChHttpCall *call)
{
    g_clear_pointer(&call->method, g_free);
    g_clear_pointer(&call->path, g_free);
    g_clear_pointer(&call->headers, g_array_unref);
    g_clear_pointer(&call->body, g_bytes_unref);
}

static void
call_free(gpointer data)
{
    ChHttpCall *call = data;

    ch_timer_free(call->timer);
    call_drop_request(call);
    g_free(call);
}

static void
h1_free(gpointer data)
{
    H1Connection *connection = data;

    ch_h1_session_free(connection->session);
    g_free(connection);
}

/* Takes the call from where it is; what is on its way to the server is given up. */
static void
call_detach(ChHttpCall *call)
{
    if (call->queue != NULL)
        g_queue_remove(call->queue, call);
    call->queue = NULL;
    if (call->stream != NULL)
        ch_h2_stream_reset(g_steal_pointer(&call->stream), NGHTTP2_CANCEL);
    if (call->h1 != NULL) {
        g_ptr_array_remove_fast(call->client->h1, g_steal_pointer(&call->h1));
        arm_turn(call->client); /* there is room for another connection */
    }
}

/* The call is gone after this, and the client may be. */
static void
call_end(ChHttpCall *call, const GError *error)
{
    const ChHttpSink sink = call->sink;
    gpointer data = call->data;
    guint index;

    call_detach(call);
    /* It stays valid until on_end returned, but nobody finds it any more. */
    g_ptr_array_find(call->client->calls, call, &index);
    g_ptr_array_steal_index_fast(call->client->calls, index);
    sink.on_end(data, error);
    call_free(call);
}

static void
on_call_timer(gpointer data)
{
    ChHttpCall *call = data;
    g_autoptr(GError) error =
        call->is_bad
            ? g_error_new_literal(CH_HTTP_ERROR,
                                  CH_HTTP_ERROR_PROTOCOL,
                                  "control character or blank in the request")
            : g_error_new_literal(CH_HTTP_ERROR, CH_HTTP_ERROR_TIMEOUT, "request timed out");

    call_end(call, error);
}

/* Ends the calls that wait at this moment, at most @n_calls. */
static void
fail_waiting(ChHttpClient *client, guint n_calls, const GError *error)
{
    client->n_refs++;
    for (; n_calls > 0 && client->waiting.length > 0; n_calls--) {
        ChHttpCall *call = g_queue_pop_head(&client->waiting);

        call->queue = &client->failing;
        g_queue_push_tail(&client->failing, call);
    }
    while (!client->is_freed && client->failing.length > 0)
        call_end(g_queue_peek_head(&client->failing), error);
    if (--client->n_refs == 0)
        g_free(client);
}

/* HTTP/2 */

static void
on_stream_headers(
    gpointer data, const ChHttpHeader *headers, gsize n_headers, bool is_trailer, bool end_stream)
{
    ChHttpCall *call = data;

    if (is_trailer)
        return;
    /* nghttp2 has checked that the first one is :status, of three digits. */
    call->sink.on_headers(
        call->data, (int)g_ascii_strtoull(headers[0].value, NULL, 10), headers + 1, n_headers - 1);
}

static void
on_stream_data(gpointer data, const uint8_t *bytes, gsize length)
{
    ChHttpCall *call = data;

    call->sink.on_body(call->data, bytes, length);
}

static void
on_stream_close(gpointer data, uint32_t h2_error, const GError *error)
{
    ChHttpCall *call = data;

    call->stream = NULL;
    call_end(call, error);
}

static void
start_on_h2(ChHttpCall *call, ChH2Session *session)
{
    static const ChH2StreamEvents events = {on_stream_headers, on_stream_data, on_stream_close};
    g_autoptr(GArray) headers = g_array_new(FALSE, FALSE, sizeof(ChHttpHeader));
    const ChHttpHeader pseudo[] = {{":method", call->method},
                                   {":scheme", call->client->is_tls ? "https" : "http"},
                                   {":authority", call->client->authority},
                                   {":path", call->path}};
    char length[24];
    const ChHttpHeader content_length = {"content-length", length};

    g_array_append_vals(headers, pseudo, G_N_ELEMENTS(pseudo));
    g_array_append_vals(headers, call->headers->data, call->headers->len);
    if (call->body != NULL) {
        g_snprintf(length, sizeof length, "%" G_GSIZE_FORMAT, g_bytes_get_size(call->body));
        g_array_append_val(headers, content_length);
    }
    call->stream = ch_h2_session_request(
        session, ch_http_headers_peek(headers), headers->len, call->body, &events, call);
}

static void
on_h2_ready(gpointer data)
{
}

static void
on_h2_goaway(gpointer data)
{
    H2Connection *connection = data;

    arm_turn(connection->client); /* a new one for those that wait */
}

static void
on_h2_closed(gpointer data, const GError *error)
{
    H2Connection *connection = data;

    arm_turn(connection->client);
    g_ptr_array_remove_fast(connection->client->h2, connection);
}

static void
h2_free(gpointer data)
{
    H2Connection *connection = data;

    ch_h2_session_free(connection->session);
    g_free(connection);
}

static void
add_h2(ChHttpClient *client, struct bufferevent *bev)
{
    static const ChH2SessionEvents events = {on_h2_ready, on_h2_goaway, on_h2_closed};
    H2Connection *connection = g_new0(H2Connection, 1);

    connection->client = client;
    connection->session = ch_h2_session_new(client->loop, bev, &client->pings, &events, connection);
    g_ptr_array_add(client->h2, connection);
    client->protocol = PROTOCOL_H2;
}

/* Returns: (nullable) */
static ChH2Session *
find_h2(ChHttpClient *client)
{
    for (guint i = 0; i < client->h2->len; i++) {
        H2Connection *connection = client->h2->pdata[i];

        if (ch_h2_session_takes_streams(connection->session))
            return connection->session;
    }
    return NULL;
}

/* HTTP/1.1 */

static void
on_h1_headers(gpointer data, int status, const ChHttpHeader *headers, gsize n_headers)
{
    H1Connection *connection = data;
    ChHttpCall *call = connection->call;

    call->sink.on_headers(call->data, status, headers, n_headers);
}

static void
on_h1_body(gpointer data, const uint8_t *bytes, gsize length)
{
    H1Connection *connection = data;
    ChHttpCall *call = connection->call;

    call->sink.on_body(call->data, bytes, length);
}

static guint
count_h1_idle(const ChHttpClient *client)
{
    guint n_idle = 0;

    for (guint i = 0; i < client->h1->len; i++) {
        const H1Connection *connection = client->h1->pdata[i];

        if (connection->call == NULL)
            n_idle++;
    }
    return n_idle;
}

static void
on_h1_end(gpointer data, const GError *error)
{
    H1Connection *connection = data;
    ChHttpClient *client = connection->client;
    ChHttpCall *call = g_steal_pointer(&connection->call);

    call->h1 = NULL;
    connection->idle_since_us = g_get_monotonic_time();
    if (count_h1_idle(client) > MAX_H1_IDLE && client->waiting.length == 0)
        g_ptr_array_remove_fast(client->h1, connection);
    else if (!ch_timer_is_armed(client->sweep))
        ch_timer_arm(client->sweep, H1_IDLE_US);
    arm_turn(client);
    call_end(call, error);
}

static void
on_h1_closed(gpointer data)
{
    H1Connection *connection = data;

    arm_turn(connection->client);
    g_ptr_array_remove_fast(connection->client->h1, connection);
}

static void
start_on_h1(ChHttpCall *call, H1Connection *connection)
{
    static const ChHttpSink sink = {on_h1_headers, on_h1_body, on_h1_end};

    call->h1 = connection;
    connection->call = call;
    ch_h1_session_request(connection->session,
                          call->method,
                          call->path,
                          call->client->authority,
                          ch_http_headers_peek(call->headers),
                          call->headers->len,
                          call->body,
                          &sink,
                          connection);
}

static void
add_h1(ChHttpClient *client, struct bufferevent *bev)
{
    H1Connection *connection = g_new0(H1Connection, 1);

    connection->client = client;
    connection->idle_since_us = g_get_monotonic_time();
    connection->session = ch_h1_session_new(client->loop, bev, on_h1_closed, connection);
    g_ptr_array_add(client->h1, connection);
    client->protocol = PROTOCOL_H1;
    if (!ch_timer_is_armed(client->sweep))
        ch_timer_arm(client->sweep, H1_IDLE_US);
}

/* Returns: (nullable) */
static H1Connection *
find_h1(ChHttpClient *client)
{
    for (guint i = 0; i < client->h1->len; i++) {
        H1Connection *connection = client->h1->pdata[i];

        if (connection->call == NULL && ch_h1_session_is_idle(connection->session))
            return connection;
    }
    return NULL;
}

static void
on_sweep(gpointer data)
{
    ChHttpClient *client = data;
    const int64_t now_us = g_get_monotonic_time();

    for (guint i = client->h1->len; i-- > 0;) {
        const H1Connection *connection = client->h1->pdata[i];

        if (connection->call == NULL && now_us - connection->idle_since_us >= H1_IDLE_US)
            g_ptr_array_remove_index_fast(client->h1, i);
    }
    if (count_h1_idle(client) > 0)
        ch_timer_arm(client->sweep, H1_IDLE_US);
}

/* Connections */

static void
attempt_free(gpointer data)
{
    Attempt *attempt = data;

    ch_connector_free(attempt->connector);
    g_free(attempt);
}

static void
on_attempt_done(gpointer data, struct bufferevent *bev, const char *alpn, const GError *error)
{
    Attempt *attempt = data;
    ChHttpClient *client = attempt->client;

    /* An HTTP/1.1 attempt was made for one call, any other for all. */
    const guint n_calls = client->protocol == PROTOCOL_H1 ? 1 : client->waiting.length;

    arm_turn(client);
    if (bev == NULL) {
        g_autoptr(GError) copy = g_error_copy(error); /* the original goes with the attempt */

        g_ptr_array_remove_fast(client->attempts, attempt);
        fail_waiting(client, n_calls, copy);
        return;
    }
    if (g_strcmp0(alpn, "h2") == 0)
        add_h2(client, bev);
    else
        add_h1(client, bev);
    g_ptr_array_remove_fast(client->attempts, attempt);
}

static void
add_attempt(ChHttpClient *client)
{
    Attempt *attempt = g_new0(Attempt, 1);

    attempt->client = client;
    attempt->connector = ch_connector_new(client->loop, &client->connect, on_attempt_done, attempt);
    g_ptr_array_add(client->attempts, attempt);
}

static guint
count_attempts_wanted(const ChHttpClient *client)
{
    if (client->protocol != PROTOCOL_H1)
        return MIN(client->waiting.length, 1);
    return MIN(client->waiting.length, MAX_H1_CONNECTIONS - client->h1->len);
}

static bool
start_call(ChHttpClient *client, ChHttpCall *call)
{
    ChH2Session *h2 = find_h2(client);
    H1Connection *h1 = h2 == NULL ? find_h1(client) : NULL;

    if (h2 != NULL)
        start_on_h2(call, h2);
    else if (h1 != NULL)
        start_on_h1(call, h1);
    else
        return false;
    call->queue = NULL;
    call_drop_request(call);
    return true;
}

static void
dispatch(gpointer data)
{
    ChHttpClient *client = data;

    while (client->waiting.length > 0 && start_call(client, g_queue_peek_head(&client->waiting)))
        g_queue_pop_head(&client->waiting);
    while (client->attempts->len < count_attempts_wanted(client))
        add_attempt(client);
}

/* The interface */

/* "host", with the port where it is not the scheme's own. */
static char *
format_authority(const ChHttpTarget *target)
{
    const bool is_v6 = strchr(target->host, ':') != NULL;
    const uint16_t default_port = target->is_tls ? 443 : 80;
    g_autofree char *host = is_v6 ? g_strdup_printf("[%s]", target->host) : g_strdup(target->host);

    if (target->unix_path != NULL || target->port == default_port)
        return g_steal_pointer(&host);
    return g_strdup_printf("%s:%u", host, target->port);
}

static SSL_CTX *
new_tls(const ChHttpTarget *target, GError **error)
{
    const ChTlsClientOptions options = {.ca_pem = target->ca_pem,
                                        .cert_pem = target->cert_pem,
                                        .key_pem = target->key_pem,
                                        .insecure_skip_verify = target->insecure_skip_verify};
    g_autoptr(GError) cause = NULL;
    SSL_CTX *context = ch_tls_client_context_new(&options, &cause);

    if (context == NULL)
        g_set_error_literal(error, CH_HTTP_ERROR, CH_HTTP_ERROR_TLS, cause->message);
    return context;
}

static int64_t
or_default(int64_t value_us, int64_t default_us)
{
    return value_us > 0 ? value_us : default_us;
}

ChHttpClient *
ch_http_client_new(ChLoop *loop, const ChHttpTarget *target, GError **error)
{
    static const char *const alpn[] = {"h2", "http/1.1", NULL};
    SSL_CTX *tls = NULL;
    ChHttpClient *client;

    g_assert(ch_loop_is_current(loop));
    if (target->is_tls) {
        tls = new_tls(target, error);
        if (tls == NULL)
            return NULL;
    }
    client = g_new0(ChHttpClient, 1);
    client->n_refs = 1;
    client->loop = loop;
    client->is_tls = target->is_tls;
    client->connect = (ChConnectorOptions){
        .host = g_strdup(target->host),
        .port = target->port,
        .unix_path = g_strdup(target->unix_path),
        .tls = tls,
        .server_name = g_strdup(target->server_name != NULL ? target->server_name : target->host),
        .alpn = alpn,
        .timeout_us = or_default(target->connect_timeout_us, DEFAULT_CONNECT_TIMEOUT_US)};
    client->authority = format_authority(target);
    client->pings = (ChH2Options){or_default(target->ping_idle_us, DEFAULT_PING_IDLE_US),
                                  or_default(target->ping_timeout_us, DEFAULT_PING_TIMEOUT_US)};
    client->protocol = target->is_tls ? PROTOCOL_UNKNOWN : PROTOCOL_H1;
    client->turn = ch_timer_new(loop, dispatch, client);
    client->sweep = ch_timer_new(loop, on_sweep, client);
    g_queue_init(&client->waiting);
    g_queue_init(&client->failing);
    client->calls = g_ptr_array_new_with_free_func(call_free);
    client->attempts = g_ptr_array_new_with_free_func(attempt_free);
    client->h1 = g_ptr_array_new_with_free_func(h1_free);
    client->h2 = g_ptr_array_new_with_free_func(h2_free);
    return client;
}

void
ch_http_client_free(ChHttpClient *client)
{
    if (client == NULL)
        return;
    client->is_freed = true;
    g_ptr_array_unref(client->attempts);
    g_ptr_array_unref(client->h1);
    g_ptr_array_unref(client->h2);
    g_ptr_array_unref(client->calls);
    g_queue_clear(&client->waiting);
    g_queue_clear(&client->failing);
    ch_timer_free(client->turn);
    ch_timer_free(client->sweep);
    SSL_CTX_free(client->connect.tls);
    g_free((char *)client->connect.host);
    g_free((char *)client->connect.unix_path);
    g_free((char *)client->connect.server_name);
    g_free(client->authority);
    if (--client->n_refs == 0)
        g_free(client);
}

/* What would end a line, and so let a caller's text pass for headers or a request of its own. */
static bool
has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if (g_ascii_iscntrl(*text) && *text != '\t')
            return true;
    }
    return false;
}

static bool
is_sendable(const ChHttpRequest *request)
{
    if (has_control(request->path) || strchr(request->path, ' ') != NULL || request->path[0] != '/')
        return false;
    for (gsize i = 0; i < request->n_headers; i++) {
        if (has_control(request->headers[i].name) || has_control(request->headers[i].value))
            return false;
    }
    return true;
}

ChHttpCall *
ch_http_client_send(ChHttpClient *client,
                    const ChHttpRequest *request,
                    const ChHttpSink *sink,
                    gpointer data)
{
    ChHttpCall *call = g_new0(ChHttpCall, 1);

    g_assert(ch_loop_is_current(client->loop));
    call->client = client;
    call->sink = *sink;
    call->data = data;
    call->method = g_strdup(request->method);
    call->path = g_strdup(request->path);
    call->headers = ch_http_headers_new();
    for (gsize i = 0; i < request->n_headers; i++) {
        const ChHttpHeader header = {g_ascii_strdown(request->headers[i].name, -1),
                                     g_strdup(request->headers[i].value)};

        g_array_append_val(call->headers, header);
    }
    call->body = request->body != NULL ? g_bytes_ref(request->body) : NULL;
    g_ptr_array_add(client->calls, call);

    call->is_bad = !is_sendable(request);
    if (call->is_bad || request->timeout_us > 0) {
        call->timer = ch_timer_new(client->loop, on_call_timer, call);
        ch_timer_arm(call->timer, call->is_bad ? 0 : request->timeout_us);
    }
    if (!call->is_bad) {
        call->queue = &client->waiting;
        g_queue_push_tail(&client->waiting, call);
        arm_turn(client);
    }
    return call;
}

void
ch_http_call_cancel(ChHttpCall *call)
{
    call_detach(call);
    g_ptr_array_remove_fast(call->client->calls, call);
}
