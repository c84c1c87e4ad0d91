/* SPDX-License-Identifier: Apache-2.0 */

/*
 * http-server: an HTTP/1.1 server, plain or TLS, with limits and streamed answers.
 *
 * Theory of operation: one server is one listening socket on one loop. A connection reads one
 * request at a time (head, then body), bounded in bytes and in time; what a client sends ahead
 * waits. The request becomes a ChHttpExchange that the handler answers at once or later: whole
 * (ch_http_exchange_reply) or as a stream (begin, write..., end). An exchange ends exactly once: by
 * reply, by end, or, while it streams, by on_closed. Connections beyond the limit are closed at
 * once. Not on evhttp: libevent 2.1 tells nobody when a connection comes or goes, so it cannot be
 * limited, and bounds pauses but not a whole request.
 *
 * Thread: the loop's, all of it.
 */

#pragma once

#include <openssl/ssl.h>

#include "lib/io/http-message.h"
#include "lib/io/loop.h"

typedef struct ChHttpServer ChHttpServer;
typedef struct ChHttpExchange ChHttpExchange;

typedef struct {
    const char *address;        /* numeric, v4 or v6 */
    uint16_t port;              /* 0: the kernel chooses */
    SSL_CTX *tls;               /* (nullable): NULL: plain text; a reference is taken */
    guint max_connections;      /* 0: 256 */
    gsize max_header_bytes;     /* 0: 64 KiB; more is answered with 431 */
    gsize max_body_bytes;       /* 0: 1 MiB; more is answered with 413 */
    int64_t request_timeout_us; /* 0: 30 s: handshake, and first to last byte of a request; also
                                   how long a client may take nothing of its answer */
    int64_t idle_timeout_us;    /* 0: 90 s: between two requests */
} ChHttpServerOptions;

/* What was asked; all borrowed, valid until the exchange ends. */
typedef struct {
    const char *method;
    const char *path;  /* as sent: begins with '/', percent-encoded, without the query */
    const char *query; /* (nullable): as sent, without '?' */
    const uint8_t *body;
    gsize length;
} ChHttpQuestion;

typedef void (*ChHttpHandler)(ChHttpExchange *exchange,
                              const ChHttpQuestion *question,
                              gpointer data);

/**
 * ch_http_server_new: listens; @handler is called for every complete request.
 * Returns: (transfer full): NULL with CH_ERRNO (the bind's errno) or CH_ERROR_INVALID (address)
 */
ChHttpServer *ch_http_server_new(ChLoop *loop,
                                 const ChHttpServerOptions *options,
                                 ChHttpHandler handler,
                                 gpointer data,
                                 GError **error);
/* Closes everything; streams get on_closed; exchanges that still wait for their answer stay with
 * whoever will answer them. Not from within a callback of this server. */
void ch_http_server_free(ChHttpServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChHttpServer, ch_http_server_free)

uint16_t ch_http_server_port(const ChHttpServer *server);
guint ch_http_server_n_connections(const ChHttpServer *server);

/* (transfer none) (nullable): @name in any case */
const char *ch_http_exchange_header(const ChHttpExchange *exchange, const char *name);
/* (transfer none) (nullable): for the peer's certificate; NULL without TLS, or when it is gone */
SSL *ch_http_exchange_peek_ssl(const ChHttpExchange *exchange);

/* The whole answer. @headers: Content-Type among them; length and date are added. @body:
 * (nullable), referenced. Ends the exchange. */
void ch_http_exchange_reply(ChHttpExchange *exchange,
                            int status,
                            const ChHttpHeader *headers,
                            gsize n_headers,
                            GBytes *body);

typedef struct {
    void (*on_drained)(gpointer data); /* (nullable): what was written has left for the kernel */
    void (*on_closed)(gpointer data);  /* the client is gone, and so is the exchange */
} ChHttpStreamEvents;

/* Sends the head. Never calls back.
 * Returns: false when the client is gone: the exchange has ended, no callback comes */
bool ch_http_exchange_begin(ChHttpExchange *exchange,
                            int status,
                            const ChHttpHeader *headers,
                            gsize n_headers,
                            const ChHttpStreamEvents *events,
                            gpointer data);
/* Queues @bytes. Never calls back. */
void ch_http_exchange_write(ChHttpExchange *exchange, GBytes *bytes);
/* Bytes queued and not yet taken by the kernel: stop writing when it grows. */
gsize ch_http_exchange_n_pending(const ChHttpExchange *exchange);
/* Ends the stream and the exchange; no callback comes any more. */
void ch_http_exchange_end(ChHttpExchange *exchange);
