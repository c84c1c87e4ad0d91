/* SPDX-License-Identifier: Apache-2.0 */

/*
 * client-sync: blocking calls, for any thread but the loop's.
 *
 * Theory of operation: the thread packs the request, posts an Exchange to the loop and waits at its
 * gate; the loop runs the call and opens the gate. The loop's timer is what ends a call at its
 * deadline; the thread gives up some seconds later on its own, should the loop hang. Both sides
 * hold a reference to the exchange, so either may be last.
 */

#include "lib/base/time.h"
#include "lib/grpc/client-internal.h"
#include "lib/grpc/message.h"

#define LOOP_GRACE_US (5 * CH_SECOND_US) /* no loop that works is as late as this */
#define TURNS_TO_READ 3                  /* it learns of a socket, finds it readable, has read it */

void
ch_grpc_gate_init(ChGrpcGate *gate)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&gate->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void
ch_grpc_gate_clear(ChGrpcGate *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
}

bool
ch_grpc_gate_wait(ChGrpcGate *gate, int64_t deadline_us)
{
    const struct timespec deadline = {
        .tv_sec = deadline_us / CH_SECOND_US,
        .tv_nsec = deadline_us % CH_SECOND_US * 1000,
    };

    return pthread_cond_timedwait(&gate->changed, &gate->lock, &deadline) == 0;
}

