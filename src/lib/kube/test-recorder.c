/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/recorder.h"

#include <pthread.h>

#include "lib/json/json.h"
#include "lib/kube/test-server.h"

#define N_THREADS 4
#define N_EVENTS  200

/* An event server: keeps what was written, and breaks on demand. */
typedef struct {
    ChLoop *loop;
    TestServer server;
    TestClock clock;
    ChKubeClient *client;
    ChRecorder *recorder;

    GString *log; /* "POST reason: message; PATCH count; " */
    GPtrArray *bodies;
    guint cut_first;       /* so many requests get no answer */
    const char *patch_404; /* non-NULL: PATCH is answered by it and 404 */
    int post_status;       /* 0: 201 */
    const char *post_body; /* NULL: the event itself */
    bool holds_back;       /* no answer for now */
    struct bufferevent *held;
} Fixture;

static void
answer(Fixture *f, TestRequest *request, const ChJson *body)
{
    const bool is_post = g_str_equal(request->method, "POST");
    int64_t count = 0;

    if (is_post) {
        g_string_append_printf(f->log,
                               "POST %s: %s; ",
                               ch_json_string_at(body, "reason"),
                               ch_json_string_at(body, "message"));
        test_reply(request->bev,
                   f->post_status != 0 ? f->post_status : 201,
                   NULL,
                   f->post_body != NULL ? f->post_body : request->body);
        return;
    }
    g_assert_true(ch_json_int_at(body, &count, "count"));
    g_string_append_printf(f->log, "PATCH %d; ", (int)count);
    if (f->patch_404 != NULL) {
        test_reply(request->bev, 404, NULL, f->patch_404);
        return;
    }
    test_reply(request->bev, 200, NULL, "{\"kind\":\"Event\",\"apiVersion\":\"v1\"}");
}

static void
serve(gpointer data, TestRequest *request)
{
    Fixture *f = data;
    g_autoptr(ChJson) body = ch_json_parse(request->body, -1, NULL);

    g_assert_nonnull(body);
    if (f->cut_first > 0) {
        f->cut_first--;
        g_string_append(f->log, "cut; ");
        test_cut(request->server, request->bev);
        return;
    }
    g_ptr_array_add(
        f->bodies,
        g_strdup_printf(
            "%s %s\n%s\n%s", request->method, request->target, request->headers, request->body));
    if (f->holds_back)
        f->held = request->bev;
    else
        answer(f, request, body);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->loop = ch_loop_new();
    f->log = g_string_new(NULL);
    f->bodies = g_ptr_array_new_with_free_func(g_free);
    test_clock_init(&f->clock);
    f->clock.random = 0.25;
    test_server_init(&f->server, f->loop, serve, f);
    f->client = test_client_new(f->loop, &f->server, &f->clock);
    f->recorder = ch_recorder_new(f->client, "virt-handler", "node01");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_recorder_free(f->recorder);
    ch_kube_client_free(f->client);
    test_server_clear(&f->server);
    test_clock_clear(&f->clock);
    ch_loop_free(f->loop);
    g_string_free(f->log, TRUE);
    g_ptr_array_unref(f->bodies);
}

static const ChObjectRef vmi = {
    .kind = "VirtualMachineInstance",
    .api_version = "kubevirt.io/v1",
    .namespace_ = "default",
    .name = "testvmi",
    .uid = "u1",
    .resource_version = "41",
};

static void
record(Fixture *f, const char *reason, const char *message)
{
    ch_recorder_event(f->recorder, &vmi, "Normal", reason, message);
}

/* Waits until the log reads @text, and that nothing follows. */
static void
expect_log(Fixture *f, const char *text)
{
    test_wait_until(f->loop, f->log->len >= strlen(text));
    test_wait_us(f->loop, 10000);
    g_assert_cmpstr(f->log->str, ==, text);
}

static void
test_new_event(Fixture *f, gconstpointer data)
{
    const char *body;

    record(f, "Created", "VirtualMachineInstance defined.");
    expect_log(f, "POST Created: VirtualMachineInstance defined.; ");
    body = g_ptr_array_index(f->bodies, 0);
    g_assert_true(g_str_has_prefix(body, "POST /api/v1/namespaces/default/events\n"));
    g_assert_nonnull(strstr(body, "content-type: application/json"));
    g_assert_nonnull(strstr(body, "\"name\":\"testvmi.17979cfe362a0000\""));
    g_assert_nonnull(strstr(body, "\"reportingInstance\":\"node01\""));
    g_assert_nonnull(strstr(body, "\"count\":1"));
}

static void
test_repetition_is_patched(Fixture *f, gconstpointer data)
{
    const char *body;

    record(f, "Created", "again");
    record(f, "Created", "again");
    record(f, "Created", "again");
    expect_log(f, "POST Created: again; PATCH 2; PATCH 3; ");
    body = g_ptr_array_index(f->bodies, 2);
    g_assert_true(g_str_has_prefix(
        body, "PATCH /api/v1/namespaces/default/events/testvmi.17979cfe362a0000\n"));
    g_assert_nonnull(strstr(body, "application/strategic-merge-patch+json"));
}

