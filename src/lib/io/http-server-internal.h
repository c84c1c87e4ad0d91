/* SPDX-License-Identifier: Apache-2.0 */

/*
 * http-server-internal: what http-server.c (listening, limits) and http-server-connection.c
 * (connections and their exchanges) know of each other. Thread: the loop's.
 */

#pragma once

#include "lib/io/http-server.h"

struct evconnlistener;

struct ChHttpServer {
    ChLoop *loop; /* borrowed */
    struct evconnlistener *listener;
    ChTimer *accept_pause;
    SSL_CTX *tls;
    ChHttpHandler handler;
    gpointer data;
    ChHttpServerOptions limits; /* with defaults filled in; its pointers are not used */
    uint16_t port;
    GHashTable *connections; /* set of connections (owned) */
};

/* Takes over the accepted @fd, and joins the server's connections. */
void ch_http_connection_open(ChHttpServer *server, int fd);
/* For the table of the connections alone. */
void ch_http_connection_free(gpointer data);
