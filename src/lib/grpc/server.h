/* SPDX-License-Identifier: Apache-2.0 */

/*
 * server: gRPC services on listening sockets.
 *
 * Behaves towards a grpc-go client as grpc-go's server does (spec 03 §3): SETTINGS first, 4 MiB
 * messages inwards, trailers-only errors, PING and SETTINGS answered, GOAWAY on graceful stop.
 * Garbage closes that connection and nothing else. Limits: connections, concurrent streams, header
 * list, message size, idle preface (ChGrpcServerOptions). Thread: the loop's; reply and fail: any.
 */

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "lib/grpc/status.h"
#include "lib/io/loop.h"

#define CH_GRPC_MAX_UNSENT_BYTES (16u << 20) /* a stream's, before another message is taken */

typedef struct ChGrpcServer ChGrpcServer;
typedef struct ChGrpcServerCall ChGrpcServerCall;

/* Handlers run on the loop's thread and must not block: a handler that needs time keeps @call and
 * replies later, from any thread. Exactly one of reply/finish/fail ends a call; afterwards it is
 * gone. A call whose peer went away must still be ended: nothing is sent. What is sent goes out in
 * a later turn of the loop, in the order in which one thread asked for it. A handler must not free
 * the server. */
typedef struct {
    const char *path; /* "/kubevirt.notify.v1.Notify/HandleDomainEvent" */
    const ProtobufCMessageDescriptor *request_type;
    void (*handler)(ChGrpcServerCall *call,
                    const ProtobufCMessage *request /* borrowed */,
                    gpointer data);
} ChGrpcMethod;

typedef struct {
    guint max_connections;      /* 0: 1024 */
    guint max_streams;          /* per connection; 0: 100 */
    int64_t preface_timeout_us; /* 0: 120 s */
} ChGrpcServerOptions;

ChGrpcServer *ch_grpc_server_new(ChLoop *loop, const ChGrpcServerOptions *options /* (nullable) */);
/* @methods: static storage, @n_methods entries */
/* Before the first connection. */
void ch_grpc_server_add(ChGrpcServer *server,
                        const ChGrpcMethod *methods,
                        gsize n_methods,
                        gpointer data);
/* @listen_fd: (transfer full): bound and listening stream socket */
void ch_grpc_server_listen(ChGrpcServer *server, int listen_fd);
/* @fd: (transfer full): an accepted connection; @peer: (nullable) opaque tag that
 * ch_grpc_server_call_peer() returns; destroyed on the loop's thread, by then no call has it any
 * more */
void
ch_grpc_server_accept(ChGrpcServer *server, int fd, gpointer peer, GDestroyNotify peer_destroy);
/* No new connections, GOAWAY on the others, then closed when the streams ended or after @grace_us;
 * @done runs then, in a later turn; never once the server was freed. */
void ch_grpc_server_stop(ChGrpcServer *server, int64_t grace_us, ChLoopFunc done, gpointer data);
void ch_grpc_server_free(ChGrpcServer *server); /* hard: closes everything */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChGrpcServer, ch_grpc_server_free)

/* Valid until the call is ended, also when its connection is gone. Thread: any. */
gpointer ch_grpc_server_call_peer(const ChGrpcServerCall *call);
/* Peer cancelled, deadline passed or connection lost. Thread: the loop's. */
bool ch_grpc_server_call_is_gone(const ChGrpcServerCall *call);
/* Server streaming. A peer that lets CH_GRPC_MAX_UNSENT_BYTES pile up is reset. */
void ch_grpc_server_call_send(ChGrpcServerCall *call, const ProtobufCMessage *message);
void ch_grpc_server_call_finish(ChGrpcServerCall *call); /* status OK */
/* Send and finish. A message that cannot be packed becomes the failure INTERNAL. */
void ch_grpc_server_call_reply(ChGrpcServerCall *call, const ProtobufCMessage *message);
/* @status: not OK. @message: UTF-8; cut where HTTP/2 libraries cannot take more (60,000 bytes
 * encoded). */
void ch_grpc_server_call_fail(ChGrpcServerCall *call, ChGrpcStatus status, const char *message);
