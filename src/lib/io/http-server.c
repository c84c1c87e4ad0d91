/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/http-server.h"

#include <arpa/inet.h>
#include <event2/listener.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/io/http-server-internal.h"

#define DEFAULT_CONNECTIONS 256
#define DEFAULT_HEADERS     (64u << 10)
#define DEFAULT_BODY        (1u << 20)
#define DEFAULT_REQUEST_US  (30 * CH_SECOND_US)
#define DEFAULT_IDLE_US     (90 * CH_SECOND_US)
/* Out of descriptors: look again after this. */
#define ACCEPT_PAUSE_US (100 * CH_MS_US)

static void
on_accept(struct evconnlistener *listener,
          evutil_socket_t fd,
          struct sockaddr *address,
          int length,
          void *data)
{
    ChHttpServer *server = data;

    if (g_hash_table_size(server->connections) < server->limits.max_connections)
        ch_http_connection_open(server, fd);
    else
        close(fd);
}

/* Mostly: out of descriptors. The socket stays readable, so look away for a moment. */
static void
on_accept_error(struct evconnlistener *listener, void *data)
{
    ChHttpServer *server = data;

    evconnlistener_disable(listener);
    ch_timer_arm(server->accept_pause, ACCEPT_PAUSE_US);
}

static void
on_accept_pause_over(gpointer data)
{
    ChHttpServer *server = data;

    evconnlistener_enable(server->listener);
}

/* (transfer full): a bound and listening socket; -1 with @error. */
static int
open_listener(const char *address, uint16_t port, GError **error)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to = {0};
    socklen_t length = sizeof(to.v4);
    ch_autofd int fd = -EBADF;
    int on = 1;

    if (inet_pton(AF_INET, address, &to.v4.sin_addr) == 1) {
        to.v4.sin_family = AF_INET;
        to.v4.sin_port = htons(port);
    } else if (inet_pton(AF_INET6, address, &to.v6.sin6_addr) == 1) {
        to.v6.sin6_family = AF_INET6;
        to.v6.sin6_port = htons(port);
        length = sizeof(to.v6);
    } else {
        ch_fail(error, CH_ERROR_INVALID, "'%s' is no numeric address", address);
        return -1;
    }
    fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, &to.any, length) < 0 || listen(fd, SOMAXCONN) < 0) {
        ch_fail_errno(error, errno, "listen on %s port %u", address, port);
        return -1;
    }
    return g_steal_fd(&fd);
}

static uint16_t
local_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } from = {0};
    socklen_t length = sizeof(from);

    if (getsockname(fd, &from.any, &length) < 0)
        return 0;
    return ntohs(from.any.sa_family == AF_INET6 ? from.v6.sin6_port : from.v4.sin_port);
}

static ChHttpServerOptions
with_defaults(const ChHttpServerOptions *options)
{
    ChHttpServerOptions limits = *options;

    if (limits.max_connections == 0)
        limits.max_connections = DEFAULT_CONNECTIONS;
    if (limits.max_header_bytes == 0)
        limits.max_header_bytes = DEFAULT_HEADERS;
    if (limits.max_body_bytes == 0)
        limits.max_body_bytes = DEFAULT_BODY;
    if (limits.request_timeout_us == 0)
        limits.request_timeout_us = DEFAULT_REQUEST_US;
    if (limits.idle_timeout_us == 0)
        limits.idle_timeout_us = DEFAULT_IDLE_US;
    return limits;
}

ChHttpServer *
ch_http_server_new(ChLoop *loop,
                   const ChHttpServerOptions *options,
                   ChHttpHandler handler,
                   gpointer data,
                   GError **error)
{
    ChHttpServer *server;
    int fd = open_listener(options->address, options->port, error);

    if (fd < 0)
        return NULL;
    server = g_new0(ChHttpServer, 1);
    server->loop = loop;
    server->handler = handler;
    server->data = data;
    server->limits = with_defaults(options);
    server->port = local_port(fd);
    server->connections = g_hash_table_new_full(NULL, NULL, ch_http_connection_free, NULL);
    server->accept_pause = ch_timer_new(loop, on_accept_pause_over, server);
    if (options->tls != NULL) {
        SSL_CTX_up_ref(options->tls);
        server->tls = options->tls;
    }
    /* backlog 0: it listens already */
    server->listener = evconnlistener_new(ch_loop_peek_base(loop),
                                          on_accept,
                                          server,
                                          LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
                                          0,
                                          fd);
    evconnlistener_set_error_cb(server->listener, on_accept_error);
    return server;
}

void
ch_http_server_free(ChHttpServer *server)
{
    if (server == NULL)
        return;
    evconnlistener_free(server->listener);
    ch_timer_free(server->accept_pause);
    g_hash_table_unref(server->connections);
    SSL_CTX_free(server->tls);
    g_free(server);
}

uint16_t
ch_http_server_port(const ChHttpServer *server)
{
    return server->port;
}

guint
ch_http_server_n_connections(const ChHttpServer *server)
{
    return g_hash_table_size(server->connections);
}
