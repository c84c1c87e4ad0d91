/* SPDX-License-Identifier: Apache-2.0 */

/* Threads that block in calls, against our own server on the same loop. */

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/grpc/client.h"
#include "lib/grpc/server.h"
#include "notify.pb-c.h"

#define TIMEOUT_US (60 * CH_SECOND_US)
#define ECHO       "/test.Test/Echo"
#define HANG       "/test.Test/Hang"
#define TWICE      "/test.Test/Twice"
#define NOTHING    "/test.Test/Nothing"

typedef struct {
    ChLoop *loop;
    ChGrpcServer *server;
    ChGrpcChannel *channel;
    GPtrArray *hanging; /* calls that nobody answers; loop thread only */
    gint n_hanging;     /* atomic */
    bool is_stopped;
} Fixture;

static void
handle_echo(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    const Kubevirt__Notify__V1__K8sEventRequest *event = (const void *)request;
    Kubevirt__Notify__V1__K8sEventRequest response = KUBEVIRT__NOTIFY__V1__K8S_EVENT_REQUEST__INIT;

    response.event_json = event->event_json;
    ch_grpc_server_call_reply(call, &response.base);
}

static void
handle_hang(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Fixture *f = data;

    g_ptr_array_add(f->hanging, call);
    g_atomic_int_inc(&f->n_hanging);
}

static void
handle_twice(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    ch_grpc_server_call_send(call, request);
    ch_grpc_server_call_reply(call, request);
}

static void
handle_nothing(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    ch_grpc_server_call_finish(call);
}

#define REQUEST_TYPE (&kubevirt__notify__v1__k8s_event_request__descriptor)
static const ChGrpcMethod methods[] = {
    {ECHO, &kubevirt__notify__v1__k8s_event_request__descriptor, handle_echo},
    {HANG, &kubevirt__notify__v1__k8s_event_request__descriptor, handle_hang},
    {TWICE, &kubevirt__notify__v1__k8s_event_request__descriptor, handle_twice},
    {NOTHING, &kubevirt__notify__v1__k8s_event_request__descriptor, handle_nothing},
};

static void
set_up(Fixture *f, gconstpointer data)
{
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    f->hanging = g_ptr_array_new();
    f->loop = ch_loop_new();
    f->server = ch_grpc_server_new(f->loop, NULL);
    ch_grpc_server_add(f->server, methods, G_N_ELEMENTS(methods), f);
    ch_grpc_server_accept(f->server, fds[0], NULL, NULL);
    f->channel = ch_grpc_channel_new(f->loop, fds[1], "localhost");
    ch_loop_start(f->loop, "test-loop");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_grpc_channel_unref(f->channel);
    ch_loop_stop(f->loop);
    ch_loop_join(f->loop);
    for (guint i = 0; i < f->hanging->len; i++)
        ch_grpc_server_call_finish(f->hanging->pdata[i]);
    ch_grpc_server_free(f->server);
    ch_loop_free(f->loop);
    g_ptr_array_unref(f->hanging);
}

/* Returns: the length of the answer; -1 with an error */
static gssize
call(Fixture *f, const char *method, gsize length, int64_t timeout_us, GError **error)
{
    Kubevirt__Notify__V1__K8sEventRequest request = KUBEVIRT__NOTIFY__V1__K8S_EVENT_REQUEST__INIT;
    g_autofree char *text = g_strnfill(length, 'x');
    ProtobufCMessage *response = NULL;
    gsize answered;

    request.event_json.data = (uint8_t *)text;
    request.event_json.len = length;
    if (!ch_grpc_call(
            f->channel, method, &request.base, REQUEST_TYPE, timeout_us, &response, error))
        return -1;
    answered = ((Kubevirt__Notify__V1__K8sEventRequest *)(void *)response)->event_json.len;
    protobuf_c_message_free_unpacked(response, NULL);
    return (gssize)answered;
}

static void
test_sizes(Fixture *f, gconstpointer data)
{
    static const gsize lengths[] = {0, 1, 16384, 65535, 300000, (4u << 20) - 16};

    for (gsize i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(call(f, ECHO, lengths[i], TIMEOUT_US, &error), ==, (gssize)lengths[i]);
        g_assert_no_error(error);
    }
}

static void
test_wait_ready(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_grpc_channel_wait_ready(f->channel, TIMEOUT_US, &error));
    g_assert_no_error(error);
    g_assert_true(ch_grpc_channel_is_usable(f->channel));
}

