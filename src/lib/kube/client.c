/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: a call alternates between waiting (for a token of the bucket, for a
 * Retry-After) on its timer and one try on the HTTP client. retry-rules.h says after each try what
 * comes next. All of it lives on the loop's thread.
 */

#include "lib/kube/client.h"

#include <errno.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "lib/kube/client-internal.h"
#include "lib/kube/retry-rules.h"
#include "lib/kube/warning.h"

#define DEFAULT_QPS   50
#define DEFAULT_BURST 100

#define JSON_TYPE        "application/json"
#define ACCEPT_JSON      "application/json, */*"
#define MAX_STATUS_BYTES (1u << 20) /* of an error answer; what is more is not read */
#define MAX_HEADERS      6

struct ChKubeCall {
    ChKubeClient *client;
    GList link;

    char *method, *path, *content_type, *accept;
    GBytes *body; /* (nullable) */
    bool is_watch;

    ChKubeSink sink;
    gpointer data;
    GDestroyNotify free_data; /* (nullable) */

    ChTimer *wait;     /* until the next try */
    bool needs_token;  /* of the bucket, before that try */
    ChTimer *deadline; /* (nullable) of all tries together */
    ChHttpCall *http;  /* (nullable): the try under way */
    int64_t sent_us;
    guint n_retries;
    int status; /* of this try; 0: no answer so far */
    char *retry_after;
    GByteArray *error_body; /* (nullable): of an answer that is not 2xx */
};

/* ---- one call ---- */

static void
clear_try(ChKubeCall *call)
{
    call->http = NULL;
    call->status = 0;
    g_clear_pointer(&call->retry_after, g_free);
    g_clear_pointer(&call->error_body, g_byte_array_unref);
}

/* Stops everything that could still happen to the call. */
static void
detach(ChKubeCall *call)
{
    g_queue_unlink(&call->client->calls, &call->link);
    if (call->http != NULL)
        ch_http_call_cancel(g_steal_pointer(&call->http));
    ch_timer_disarm(call->wait);
    if (call->deadline != NULL)
        ch_timer_disarm(call->deadline);
}

/* Only of a detached call; its client may be gone. */
static void
call_free(ChKubeCall *call)
{
    clear_try(call);
    ch_timer_free(call->wait);
    ch_timer_free(call->deadline);
    g_free(call->method);
    g_free(call->path);
    g_free(call->content_type);
    g_free(call->accept);
    g_clear_pointer(&call->body, g_bytes_unref);
    if (call->free_data != NULL)
        call->free_data(call->data);
    g_free(call);
}

void
ch_kube_call_cancel(ChKubeCall *call)
{
    detach(call);
    call_free(call);
}

/* The call is over; @call is gone afterwards, and the callback may have freed the client. */
static void
finish(ChKubeCall *call, const GError *error)
{
    detach(call);
    call->sink.on_end(call->data, error);
    call_free(call);
}

static bool
is_success(const ChKubeCall *call)
{
    return call->status >= 200 && call->status < 300;
}

static void
wait_for(ChKubeCall *call, int64_t delay_us)
{
    ch_timer_arm(call->wait, ch_kube_clock_timer(call->client->clock, delay_us));
}

static ChRetryDecision
decide(const ChKubeCall *call, const GError *error)
{
    const bool is_transport = error != NULL && error->domain == CH_HTTP_ERROR;
    const ChRetryFacts facts = {
        .is_get = g_str_equal(call->method, "GET"),
        .is_watch = call->is_watch,
        .n_retries = call->n_retries,
        .http_status = call->status,
        .retry_after = call->retry_after,
        .transport_error = is_transport ? error->code : 0,
    };

    return ch_retry_decide(&facts);
}

static GError *
answer_to_error(const ChKubeCall *call)
{
    const GByteArray *body = call->error_body;

    return ch_kube_error_from_answer(
        call->status, body != NULL ? (const char *)body->data : NULL, body != NULL ? body->len : 0);
}

static void
deliver(ChKubeCall *call, const GError *transport_error)
{
    g_autoptr(GError) error = NULL;

    if (transport_error == NULL)
        error = answer_to_error(call);
    finish(call, transport_error != NULL ? transport_error : error);
}

