/* SPDX-License-Identifier: Apache-2.0 */

/*
 * server-internal: what server.c (listeners, methods, stop), server-connection.c (one HTTP/2
 * connection) and server-call.c (one call) know of each other. Thread: the loop's.
 */

#pragma once

#include <event2/bufferevent.h>
#include <nghttp2/nghttp2.h>

#include "lib/grpc/request.h"
#include "lib/grpc/server.h"
#include "lib/io/h2-wire.h"

typedef struct ChGrpcConnection ChGrpcConnection;

typedef struct {
    const ChGrpcMethod *method; /* borrowed from the application */
    gpointer data;
} ChGrpcMethodEntry;

struct ChGrpcServer {
    ChLoop *loop; /* borrowed */
    ChGrpcServerOptions options;
    nghttp2_session_callbacks *callbacks; /* owned */
    GHashTable *methods;                  /* path -> ChGrpcMethodEntry, owned */
    GPtrArray *listeners;
    GQueue connections; /* of ChGrpcConnection, linked by their `link` */
    gsize n_held;       /* the sum of theirs */
    bool is_stopping;
    ChTimer *grace; /* NULL unless stopping */
    ChLoopFunc stopped;
    gpointer stopped_data;
};

/* (nullable) (transfer none): @error: UNIMPLEMENTED */
const ChGrpcMethodEntry *
ch_grpc_server_find(const ChGrpcServer *server, const char *path, GError **error);
/* A connection unlinked itself. */
void ch_grpc_server_connection_gone(ChGrpcServer *server);

/* What the application tagged a connection with; lives as long as calls of it. */
typedef struct {
    guint n_refs;
    gpointer data;
    GDestroyNotify destroy;
} ChGrpcPeer;

ChGrpcPeer *ch_grpc_peer_new(gpointer data, GDestroyNotify destroy);
ChGrpcPeer *ch_grpc_peer_ref(ChGrpcPeer *peer);
void ch_grpc_peer_unref(ChGrpcPeer *peer);

struct ChGrpcConnection {
    ChGrpcServer *server; /* borrowed */
    GList link;           /* of the server's connections */
    struct bufferevent *bev;
    nghttp2_session *session;
    ChH2FrameLender lender; /* the session's */
    ChGrpcPeer *peer;
    ChTimer *timer; /* the preface's, then the keepalive's */
    int64_t last_read_us;
    GQueue calls; /* of ChGrpcServerCall, linked by their `link` */
    gsize n_held; /* request bytes kept for unfinished messages */
    bool has_preface;
    bool had_stream; /* since it last rested */
    bool awaits_ping;
    bool is_draining; /* the last stream's end closes it */
    bool is_reading;  /* nghttp2 is on the stack: it must not be asked to send */
};

nghttp2_session_callbacks *ch_grpc_connection_callbacks_new(void);
/* @fd: (transfer full); @peer: (transfer full) */
void ch_grpc_connection_open(ChGrpcServer *server, int fd, ChGrpcPeer *peer);
void ch_grpc_connection_drain(ChGrpcConnection *connection);
void ch_grpc_connection_close(ChGrpcConnection *connection);
/* Sends what nghttp2 has to send; may close the connection. */
void ch_grpc_connection_flush(ChGrpcConnection *connection);

struct ChGrpcServerCall {
    ChLoop *loop; /* borrowed */
    ChGrpcPeer *peer;
    ChGrpcConnection *connection; /* NULL: the stream is gone */
    GList link;                   /* of the connection's calls */
    int32_t stream_id;
    ChGrpcRequest head;
    const ChGrpcMethodEntry *entry;
    ChTimer *deadline; /* (nullable) */
    ChGrpcReader reader;
    GBytes *request; /* (nullable): complete, not handed to the application yet */
    gsize n_held;    /* this call's part of the connection's n_held */
    struct evbuffer *unsent;
    ChGrpcStatus status; /* with is_finished */
    char *status_text;   /* with is_finished: percent-encoded */
    bool has_handler;    /* the application holds it */
    bool has_headers;    /* the response began */
    bool is_finished;    /* nothing more is taken from the application */
    bool is_reset;
};

/* The steps of one stream, called by the connection. */
ChGrpcServerCall *ch_grpc_server_call_new(ChGrpcConnection *connection, int32_t stream_id);
void ch_grpc_server_call_headers_done(ChGrpcServerCall *call);
void ch_grpc_server_call_data(ChGrpcServerCall *call, const uint8_t *bytes, gsize length);
/* After each DATA frame, and when the peer ended the stream. */
void ch_grpc_server_call_advance(ChGrpcServerCall *call, bool end_stream);
/* The stream is closed: frees @call unless the application still holds it. */
void ch_grpc_server_call_detach(ChGrpcServerCall *call);
