/* SPDX-License-Identifier: Apache-2.0 */

/*
 * client: gRPC calls on one connection, unary and server-streaming.
 *
 * Wire behaviour of spec 03 §3 (what a grpc-go peer expects and what it answers); statuses and
 * texts as §3.4 has them, since the error classes of spec 01 §14.6 hang on them. A channel does
 * not dial and does not reconnect: when its connection is used up (ch_grpc_channel_is_usable()),
 * its owner makes another.
 */

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "lib/grpc/frame.h"
#include "lib/io/loop.h"

typedef struct ChGrpcChannel ChGrpcChannel;
typedef struct ChGrpcCall ChGrpcCall; /* valid until on_done returned or it was cancelled */

/**
 * ch_grpc_channel_new:
 * @fd: (transfer full): connected stream socket, non-blocking or not (it is made so)
 * @authority: ":authority" of every call; copied ("localhost" for launchers)
 *
 * The HTTP/2 preface goes out at once. A channel whose connection ended stays usable: every call
 * ends with UNAVAILABLE. Thread: any.
 */
ChGrpcChannel *ch_grpc_channel_new(ChLoop *loop, int fd, const char *authority);
/* A channel whose connection could not be made: every call ends with UNAVAILABLE and @text. Thread:
 * any. */
ChGrpcChannel *ch_grpc_channel_new_lost(ChLoop *loop, const char *text);
/* Running calls end with CANCELED "grpc: the client connection is closing". Thread: any; the object
 * goes away on the loop's thread. Threads inside ch_grpc_call() are safe: they hold a reference. */
void ch_grpc_channel_close(ChGrpcChannel *channel);
ChGrpcChannel *ch_grpc_channel_ref(ChGrpcChannel *channel); /* Thread: any */
/* The last reference closes the connection. Thread: any. */
void ch_grpc_channel_unref(ChGrpcChannel *channel);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChGrpcChannel, ch_grpc_channel_unref)

/* False once the connection was closed, lost, or said GOAWAY: calls that run may still finish, new
 * ones will not start. True proves nothing. Thread: any. */
bool ch_grpc_channel_is_usable(ChGrpcChannel *channel);

/**
 * ch_grpc_channel_wait_ready: until the peer's SETTINGS came.
 * Returns: false: CH_GRPC_ERROR DEADLINE_EXCEEDED "context deadline exceeded", UNAVAILABLE, or
 * CANCELED when the channel was closed
 * Thread: any but the loop's. Blocks: up to @timeout_us.
 */
bool ch_grpc_channel_wait_ready(ChGrpcChannel *channel, int64_t timeout_us, GError **error);

/**
 * ch_grpc_call: one unary call.
 * @method: "/kubevirt.cmd.v1.Cmd/Ping"
 * @request: borrowed
 * @response_type: descriptor of the answer
 * @out_response: (out) (transfer full): free with protobuf_c_message_free_unpacked(); only on
 * success
 *
 * Returns: false with CH_GRPC_ERROR. Thread: any but the loop's. Blocks: up to @timeout_us (> 0).
 */
bool ch_grpc_call(ChGrpcChannel *channel,
                  const char *method,
                  const ProtobufCMessage *request,
                  const ProtobufCMessageDescriptor *response_type,
                  int64_t timeout_us,
                  ProtobufCMessage **out_response,
                  GError **error);

/* Asynchronous, for the loop's thread; on_message once for unary calls, any number of times for
 * server streams. Both may cancel any call and close the channel. on_done is the last, and never
 * comes from within ch_grpc_call_start(). */
typedef struct {
    void (*on_message)(gpointer data, ProtobufCMessage *message /* borrowed */);
    void (*on_done)(gpointer data, const GError *error /* NULL: status OK */);
} ChGrpcSink;
ChGrpcCall *ch_grpc_call_start(ChGrpcChannel *channel,
                               const char *method,
                               const ProtobufCMessage *request,
                               const ProtobufCMessageDescriptor *response_type,
                               int64_t timeout_us /* 0: none */,
                               const ChGrpcSink *sink,
                               gpointer data);
/* No callback comes any more. */
void ch_grpc_call_cancel(ChGrpcCall *call);
