/* SPDX-License-Identifier: Apache-2.0 */

/*
 * connector: one attempt to connect: look-up, TCP or UNIX socket, TLS handshake, under one
 * deadline.
 *
 * Of several addresses each gets an equal share of the time that is left; the first one's error
 * counts when all fail. Thread: the loop's.
 */

#pragma once

#include <event2/bufferevent.h>
#include <openssl/ssl.h>

#include "lib/io/http-message.h"
#include "lib/io/loop.h"

typedef struct {
    const char *host;
    uint16_t port;
    const char *unix_path;   /* non-NULL: there instead */
    SSL_CTX *tls;            /* (nullable): plain */
    const char *server_name; /* with tls */
    const char *const *alpn; /* with tls; NULL-terminated, static storage */
    int64_t timeout_us;
} ChConnectorOptions; /* copied */

typedef struct ChConnector ChConnector;

/**
 * ChConnectorFunc: called once, in a later turn. The connector is the owner's to free, also in
 * here.
 * @bev: (transfer full) (nullable): connected, no callbacks set; NULL: @error says why
 * @alpn: (nullable): what the server picked
 * @error: CH_HTTP_ERROR REFUSED, CONNECT or TLS; EOF or RESET when the server ended the handshake
 */
typedef void (*ChConnectorFunc)(gpointer data,
                                struct bufferevent *bev,
                                const char *alpn,
                                const GError *error);

ChConnector *ch_connector_new(ChLoop *loop,
                              const ChConnectorOptions *options,
                              ChConnectorFunc func,
                              gpointer data);
void ch_connector_free(ChConnector *connector); /* gives up */
