/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/client.h"

#include <glib/gstdio.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/errors.h"
#include "lib/kube/test-server.h"

#define N_WORKERS  8
#define N_REQUESTS 50

/* ---- on the loop ---- */

typedef struct {
    ChLoop *loop;
    TestServer server;
    TestClock clock;
    ChKubeClient *client;

    guint fail_first; /* so many requests get `failure`, the others 200 */
    const char *failure;
    GString *requests; /* "GET /path|headers|body\n" */

    guint n_done;
    char *body;
    GError *error;
} Fixture;

static void
serve(gpointer data, TestRequest *request)
{
    Fixture *f = data;

    g_string_append_printf(f->requests,
                           "%s %s\n%s\n%s\n",
                           request->method,
                           request->target,
                           request->headers,
                           request->body);
    if (f->server.n_requests <= f->fail_first && f->failure == NULL)
        test_cut(request->server, request->bev);
    else if (f->server.n_requests <= f->fail_first)
        test_send(request->bev, f->failure);
    else
        test_reply(request->bev, 200, NULL, "{\"a\":1}");
}

static void
done(gpointer data, GBytes *body, const GError *error)
{
    Fixture *f = data;

    f->n_done++;
    g_clear_pointer(&f->body, g_free);
    g_clear_error(&f->error);
    if (body != NULL)
        f->body = g_strndup(g_bytes_get_data(body, NULL), g_bytes_get_size(body));
    if (error != NULL)
        f->error = g_error_copy(error);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->loop = ch_loop_new();
    f->requests = g_string_new(NULL);
    test_clock_init(&f->clock);
    test_server_init(&f->server, f->loop, serve, f);
    f->client = test_client_new(f->loop, &f->server, &f->clock);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_kube_client_free(f->client);
    test_server_clear(&f->server);
    test_clock_clear(&f->clock);
    ch_loop_free(f->loop);
    g_string_free(f->requests, TRUE);
    g_free(f->body);
    g_clear_error(&f->error);
}

static void
run(Fixture *f, const ChKubeRequest *request)
{
    (void)ch_kube_client_start(f->client, request, done, f);
    g_assert_cmpuint(f->n_done, ==, 0); /* never from within */
    test_wait_until(f->loop, f->n_done == 1);
}

static const ChKubeRequest get = {.method = "GET", .path = "/api/v1/nodes?limit=1"};
static const ChKubeRequest put = {.method = "PUT", .path = "/x", .body = "{\"b\":2}"};

#define THROTTLED "HTTP/1.1 429 x\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n"
#define CONFLICT                                                                                   \
    "HTTP/1.1 409 x\r\ncontent-length: 64\r\n\r\n"                                                 \
    "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"was changed!\"}   "

static void
serve_half_an_error(gpointer data, TestRequest *request)
{
    test_cut_after(request, "HTTP/1.1 500 x\r\ncontent-length: 64\r\n\r\n{\"kind\":");
}

static void
test_headers(Fixture *f, gconstpointer data)
{
    run(f, &get);
    g_assert_no_error(f->error);
    g_assert_cmpstr(f->body, ==, "{\"a\":1}");
    g_assert_true(g_str_has_prefix(f->requests->str, "GET /api/v1/nodes?limit=1\n"));
    g_assert_nonnull(strstr(f->requests->str, "\r\naccept: application/json, */*"));
    g_assert_nonnull(strstr(f->requests->str, "/v1.9.0 (linux/"));
    g_assert_null(strstr(f->requests->str, "authorization"));
    g_assert_null(strstr(f->requests->str, "content-type"));
}

static void
test_body(Fixture *f, gconstpointer data)
{
    ChKubeRequest patch = put;

    patch.method = "PATCH";
    patch.content_type = "application/merge-patch+json";
    run(f, &patch);
    g_assert_true(g_str_has_prefix(f->requests->str, "PATCH /x\n"));
    g_assert_true(g_str_has_suffix(f->requests->str, "\n{\"b\":2}\n"));
    g_assert_nonnull(strstr(f->requests->str, "\r\ncontent-type: application/merge-patch+json"));
}