/* A try without a 2xx answer is over. */
static void
try_failed(ChKubeCall *call, const GError *error)
{
    ChRetryDecision decision;

    if (call->status != 0)
        error = NULL; /* the answer's head counts, also when the rest of it got lost */
    decision = decide(call, error);
    if (call->status == 401)
        ch_token_source_refused(call->client->token, call->sent_us);
    switch (decision.action) {
    case CH_RETRY_DELIVER:
        deliver(call, error);
        return;
    case CH_RETRY_AGAIN:
        clear_try(call);
        call->n_retries++;
        call->needs_token = true; /* of a watch too */
        wait_for(call, decision.wait_us);
        return;
    case CH_RETRY_EMPTY_WATCH:
        finish(call, NULL);
        return;
    case CH_RETRY_INVALID:
        break;
    }
    g_assert_not_reached();
}

static void
pass_warnings(const ChKubeClient *client, const ChHttpHeader *headers, gsize n_headers)
{
    for (gsize i = 0; client->on_warning != NULL && i < n_headers; i++) {
        g_autofree char *text =
            g_str_equal(headers[i].name, "warning") ? ch_kube_warning_text(headers[i].value) : NULL;

        if (text != NULL)
            client->on_warning(client->warning_data, text);
    }
}

static void
http_headers(gpointer data, int status, const ChHttpHeader *headers, gsize n_headers)
{
    ChKubeCall *call = data;

    call->status = status;
    if (is_success(call)) {
        pass_warnings(call->client, headers, n_headers);
        if (call->sink.on_open != NULL)
            call->sink.on_open(call->data);
        return;
    }
    g_free(call->retry_after);
    call->retry_after = g_strdup(ch_http_header_get(headers, n_headers, "retry-after"));
}

static void
http_body(gpointer data, const uint8_t *bytes, gsize length)
{
    ChKubeCall *call = data;

    if (is_success(call)) {
        call->sink.on_data(call->data, bytes, length);
        return;
    }
    if (call->error_body == NULL)
        call->error_body = g_byte_array_new();
    g_byte_array_append(
        call->error_body, bytes, (guint)MIN(length, MAX_STATUS_BYTES - call->error_body->len));
}

static void
http_end(gpointer data, const GError *error)
{
    ChKubeCall *call = data;

    call->http = NULL;
    if (is_success(call))
        finish(call, error);
    else
        try_failed(call, error);
}

static void
send_try(ChKubeCall *call)
{
    static const ChHttpSink sink = {
        .on_headers = http_headers,
        .on_body = http_body,
        .on_end = http_end,
    };
    ChKubeClient *client = call->client;
    const char *token;
    g_autofree char *authorization = NULL;
    g_autofree char *path = g_strconcat(client->path_prefix, call->path, NULL);
    ChHttpHeader headers[MAX_HEADERS];
    gsize n = 0;

    call->sent_us = ch_kube_clock_now(client->clock);
    token = ch_token_source_get(client->token, call->sent_us);
    headers[n++] = (ChHttpHeader){"accept", call->accept};
    headers[n++] = (ChHttpHeader){"user-agent", client->user_agent};
    if (call->body != NULL)
        headers[n++] = (ChHttpHeader){"content-type", call->content_type};
    if (token != NULL) {
        authorization = g_strdup_printf("Bearer %s", token);
        headers[n++] = (ChHttpHeader){"authorization", authorization};
    }
    call->http = ch_http_client_send(client->http,
                                     &(ChHttpRequest){
                                         .method = call->method,
                                         .path = path,
                                         .headers = headers,
                                         .n_headers = n,
                                         .body = call->body,
                                     },
                                     &sink,
                                     call);
}

/* First the bucket is asked, when the pause before is over, as its tokens are handed out in the
 * order of asking; a bucket that was replaced meanwhile still counts for those who wait on it. */