static void
test_wait_ready_gives_up(Fixture *f, gconstpointer data)
{
    int fds[2];
    g_autoptr(GError) timeout = NULL;
    g_autoptr(GError) lost = NULL;
    g_autoptr(ChGrpcChannel) mute = NULL;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    mute = ch_grpc_channel_new(f->loop, fds[0], "localhost");
    g_assert_false(ch_grpc_channel_wait_ready(mute, 20 * CH_MS_US, &timeout));
    g_assert_error(timeout, CH_GRPC_ERROR, CH_GRPC_DEADLINE_EXCEEDED);
    close(fds[1]);
    g_assert_false(ch_grpc_channel_wait_ready(mute, TIMEOUT_US, &lost));
    g_assert_error(lost, CH_GRPC_ERROR, CH_GRPC_UNAVAILABLE);
}

static void
block_loop(gpointer data)
{
    g_usleep(200 * 1000);
}

/* The peer was in time; that we were not is not its fault. */
static void
test_wait_ready_forgives_a_busy_loop(Fixture *f, gconstpointer data)
{
    static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    g_autoptr(GError) error = NULL;
    g_autoptr(ChGrpcChannel) channel = NULL;
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    g_assert_cmpint(write(fds[1], settings, sizeof(settings)), ==, sizeof(settings));
    ch_loop_post(f->loop, block_loop, NULL, NULL);
    channel = ch_grpc_channel_new(f->loop, fds[0], "localhost");
    g_assert_true(ch_grpc_channel_wait_ready(channel, 20 * CH_MS_US, &error));
    g_assert_no_error(error);
    ch_grpc_channel_close(channel);
    close(fds[1]);
}

static void
test_deadline(Fixture *f, gconstpointer data)
{
    const int64_t start_us = ch_time_now_us();
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(call(f, HANG, 1, 50 * CH_MS_US, &error), ==, -1);
    g_assert_error(error, CH_GRPC_ERROR, CH_GRPC_DEADLINE_EXCEEDED);
    g_assert_cmpint(ch_time_now_us() - start_us, >=, 50 * CH_MS_US);
    g_clear_error(&error);
    /* the connection is none the worse */
    g_assert_cmpint(call(f, ECHO, 5, TIMEOUT_US, &error), ==, 5);
}

static void
test_cardinality(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) twice = NULL;
    g_autoptr(GError) nothing = NULL;

    g_assert_cmpint(call(f, TWICE, 1, TIMEOUT_US, &twice), ==, -1);
    g_assert_error(twice, CH_GRPC_ERROR, CH_GRPC_INTERNAL);
    g_assert_cmpint(call(f, NOTHING, 1, TIMEOUT_US, &nothing), ==, -1);
    g_assert_error(nothing, CH_GRPC_ERROR, CH_GRPC_INTERNAL);
}

#define N_THREADS 8
#define N_CALLS   50

static void *
echo_many(void *data)
{
    for (gsize i = 0; i < N_CALLS; i++) {
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(call(data, ECHO, i * 100, TIMEOUT_US, &error), ==, (gssize)(i * 100));
        g_assert_no_error(error);
    }
    return NULL;
}

static void
test_many_threads(Fixture *f, gconstpointer data)
{
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++)
        g_assert_cmpint(pthread_create(&threads[i], NULL, echo_many, f), ==, 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void *
hang_until_closed(void *data)
{
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(call(data, HANG, 1, TIMEOUT_US, &error), ==, -1);
    g_assert_error(error, CH_GRPC_ERROR, CH_GRPC_CANCELED);
    g_assert_cmpstr(error->message, ==, "grpc: the client connection is closing");
    return NULL;
}

static void
test_close_frees_blocked_threads(Fixture *f, gconstpointer data)
{
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++)
        g_assert_cmpint(pthread_create(&threads[i], NULL, hang_until_closed, f), ==, 0);
    while (g_atomic_int_get(&f->n_hanging) < N_THREADS)
        g_usleep(1000);
    ch_grpc_channel_close(f->channel);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

#define ADD(name, function)                                                                        \
    g_test_add("/grpc/client-sync/" name, Fixture, NULL, set_up, function, tear_down)

int
main(int argc, char **argv)
{
    g_autoptr(GError) first = NULL;

    g_test_init(&argc, &argv, NULL);
    /* GLib makes a lock for error domains with the first error; done here, before there are
     * threads, as TSan does not see GLib's own synchronization. */
    ch_grpc_fail(&first, CH_GRPC_UNKNOWN, "first");
    ADD("sizes", test_sizes);
    ADD("wait-ready", test_wait_ready);
    ADD("wait-ready-gives-up", test_wait_ready_gives_up);
    ADD("wait-ready-forgives-a-busy-loop", test_wait_ready_forgives_a_busy_loop);
    ADD("deadline", test_deadline);
    ADD("cardinality", test_cardinality);
    ADD("many-threads", test_many_threads);
    ADD("close-frees-blocked-threads", test_close_frees_blocked_threads);
    return g_test_run();
}