static void
test_retry_after(Fixture *f, gconstpointer data)
{
    f->fail_first = 2;
    f->failure = THROTTLED;
    run(f, &put);
    g_assert_no_error(f->error);
    g_assert_cmpuint(f->server.n_requests, ==, 3);
    g_assert_cmpstr(f->clock.delays->str, ==, "3000 3000 ");
}

static void
test_retry_ends(Fixture *f, gconstpointer data)
{
    f->fail_first = 1000;
    f->failure = THROTTLED;
    run(f, &get);
    g_assert_error(f->error, CH_KUBE_ERROR, 429);
    g_assert_cmpuint(f->server.n_requests, ==, 11);
}

static void
test_conflict(Fixture *f, gconstpointer data)
{
    f->fail_first = 1;
    f->failure = CONFLICT;
    run(f, &put);
    g_assert_error(f->error, CH_KUBE_ERROR, 409);
    g_assert_cmpstr(f->error->message, ==, "was changed!");
    g_assert_cmpstr(ch_kube_error_reason(f->error), ==, "Conflict");
    g_assert_true(g_str_has_prefix(f->body, "{\"kind\":\"Status\""));
    g_assert_cmpuint(f->server.n_requests, ==, 1);
}

static void
test_lost_end_of_an_error(Fixture *f, gconstpointer data)
{
    f->server.handler = serve_half_an_error;
    run(f, &put);
    g_assert_error(f->error, CH_KUBE_ERROR, 500);
    g_assert_cmpuint(f->server.n_requests, ==, 1);
}

static void
test_loss_of_get(Fixture *f, gconstpointer data)
{
    f->fail_first = 2;
    run(f, &get);
    g_assert_no_error(f->error);
    g_assert_cmpuint(f->server.n_requests, ==, 3);
    g_assert_cmpstr(f->clock.delays->str, ==, "1000 1000 ");
}

static void
test_loss_of_put(Fixture *f, gconstpointer data)
{
    f->fail_first = 1;
    run(f, &put);
    g_assert_nonnull(f->error);
    g_assert_true(f->error->domain == CH_HTTP_ERROR);
    g_assert_cmpuint(f->server.n_requests, ==, 1);
}

static void
test_refused(Fixture *f, gconstpointer data)
{
    test_server_stop(&f->server);
    run(f, &get);
    g_assert_error(f->error, CH_HTTP_ERROR, CH_HTTP_ERROR_REFUSED);
}

static void
serve_nothing(gpointer data, TestRequest *request)
{
}

static void
test_deadline(Fixture *f, gconstpointer data)
{
    ChKubeRequest request = get;

    f->server.handler = serve_nothing;
    request.timeout_us = 20000;
    run(f, &request);
    g_assert_error(f->error, CH_ERROR, CH_ERROR_TIMEOUT);
}

static void
serve_endlessly(gpointer data, TestRequest *request)
{
    g_autofree char *piece = g_strnfill(8 << 20, ' ');

    test_stream_begin(request->bev);
    for (guint i = 0; i < 9; i++)
        test_stream_chunk(request->bev, piece);
}

/* An error that does not end: some of it is kept, the rest passes by. */
static void
serve_huge_error(gpointer data, TestRequest *request)
{
    g_autofree char *huge = g_strnfill(20 << 20, '"');

    test_reply(request->bev, 500, NULL, huge);
}

static void
test_huge_error(Fixture *f, gconstpointer data)
{
    f->server.handler = serve_huge_error;
    run(f, &get);
    g_assert_error(f->error, CH_KUBE_ERROR, 500);
    g_assert_cmpuint(strlen(f->error->message), <, 1000);
    g_assert_cmpuint(strlen(f->body), ==, 1 << 20);
}

