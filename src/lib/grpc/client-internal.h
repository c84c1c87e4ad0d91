/* SPDX-License-Identifier: Apache-2.0 */

/*
 * client-internal: what client.c (the channel and its calls, on the loop) and client-sync.c (the
 * threads that wait for them) know of each other.
 */

#pragma once

#include <pthread.h>

#include "lib/grpc/client.h"

/* A condition to wait for with a deadline. The lock guards the few words that both sides read; it
 * is never held across I/O or a callback. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
} ChGrpcGate;

void ch_grpc_gate_init(ChGrpcGate *gate);
void ch_grpc_gate_clear(ChGrpcGate *gate);
/* With the lock held. Returns: false: @deadline_us (monotonic) passed */
bool ch_grpc_gate_wait(ChGrpcGate *gate, int64_t deadline_us);

typedef enum {
    CH_GRPC_CHANNEL_INVALID = 0,
    CH_GRPC_CHANNEL_CONNECTING, /* no SETTINGS yet; calls are sent all the same */
    CH_GRPC_CHANNEL_READY,
    CH_GRPC_CHANNEL_DRAINING, /* GOAWAY came: calls that run may finish */
    CH_GRPC_CHANNEL_LOST,     /* the connection is gone */
    CH_GRPC_CHANNEL_CLOSED,   /* by its owner */
    CH_GRPC_CHANNEL_N,
} ChGrpcChannelState;

typedef struct ChH2Session ChH2Session;

struct ChGrpcChannel {
    gint n_refs;  /* atomic: the owner's, the calls', the waiting threads' */
    ChLoop *loop; /* borrowed */
    char *authority;

    int fd;               /* loop thread only: until the session has it */
    ChH2Session *session; /* loop thread only */
    GQueue calls;         /* loop thread only: of ChGrpcCall, linked by their `link` */
    GError *lost;         /* loop thread only: what calls get, the session being gone */

    ChGrpcGate gate; /* guards what follows */
    ChGrpcChannelState state;
};

/* The error that a call gets in @state; NULL: none. */
GError *ch_grpc_channel_error(ChGrpcChannelState state);

/**
 * ch_grpc_call_start_raw: as ch_grpc_call_start(), but gives the bytes of messages.
 * @frame: (transfer full): prefix and message
 * @deadline_us: monotonic; 0: none
 */
typedef struct {
    void (*on_bytes)(gpointer data, GBytes *message);
    void (*on_done)(gpointer data, const GError *error);
} ChGrpcRawSink;
ChGrpcCall *ch_grpc_call_start_raw(ChGrpcChannel *channel,
                                   const char *method,
                                   GBytes *frame,
                                   int64_t deadline_us,
                                   const ChGrpcRawSink *sink,
                                   gpointer data);

ProtobufCMessage *
ch_grpc_response_unpack(const ProtobufCMessageDescriptor *type, GBytes *bytes, GError **error);