static void
wait_over(gpointer data)
{
    ChKubeCall *call = data;
    ChKubeClient *client = call->client;
    int64_t delay_us = 0;

    if (call->needs_token)
        delay_us = ch_token_bucket_reserve(&client->bucket, ch_kube_clock_now(client->clock));
    call->needs_token = false;
    if (delay_us > 0)
        wait_for(call, delay_us);
    else
        send_try(call);
}

static void
deadline_passed(gpointer data)
{
    ChKubeCall *call = data;
    g_autoptr(GError) error = g_error_new(CH_ERROR,
                                          CH_ERROR_TIMEOUT,
                                          "%s '%s': no answer within the deadline",
                                          call->method,
                                          call->path);

    finish(call, error);
}

static const char *
or_default(const char *text, const char *fallback)
{
    return text != NULL ? text : fallback;
}

ChKubeCall *
ch_kube_client_stream(ChKubeClient *client,
                      const ChKubeRequest *request,
                      const ChKubeSink *sink,
                      gpointer data)
{
    ChKubeCall *call = g_new0(ChKubeCall, 1);

    g_assert(ch_loop_is_current(client->loop) && client->http != NULL);
    call->client = client;
    call->link.data = call;
    g_queue_push_tail_link(&client->calls, &call->link);
    call->method = g_strdup(request->method);
    call->path = g_strdup(request->path);
    call->content_type = g_strdup(or_default(request->content_type, JSON_TYPE));
    call->accept = g_strdup(or_default(request->accept, ACCEPT_JSON));
    if (request->body != NULL)
        call->body = g_bytes_new(request->body, strlen(request->body));
    call->is_watch = request->is_watch;
    call->sink = *sink;
    call->data = data;

    call->wait = ch_timer_new(client->loop, wait_over, call);
    call->needs_token = !call->is_watch;
    wait_for(call, 0);
    if (request->timeout_us > 0) {
        call->deadline = ch_timer_new(client->loop, deadline_passed, call);
        ch_timer_arm(call->deadline, request->timeout_us);
    }
    return call;
}

/* ---- answers in one piece ---- */

typedef struct {
    ChKubeCall *call; /* whose data this is */
    GByteArray *body; /* (nullable) of a 2xx answer */
    ChKubeDone done;
    gpointer data;
} Buffered;

static void
buffered_free(gpointer data)
{
    Buffered *buffered = data;

    g_clear_pointer(&buffered->body, g_byte_array_unref);
    g_free(buffered);
}

static void
buffered_data(gpointer data, const uint8_t *bytes, gsize length)
{
    Buffered *buffered = data;

    if (buffered->body->len + length > CH_KUBE_MAX_ANSWER) {
        g_autoptr(GError) error = g_error_new(
            CH_ERROR, CH_ERROR_LIMIT, "an answer of more than %u bytes", CH_KUBE_MAX_ANSWER);

        finish(buffered->call, error);
        return;
    }
    g_byte_array_append(buffered->body, bytes, (guint)length);
}

static void
buffered_end(gpointer data, const GError *error)
{
    Buffered *buffered = data;
    GByteArray **source = error == NULL ? &buffered->body : &buffered->call->error_body;
    GByteArray *array = g_steal_pointer(source);
    g_autoptr(GBytes) body = array != NULL ? g_byte_array_free_to_bytes(array) : NULL;

    buffered->done(buffered->data, body, error);
}

ChKubeCall *
ch_kube_client_start(ChKubeClient *client,
                     const ChKubeRequest *request,
                     ChKubeDone done,
                     gpointer data)
{
    static const ChKubeSink sink = {.on_data = buffered_data, .on_end = buffered_end};
    Buffered *buffered = g_new0(Buffered, 1);

    buffered->body = g_byte_array_new();
    buffered->done = done;
    buffered->data = data;
    buffered->call = ch_kube_client_stream(client, request, &sink, buffered);
    buffered->call->free_data = buffered_free;
    return buffered->call;
}

/* ---- the client ---- */

void
ch_kube_client_unref(ChKubeClient *client)
{
    if (atomic_fetch_sub_explicit(&client->refs, 1, memory_order_acq_rel) == 1)
        g_free(client);
}