static void
test_answer_limit(Fixture *f, gconstpointer data)
{
    f->server.handler = serve_endlessly;
    run(f, &get);
    g_assert_error(f->error, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_cancel(Fixture *f, gconstpointer data)
{
    for (guint turns = 0; turns < 10; turns++) {
        ChKubeCall *call = ch_kube_client_start(f->client, &get, done, f);

        for (guint i = 0; i < turns && f->n_done == 0; i++)
            event_base_loop(ch_loop_peek_base(f->loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
        if (f->n_done == 0)
            ch_kube_call_cancel(call);
        test_wait_us(f->loop, 2000);
        f->n_done = 0;
    }
}

static void
test_throttle(Fixture *f, gconstpointer data)
{
    const ChKubeRequest watch = {.method = "GET", .path = "/w", .is_watch = true};

    ch_kube_client_set_rate(f->client, 2, 3);
    for (guint i = 0; i < 5; i++)
        (void)ch_kube_client_start(f->client, &get, done, f);
    (void)ch_kube_client_start(f->client, &watch, done, f);
    test_wait_until(f->loop, f->n_done == 6);
    /* Three at once, then one each half second; the watch waits for nothing. The first wait moves
     * the clock on by half a second. */
    g_assert_cmpstr(f->clock.delays->str, ==, "500 500 ");

    /* A new bucket is full, and one that gives nothing is not accepted. */
    g_string_truncate(f->clock.delays, 0);
    ch_kube_client_set_rate(f->client, 0, 0);
    for (guint i = 0; i < 100; i++)
        (void)ch_kube_client_start(f->client, &get, done, f);
    test_wait_until(f->loop, f->n_done == 106);
    g_assert_cmpstr(f->clock.delays->str, ==, "");
}

/* ---- the token ---- */

static void
serve_by_token(gpointer data, TestRequest *request)
{
    const bool is_good = strstr(request->headers, "authorization: bearer two") != NULL;

    g_assert_cmpstr(request->target, ==, "/prefix/api/v1/nodes?limit=1");
    test_reply(request->bev, is_good ? 200 : 401, NULL, "{}");
}

static void
test_token(Fixture *f, gconstpointer data)
{
    g_autofree char *directory = g_dir_make_tmp("client-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(directory, "token", NULL);
    char host[] = "127.0.0.1";
    char prefix[] = "/prefix";
    const ChKubeConfig config = {
        .host = host,
        .port = f->server.port,
        .path_prefix = prefix,
        .token_file = file,
    };
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_kube_client_new(f->loop, &config, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_clear_error(&error);

    ch_kube_client_free(f->client);
    f->server.handler = serve_by_token;
    g_assert_true(g_file_set_contents(file, "one", -1, NULL));
    f->client = ch_kube_client_new(f->loop, &config, &error);
    g_assert_no_error(error);

    /* A token that was refused is read anew, for the next request. */
    g_assert_true(g_file_set_contents(file, "two", -1, NULL));
    run(f, &get);
    g_assert_error(f->error, CH_KUBE_ERROR, 401);
    f->n_done = 0;
    run(f, &get);
    g_assert_no_error(f->error);
    g_remove(file);
    g_rmdir(directory);
}

/* ---- from other threads ---- */

typedef struct {
    ChLoop *loop;
    TestServer server;
    ChKubeClient *client;
    atomic_uint n_good;
    pthread_t threads[N_WORKERS];
} Threads;

static void
serve_echo(gpointer data, TestRequest *request)
{
    test_reply(request->bev, 200, NULL, request->body);
}

static void *
work(gpointer data)
{
    Threads *t = data;

    for (guint i = 0; i < N_REQUESTS; i++) {
        g_autofree char *text = g_strdup_printf("{\"n\":%u}", i);
        const ChKubeRequest request = {
            .method = "POST",
            .path = "/echo",
            .body = text,
            .timeout_us = 20 * CH_SECOND_US,
        };
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) body = ch_kube_client_request(t->client, &request, &error);

        if (error == NULL && g_bytes_get_size(body) == strlen(text) &&
            memcmp(g_bytes_get_data(body, NULL), text, strlen(text)) == 0)
            atomic_fetch_add(&t->n_good, 1);
    }
    return NULL;
}

static void
free_all(gpointer data) /* loop thread */
{
    Threads *t = data;

    g_clear_pointer(&t->client, ch_kube_client_free);
    test_server_clear(&t->server);
    ch_loop_stop(t->loop);
}

static void
threads_start(Threads *t, TestHandler handler, void *(*func)(void *))
{
    *t = (Threads){.loop = ch_loop_new()};
    test_server_init(&t->server, t->loop, handler, t);
    t->client = test_client_new(t->loop, &t->server, NULL);
    ch_kube_client_set_rate(t->client, 100000, 1000);
    ch_loop_start(t->loop, "loop");
    for (guint i = 0; i < N_WORKERS; i++)
        pthread_create(&t->threads[i], NULL, func, t);
}

static void
threads_join(Threads *t)
{
    for (guint i = 0; i < N_WORKERS; i++)
        pthread_join(t->threads[i], NULL);
}

static void
loop_join(Threads *t)
{
    ch_loop_join(t->loop);
    ch_loop_free(t->loop);
}

static void
test_workers(void)
{
    Threads t;

    threads_start(&t, serve_echo, work);
    threads_join(&t);
    g_assert_cmpuint(atomic_load(&t.n_good), ==, N_WORKERS * N_REQUESTS);
    ch_loop_post(t.loop, free_all, &t, NULL);
    loop_join(&t);
}

static void *
wait_in_vain(gpointer data)
{
    Threads *t = data;
    const ChKubeRequest request = {.method = "GET", .path = "/", .timeout_us = 30000};

    for (guint i = 0; i < 5; i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ch_kube_client_request(t->client, &request, &error));
        if (g_error_matches(error, CH_ERROR, CH_ERROR_TIMEOUT))
            atomic_fetch_add(&t->n_good, 1);
    }
    return NULL;
}

static void
test_worker_deadline(void)
{
    Threads t;

    threads_start(&t, serve_nothing, wait_in_vain);
    threads_join(&t);
    g_assert_cmpuint(atomic_load(&t.n_good), ==, N_WORKERS * 5);
    ch_loop_post(t.loop, free_all, &t, NULL);
    loop_join(&t);
}

static void *
wait_until_closed(gpointer data)
{
    Threads *t = data;
    const ChKubeRequest request = {.method = "GET", .path = "/", .timeout_us = 20 * CH_SECOND_US};
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_kube_client_request(t->client, &request, &error));
    if (g_error_matches(error, CH_ERROR, CH_ERROR_CLOSED))
        atomic_fetch_add(&t->n_good, 1);
    return NULL;
}

static void
close_when_all_wait(gpointer data, TestRequest *request)
{
    Threads *t = data;

    if (t->server.n_requests == N_WORKERS)
        ch_loop_post(t->loop, free_all, t, NULL);
}

static void
test_client_ends_before_workers(void)
{
    Threads t;

    threads_start(&t, close_when_all_wait, wait_until_closed);
    threads_join(&t);
    g_assert_cmpuint(atomic_load(&t.n_good), ==, N_WORKERS);
    loop_join(&t);
}

#define ADD(path, func) g_test_add("/client/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("headers", test_headers);
    ADD("body", test_body);
    ADD("retry-after", test_retry_after);
    ADD("retry-ends", test_retry_ends);
    ADD("conflict", test_conflict);
    ADD("lost-end-of-an-error", test_lost_end_of_an_error);
    ADD("loss-of-get-is-retried", test_loss_of_get);
    ADD("loss-of-put-is-not", test_loss_of_put);
    ADD("refused", test_refused);
    ADD("deadline", test_deadline);
    ADD("huge-error", test_huge_error);
    ADD("answer-limit", test_answer_limit);
    ADD("cancel", test_cancel);
    ADD("throttle", test_throttle);
    ADD("token", test_token);
    g_test_add_func("/client/workers", test_workers);
    g_test_add_func("/client/worker-deadline", test_worker_deadline);
    g_test_add_func("/client/ends-before-workers", test_client_ends_before_workers);
    return g_test_run();
}