static bool
fail_deadline(GError **error)
{
    return ch_grpc_fail(error, CH_GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
}

/* A few turns of the loop, after which it has read what had been sent before. */
typedef struct {
    gint n_refs;            /* atomic */
    ChGrpcChannel *channel; /* a reference */
    guint n_left;           /* loop thread only */
    bool is_over;           /* guarded by the channel's gate */
} Turns;

static Turns *
turns_ref(Turns *turns)
{
    g_atomic_int_inc(&turns->n_refs);
    return turns;
}

static void
turns_unref(gpointer data)
{
    Turns *turns = data;

    if (!g_atomic_int_dec_and_test(&turns->n_refs))
        return;
    ch_grpc_channel_unref(turns->channel);
    g_free(turns);
}

static void
turns_take(gpointer data) /* loop thread */
{
    Turns *turns = data;
    ChGrpcGate *gate = &turns->channel->gate;

    if (--turns->n_left > 0) {
        ch_loop_post(turns->channel->loop, turns_take, turns_ref(turns), turns_unref);
        return;
    }
    pthread_mutex_lock(&gate->lock);
    turns->is_over = true;
    pthread_mutex_unlock(&gate->lock);
    pthread_cond_broadcast(&gate->changed);
}

/* The deadline is the peer's: what it said in time may lie unread while our loop is busy. */
static ChGrpcChannelState
let_loop_read(ChGrpcChannel *channel)
{
    const int64_t give_up_us = ch_time_now_us() + LOOP_GRACE_US;
    Turns *turns = g_new0(Turns, 1);
    ChGrpcChannelState state;

    turns->n_refs = 1;
    turns->channel = ch_grpc_channel_ref(channel);
    turns->n_left = TURNS_TO_READ;
    ch_loop_post(channel->loop, turns_take, turns_ref(turns), turns_unref);
    pthread_mutex_lock(&channel->gate.lock);
    while (channel->state == CH_GRPC_CHANNEL_CONNECTING && !turns->is_over &&
           ch_grpc_gate_wait(&channel->gate, give_up_us))
        ;
    state = channel->state;
    pthread_mutex_unlock(&channel->gate.lock);
    turns_unref(turns);
    return state;
}

bool
ch_grpc_channel_wait_ready(ChGrpcChannel *channel, int64_t timeout_us, GError **error)
{
    const int64_t deadline_us = ch_time_now_us() + timeout_us;
    ChGrpcChannelState state;
    GError *failure = NULL;

    pthread_mutex_lock(&channel->gate.lock);
    while (channel->state == CH_GRPC_CHANNEL_CONNECTING &&
           ch_grpc_gate_wait(&channel->gate, deadline_us))
        ;
    state = channel->state;
    pthread_mutex_unlock(&channel->gate.lock);
    if (state == CH_GRPC_CHANNEL_CONNECTING)
        state = let_loop_read(channel);

    if (state == CH_GRPC_CHANNEL_CONNECTING)
        return fail_deadline(error);
    failure = ch_grpc_channel_error(state);
    if (failure == NULL)
        return true;
    g_propagate_error(error, failure);
    return false;
}

typedef struct {
    gint n_refs;            /* atomic */
    ChGrpcChannel *channel; /* a reference */
    char *method;
    GBytes *frame; /* until the call is started */
    int64_t deadline_us;

    ChGrpcGate gate; /* guards what follows */
    bool is_done;
    guint n_messages;
    GBytes *message; /* (nullable): the first */
    GError *error;   /* (nullable): with is_done */
} Exchange;

static Exchange *
exchange_ref(Exchange *exchange)
{
    g_atomic_int_inc(&exchange->n_refs);
    return exchange;
}

static void
exchange_unref(gpointer data)
{
    Exchange *exchange = data;

    if (!g_atomic_int_dec_and_test(&exchange->n_refs))
        return;
    g_clear_pointer(&exchange->frame, g_bytes_unref);
    g_clear_pointer(&exchange->message, g_bytes_unref);
    g_clear_error(&exchange->error);
    ch_grpc_gate_clear(&exchange->gate);
    ch_grpc_channel_unref(exchange->channel);
    g_free(exchange->method);
    g_free(exchange);
}

static void
on_bytes(gpointer data, GBytes *message)
{
    Exchange *exchange = data;

    pthread_mutex_lock(&exchange->gate.lock);
    if (exchange->n_messages++ == 0)
        exchange->message = g_bytes_ref(message);
    pthread_mutex_unlock(&exchange->gate.lock);
}

/* @error: (nullable) (transfer full) */
static void
exchange_finish(Exchange *exchange, GError *error)
{
    pthread_mutex_lock(&exchange->gate.lock);
    exchange->is_done = true;
    exchange->error = error;
    pthread_mutex_unlock(&exchange->gate.lock);
    pthread_cond_broadcast(&exchange->gate.changed);
}

static void
on_done(gpointer data, const GError *error)
{
    exchange_finish(data, error != NULL ? g_error_copy(error) : NULL);
    exchange_unref(data); /* the call's */
}

static void
exchange_start(gpointer data)
{
    static const ChGrpcRawSink sink = {.on_bytes = on_bytes, .on_done = on_done};
    Exchange *exchange = data;

    ch_grpc_call_start_raw(exchange->channel,
                           exchange->method,
                           g_steal_pointer(&exchange->frame),
                           exchange->deadline_us,
                           &sink,
                           exchange_ref(exchange));
}

/* The post's end. A frame that is still there means that the loop was freed before it ran. */
static void
exchange_posted(gpointer data)
{
    Exchange *exchange = data;

    if (exchange->frame != NULL)
        exchange_finish(exchange, ch_grpc_channel_error(CH_GRPC_CHANNEL_CLOSED));
    exchange_unref(exchange);
}

/* @frame: (transfer full) */
static Exchange *
exchange_new(ChGrpcChannel *channel, const char *method, GBytes *frame, int64_t deadline_us)
{
    Exchange *exchange = g_new0(Exchange, 1);

    exchange->n_refs = 1;
    exchange->channel = ch_grpc_channel_ref(channel);
    exchange->method = g_strdup(method);
    exchange->frame = frame;
    exchange->deadline_us = deadline_us;
    ch_grpc_gate_init(&exchange->gate);
    return exchange;
}

/* Returns: (transfer full): the bytes of the one message */
static GBytes *
exchange_wait(Exchange *exchange, GError **error)
{
    const int64_t give_up_us = exchange->deadline_us + LOOP_GRACE_US;
    GBytes *message = NULL;

    pthread_mutex_lock(&exchange->gate.lock);
    while (!exchange->is_done && ch_grpc_gate_wait(&exchange->gate, give_up_us))
        ;
    if (!exchange->is_done)
        fail_deadline(error);
    else if (exchange->error != NULL)
        g_propagate_error(error, g_steal_pointer(&exchange->error));
    else if (exchange->n_messages == 0)
        ch_grpc_fail(error,
                     CH_GRPC_INTERNAL,
                     "cardinality violation: received no response message from "
                     "non-server-streaming RPC");
    else if (exchange->n_messages > 1)
        ch_grpc_fail(error,
                     CH_GRPC_INTERNAL,
                     "cardinality violation: expected <EOF> for non server-streaming RPCs, but "
                     "received another message");
    else
        message = g_steal_pointer(&exchange->message);
    pthread_mutex_unlock(&exchange->gate.lock);
    return message;
}

bool
ch_grpc_call(ChGrpcChannel *channel,
             const char *method,
             const ProtobufCMessage *request,
             const ProtobufCMessageDescriptor *response_type,
             int64_t timeout_us,
             ProtobufCMessage **out_response,
             GError **error)
{
    const int64_t deadline_us = ch_time_now_us() + timeout_us;
    GBytes *frame = ch_grpc_message_pack(request, error);
    g_autoptr(GBytes) bytes = NULL;
    ProtobufCMessage *response;
    Exchange *exchange;

    if (frame == NULL)
        return false;
    exchange = exchange_new(channel, method, frame, deadline_us);
    ch_loop_post(channel->loop, exchange_start, exchange_ref(exchange), exchange_posted);
    bytes = exchange_wait(exchange, error);
    exchange_unref(exchange);
    if (bytes == NULL)
        return false;
    response = ch_grpc_response_unpack(response_type, bytes, error);
    if (response == NULL)
        return false;
    *out_response = response;
    return true;
}