static void
test_removed_event_is_posted_again(Fixture *f, gconstpointer data)
{
    f->patch_404 = "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\",\"message\":\"no\"}";
    record(f, "Created", "again");
    record(f, "Created", "again");
    expect_log(f, "POST Created: again; PATCH 2; POST Created: again; ");
    g_assert_nonnull(strstr(g_ptr_array_index(f->bodies, 2), "\"count\":2"));
}

static void
test_refusal_drops(Fixture *f, gconstpointer data)
{
    f->post_status = 403;
    f->post_body = "not even a Status";
    record(f, "One", "a");
    record(f, "Two", "b");
    expect_log(f, "POST One: a; POST Two: b; ");
    g_assert_cmpstr(f->clock.delays->str, ==, "");
}

static void
test_losses_are_retried_in_order(Fixture *f, gconstpointer data)
{
    f->cut_first = 3;
    record(f, "One", "a");
    record(f, "Two", "b");
    expect_log(f, "cut; cut; cut; POST One: a; POST Two: b; ");
    g_assert_cmpstr(f->clock.delays->str, ==, "2500 10000 10000 ");
}

static void
test_twelve_tries(Fixture *f, gconstpointer data)
{
    f->cut_first = 12;
    record(f, "One", "a");
    record(f, "Two", "b");
    expect_log(f,
               "cut; cut; cut; cut; cut; cut; cut; cut; cut; cut; cut; cut; "
               "POST Two: b; ");
}

static void
test_senseless_answer_is_retried(Fixture *f, gconstpointer data)
{
    f->post_body = "{\"kind\":\"Pod\"}";
    record(f, "One", "a");
    test_wait_until(f->loop, f->bodies->len == 12);
    f->post_body = NULL;
    record(f, "Two", "b");
    test_wait_until(f->loop, f->bodies->len == 13);
    g_assert_true(g_str_has_suffix(f->log->str, "POST One: a; POST Two: b; "));
}

static void
test_empty_answer_is_retried(Fixture *f, gconstpointer data)
{
    f->post_body = "";
    record(f, "One", "a");
    test_wait_until(f->loop, f->bodies->len == 2);
    f->post_body = NULL;
    test_wait_until(f->loop, f->bodies->len == 3);
    g_assert_true(g_str_has_suffix(f->log->str, "POST One: a; "));
}

/* spec:01#102 */
static void
test_spam_is_cut(Fixture *f, gconstpointer data)
{
    /* Of one message: the 25th is the last that is written, the count goes on. */
    for (guint i = 0; i < 40; i++)
        record(f, "SyncFailed", "the same");
    ch_recorder_event(f->recorder, &vmi, "Warning", "Stopped", "its own budget");
    test_wait_until(f->loop, strstr(f->log->str, "POST Stopped") != NULL);
    g_assert_cmpuint(f->bodies->len, ==, 26);
    g_assert_nonnull(strstr(f->log->str, "PATCH 25; POST Stopped"));

    f->clock.now_us += 300 * CH_SECOND_US;
    record(f, "SyncFailed", "the same");
    test_wait_until(f->loop, strstr(f->log->str, "PATCH 41; ") != NULL);
}

static void
test_other_types_are_dropped(Fixture *f, gconstpointer data)
{
    ch_recorder_event(f->recorder, &vmi, "Foo", "One", "a");
    ch_recorder_event(f->recorder, &vmi, "", "One", "a");
    record(f, "Two", "b");
    expect_log(f, "POST Two: b; ");
}

static void
test_hostile_text(Fixture *f, gconstpointer data)
{
    const ChObjectRef outside = {.namespace_ = "../.. x\r\n/", .name = "a/b"};
    g_autofree char *huge = g_strnfill(1 << 20, '"');

    record(f, "One", huge);
    record(f, "Two", "bad \xff\x80 bytes\n");
    record(f, NULL, NULL);
    ch_recorder_event(f->recorder, &outside, "Normal", "Three", "c");
    test_wait_until(f->loop, f->bodies->len == 4);
    g_assert_true(g_str_has_prefix(g_ptr_array_index(f->bodies, 3),
                                   "POST /api/v1/namespaces/..%2F..%20x%0D%0A%2F/events\n"));
    g_assert_cmpuint(strlen(g_ptr_array_index(f->bodies, 0)), <, 64 << 10);
    g_assert_true(g_utf8_validate(g_ptr_array_index(f->bodies, 1), -1, NULL));
}

/* The test's clock stands still. */
static void
test_names_differ(Fixture *f, gconstpointer data)
{
    record(f, "One", "a");
    record(f, "Two", "b");
    f->clock.wall_us -= 3600 * CH_SECOND_US;
    record(f, "Three", "c");
    expect_log(f, "POST One: a; POST Two: b; POST Three: c; ");
    g_assert_nonnull(strstr(g_ptr_array_index(f->bodies, 0), "\"testvmi.17979cfe362a0000\""));
    g_assert_nonnull(strstr(g_ptr_array_index(f->bodies, 1), "\"testvmi.17979cfe362a0001\""));
    g_assert_nonnull(strstr(g_ptr_array_index(f->bodies, 2), "\"testvmi.179799b805716000\""));
}