/* Seconds in an environment variable that client-go knows too. 0: the default. */
static int64_t
env_seconds(const char *name)
{
    const char *text = g_getenv(name);
    guint64 seconds = 0;

    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 0, 86400, &seconds, NULL))
        return 0;
    return (int64_t)seconds * CH_SECOND_US;
}

static char *
make_user_agent(void)
{
#if defined(__x86_64__)
    const char *machine = "amd64";
#elif defined(__aarch64__)
    const char *machine = "arm64";
#else
    const char *machine = "other";
#endif
    return g_strdup_printf("%s/v1.9.0 (linux/%s) chandler", program_invocation_short_name, machine);
}

static ChHttpClient *
make_http(ChLoop *loop, const ChKubeConfig *config, GError **error)
{
    const ChHttpTarget target = {
        .is_tls = config->is_tls,
        .host = config->host,
        .port = config->port,
        .ca_pem = config->ca_pem,
        .cert_pem = config->cert_pem,
        .key_pem = config->key_pem,
        .server_name = config->server_name,
        .insecure_skip_verify = config->insecure_skip_verify,
        .ping_idle_us = env_seconds("HTTP2_READ_IDLE_TIMEOUT_SECONDS"),
        .ping_timeout_us = env_seconds("HTTP2_PING_TIMEOUT_SECONDS"),
    };

    return ch_http_client_new(loop, &target, error);
}

ChKubeClient *
ch_kube_client_new(ChLoop *loop, const ChKubeConfig *config, GError **error)
{
    g_autoptr(ChTokenSource) token = ch_token_source_new(config->token, config->token_file);
    g_autoptr(GError) unreadable = NULL;
    ChHttpClient *http;
    ChKubeClient *client;

    if (!ch_token_source_load(token, ch_time_now_us(), &unreadable) && config->token == NULL) {
        g_propagate_error(error, g_steal_pointer(&unreadable));
        return NULL;
    }
    http = make_http(loop, config, error);
    if (http == NULL)
        return NULL;
    client = g_new0(ChKubeClient, 1);
    atomic_init(&client->refs, 1);
    client->loop = loop;
    client->clock = &ch_kube_clock_real;
    client->http = http;
    client->token = g_steal_pointer(&token);
    ch_token_bucket_init(&client->bucket, DEFAULT_QPS, DEFAULT_BURST, ch_time_now_us());
    client->path_prefix = g_strdup(config->path_prefix != NULL ? config->path_prefix : "");
    client->user_agent = make_user_agent();
    g_queue_init(&client->calls);
    g_queue_init(&client->jobs);
    return client;
}

void
ch_kube_client_free(ChKubeClient *client)
{
    ChKubeCall *call;

    if (client == NULL)
        return;
    while ((call = g_queue_peek_head(&client->calls)) != NULL)
        ch_kube_call_cancel(call);
    g_clear_pointer(&client->http, ch_http_client_free);
    ch_kube_client_close_jobs(client);
    g_clear_pointer(&client->token, ch_token_source_free);
    g_clear_pointer(&client->path_prefix, g_free);
    g_clear_pointer(&client->user_agent, g_free);
    ch_kube_client_unref(client);
}

void
ch_kube_client_set_rate(ChKubeClient *client, double qps, guint burst)
{
    const bool is_usable = qps > 0 && burst > 0; /* nothing would ever be sent otherwise */

    ch_token_bucket_init(&client->bucket,
                         is_usable ? qps : DEFAULT_QPS,
                         is_usable ? burst : DEFAULT_BURST,
                         ch_kube_clock_now(client->clock));
}

void
ch_kube_client_set_warning_func(ChKubeClient *client, ChKubeWarning func, gpointer data)
{
    client->on_warning = func;
    client->warning_data = data;
}

void
ch_kube_client_set_clock(ChKubeClient *client, const ChKubeClock *clock)
{
    client->clock = clock;
    ch_kube_client_set_rate(client, DEFAULT_QPS, DEFAULT_BURST);
}

const ChKubeClock *
ch_kube_client_peek_clock(const ChKubeClient *client)
{
    return client->clock;
}

ChLoop *
ch_kube_client_peek_loop(const ChKubeClient *client)
{
    return client->loop;
}
