/* SPDX-License-Identifier: Apache-2.0 */

/*
 * http-client: requests to one HTTP server, HTTP/2 or HTTP/1.1 whichever it speaks.
 *
 * https: TLS with ALPN {h2, http/1.1}; what the server picks decides. http over TCP: HTTP/1.1. One
 * HTTP/2 connection carries all requests (streams beyond the server's limit wait); HTTP/1.1 keeps a
 * small pool and one connection for each stream that stays open. Connections are made on demand,
 * checked by pings when idle (spec 01 §2.1), replaced after GOAWAY or loss. No retry of requests in
 * here: a request that failed ends with an error that says whether it can have reached the server.
 *
 * Thread: the loop's, all of it. Callbacks run on it too, never from within ch_http_client_send().
 */

#pragma once

#include "lib/io/http-message.h"
#include "lib/io/loop.h"

/* Where the server is and how to be sure of it. All strings are copied. */
typedef struct {
    bool is_tls;
    const char *host; /* name or address without brackets */
    uint16_t port;
    const char *unix_path; /* non-NULL: connect there instead; host is then only the authority */
    const char *ca_pem;    /* NULL: the system's trust store */
    const char *cert_pem;  /* client certificate and key, both or neither */
    const char *key_pem;
    const char *server_name; /* NULL: host */
    bool insecure_skip_verify;
    int64_t connect_timeout_us; /* 0: 30 s */
    int64_t ping_idle_us;       /* HTTP/2 health: 0: 30 s */
    int64_t ping_timeout_us;    /* 0: 15 s */
} ChHttpTarget;

/* All but the body is copied. A path or header with control characters is not sent: the call ends
 * with CH_HTTP_ERROR_PROTOCOL. */
typedef struct {
    const char *method;
    const char *path;            /* with query, percent-encoded; begins with '/' */
    const ChHttpHeader *headers; /* without host and content-length, which the client adds */
    gsize n_headers;
    GBytes *body;       /* (nullable) borrowed: referenced by the call */
    int64_t timeout_us; /* whole answer; 0: none (watches) */
} ChHttpRequest;

typedef struct ChHttpClient ChHttpClient;
typedef struct ChHttpCall ChHttpCall; /* valid until on_end returned or it was cancelled */

/* Connects when there is a request. NULL with CH_HTTP_ERROR_TLS: a PEM text is not usable. */
ChHttpClient *ch_http_client_new(ChLoop *loop, const ChHttpTarget *target, GError **error);
void ch_http_client_free(ChHttpClient *client); /* ends every call without callbacks */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChHttpClient, ch_http_client_free)

ChHttpCall *ch_http_client_send(ChHttpClient *client,
                                const ChHttpRequest *request,
                                const ChHttpSink *sink,
                                gpointer data);
/* No callback comes any more. HTTP/2: the stream is reset; HTTP/1.1: its connection is closed. */
void ch_http_call_cancel(ChHttpCall *call);