/* spec:01#103: The writer hangs: one event with it, 1000 behind, the rest is dropped, and nobody
 * waits. */
static void
test_queue_is_bounded(Fixture *f, gconstpointer data)
{
    f->holds_back = true;
    for (guint i = 0; i < 1500; i++) {
        ChObjectRef object = vmi;
        g_autofree char *uid = g_strdup_printf("u%u", i);

        object.uid = uid; /* a spam budget of its own */
        ch_recorder_event(f->recorder, &object, "Normal", "Many", uid);
        if (i % 100 == 0)
            test_wait_us(f->loop, 1000);
    }
    test_wait_until(f->loop, f->held != NULL);
    g_assert_cmpuint(f->bodies->len, ==, 1);
    f->holds_back = false;
    ch_kube_client_set_rate(f->client, 1e6, 10000);
    test_cut(&f->server, f->held); /* the first one is tried again */
    test_wait_until(f->loop, f->bodies->len == 1 + 1 + 1000);
    test_wait_us(f->loop, 20000);
    g_assert_cmpuint(f->bodies->len, ==, 1002);
    g_assert_true(g_str_has_suffix(f->log->str, "POST Many: u1000; "));
}

static void
count(gpointer data)
{
    (*(guint *)data)++;
}

static void
test_flush(Fixture *f, gconstpointer data)
{
    guint n_flushed = 0;

    ch_recorder_flush(f->recorder, count, &n_flushed);
    g_assert_cmpuint(n_flushed, ==, 1); /* there is nothing to wait for */
    f->holds_back = true;
    record(f, "First", "a");
    record(f, "Second", "b");
    ch_recorder_flush(f->recorder, count, &n_flushed);
    test_wait_until(f->loop, f->held != NULL);
    g_assert_cmpuint(n_flushed, ==, 1);
    f->holds_back = false;
    test_reply(f->held, 201, NULL, "{\"kind\":\"Event\",\"apiVersion\":\"v1\"}");
    test_wait_until(f->loop, n_flushed == 2);
    g_assert_cmpuint(f->bodies->len, ==, 2);
}

static void
test_free_while_busy(Fixture *f, gconstpointer data)
{
    for (guint turns = 0; turns < 10; turns++) {
        ChRecorder *recorder = ch_recorder_new(f->client, "virt-handler", "node01");

        for (guint i = 0; i < 3; i++)
            ch_recorder_event(recorder, &vmi, "Normal", "Many", "a");
        for (guint i = 0; i < turns; i++)
            event_base_loop(ch_loop_peek_base(f->loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
        ch_recorder_free(recorder);
    }
    test_wait_us(f->loop, 5000);
}

/* ---- from other threads ---- */

static void
serve_plain(gpointer data, TestRequest *request)
{
    test_reply(request->bev, 201, NULL, request->body);
}

static void *
record_many(gpointer data)
{
    Fixture *f = data;

    for (guint i = 0; i < N_EVENTS; i++) {
        g_autofree char *uid = g_strdup_printf("u%u", g_random_int());
        ChObjectRef object = vmi;

        object.uid = uid;
        ch_recorder_event(f->recorder, &object, "Normal", "Many", "a");
    }
    return NULL;
}

static void
test_threads(void)
{
    Fixture f = {.loop = ch_loop_new()};
    pthread_t threads[N_THREADS];

    test_server_init(&f.server, f.loop, serve_plain, &f);
    f.client = test_client_new(f.loop, &f.server, NULL);
    ch_kube_client_set_rate(f.client, 1e6, 10000);
    f.recorder = ch_recorder_new(f.client, "virt-handler", "node01");
    for (guint i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, record_many, &f);
    test_wait_until(f.loop, f.server.n_requests == N_THREADS * N_EVENTS);
    for (guint i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    ch_recorder_free(f.recorder);
    ch_kube_client_free(f.client);
    test_server_clear(&f.server);
    ch_loop_free(f.loop);
}

#define ADD(path, func) g_test_add("/recorder/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("new-event", test_new_event);
    ADD("repetition-is-patched", test_repetition_is_patched);
    ADD("removed-event-is-posted-again", test_removed_event_is_posted_again);
    ADD("refusal-drops", test_refusal_drops);
    ADD("losses-are-retried-in-order", test_losses_are_retried_in_order);
    ADD("twelve-tries", test_twelve_tries);
    ADD("senseless-answer-is-retried", test_senseless_answer_is_retried);
    ADD("empty-answer-is-retried", test_empty_answer_is_retried);
    ADD("spam-is-cut", test_spam_is_cut);
    ADD("other-types-are-dropped", test_other_types_are_dropped);
    ADD("hostile-text", test_hostile_text);
    ADD("names-differ-within-a-microsecond", test_names_differ);
    ADD("queue-is-bounded", test_queue_is_bounded);
    ADD("flush", test_flush);
    ADD("free-while-busy", test_free_while_busy);
    g_test_add_func("/recorder/threads", test_threads);
    return g_test_run();
}
