/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/server.h"

#include <event2/listener.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/grpc/server-internal.h"

#define DEFAULT_CONNECTIONS     1024
#define DEFAULT_STREAMS         100
#define DEFAULT_PREFACE_TIMEOUT (120 * CH_SECOND_US)

/* How long accepting rests when the kernel gives no descriptor. */
#define ACCEPT_PAUSE_US (100 * CH_MS_US)

typedef struct {
    ChGrpcServer *server;
    struct evconnlistener *listener;
    ChTimer *resume;
} Listener;

ChGrpcPeer *
ch_grpc_peer_new(gpointer data, GDestroyNotify destroy)
{
    ChGrpcPeer *peer = g_new0(ChGrpcPeer, 1);

    *peer = (ChGrpcPeer){.n_refs = 1, .data = data, .destroy = destroy};
    return peer;
}

ChGrpcPeer *
ch_grpc_peer_ref(ChGrpcPeer *peer)
{
    peer->n_refs++;
    return peer;
}

void
ch_grpc_peer_unref(ChGrpcPeer *peer)
{
    if (--peer->n_refs > 0)
        return;
    if (peer->destroy != NULL)
        peer->destroy(peer->data);
    g_free(peer);
}

static void
listener_free(gpointer data)
{
    Listener *listener = data;

    evconnlistener_free(listener->listener); /* closes the descriptor */
    ch_timer_free(listener->resume);
    g_free(listener);
}

ChGrpcServer *
ch_grpc_server_new(ChLoop *loop, const ChGrpcServerOptions *options)
{
    ChGrpcServer *server = g_new0(ChGrpcServer, 1);

    server->loop = loop;
    if (options != NULL)
        server->options = *options;
    if (server->options.max_connections == 0)
        server->options.max_connections = DEFAULT_CONNECTIONS;
    if (server->options.max_streams == 0)
        server->options.max_streams = DEFAULT_STREAMS;
    if (server->options.preface_timeout_us == 0)
        server->options.preface_timeout_us = DEFAULT_PREFACE_TIMEOUT;
    server->callbacks = ch_grpc_connection_callbacks_new();
    server->methods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    server->listeners = g_ptr_array_new_with_free_func(listener_free);
    return server;
}

void
ch_grpc_server_add(ChGrpcServer *server,
                   const ChGrpcMethod *methods,
                   gsize n_methods,
                   gpointer data)
{
    for (gsize i = 0; i < n_methods; i++) {
        ChGrpcMethodEntry *entry = g_new0(ChGrpcMethodEntry, 1);

        *entry = (ChGrpcMethodEntry){.method = &methods[i], .data = data};
        g_hash_table_replace(server->methods, (gpointer)methods[i].path, entry);
    }
}

/* @prefix: "/package.Service/" */
static bool
has_service(const ChGrpcServer *server, const char *prefix)
{
    GHashTableIter iter;
    gpointer path;

    g_hash_table_iter_init(&iter, server->methods);
    while (g_hash_table_iter_next(&iter, &path, NULL)) {
        if (g_str_has_prefix(path, prefix))
            return true;
    }
    return false;
}

const ChGrpcMethodEntry *
ch_grpc_server_find(const ChGrpcServer *server, const char *path, GError **error)
{
    const ChGrpcMethodEntry *entry = g_hash_table_lookup(server->methods, path);
    const char *slash = strrchr(path, '/');
    g_autofree char *service = NULL;
    g_autofree char *prefix = NULL;

    if (entry != NULL)
        return entry;
    if (path[0] != '/' || slash == path) {
        g_autofree char *quoted = g_strescape(path, NULL);

        ch_grpc_fail(error, CH_GRPC_UNIMPLEMENTED, "malformed method name: \"%s\"", quoted);
        return NULL;
    }
    service = g_strndup(path + 1, (gsize)(slash - path - 1));
    prefix = g_strndup(path, (gsize)(slash - path + 1));
    if (has_service(server, prefix))
        ch_grpc_fail(
            error, CH_GRPC_UNIMPLEMENTED, "unknown method %s for service %s", slash + 1, service);
    else
        ch_grpc_fail(error, CH_GRPC_UNIMPLEMENTED, "unknown service %s", service);
    return NULL;
}

static void
on_accept(struct evconnlistener *evlistener,
          evutil_socket_t fd,
          struct sockaddr *address,
          int address_length,
          void *data)
{
    Listener *listener = data;

    ch_grpc_server_accept(listener->server, fd, NULL, NULL);
}

/* Without a descriptor to accept with, the listening socket stays readable: rest instead of
 * spinning. */
static void
on_accept_error(struct evconnlistener *evlistener, void *data)
{
    Listener *listener = data;

    evconnlistener_disable(evlistener);
    ch_timer_arm(listener->resume, ACCEPT_PAUSE_US);
}

static void
on_resume(gpointer data)
{
    Listener *listener = data;

    evconnlistener_enable(listener->listener);
}

void
ch_grpc_server_listen(ChGrpcServer *server, int listen_fd)
{
    Listener *listener = g_new0(Listener, 1);

    evutil_make_socket_nonblocking(listen_fd);
    listener->server = server;
    listener->resume = ch_timer_new(server->loop, on_resume, listener);
    listener->listener = evconnlistener_new(ch_loop_peek_base(server->loop),
                                            on_accept,
                                            listener,
                                            LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
                                            0,
                                            listen_fd);
    evconnlistener_set_error_cb(listener->listener, on_accept_error);
    g_ptr_array_add(server->listeners, listener);
}

void
ch_grpc_server_accept(ChGrpcServer *server, int fd, gpointer peer, GDestroyNotify peer_destroy)
{
    ChGrpcPeer *tag = ch_grpc_peer_new(peer, peer_destroy);

    if (server->is_stopping || server->connections.length >= server->options.max_connections) {
        close(fd);
        ch_grpc_peer_unref(tag);
        return;
    }
    ch_grpc_connection_open(server, fd, tag);
}

static void
close_connections(ChGrpcServer *server)
{
    while (server->connections.head != NULL)
        ch_grpc_connection_close(server->connections.head->data);
}

/* The grace has passed, or (in a turn of its own, since @stopped may free the server) the last
 * connection is gone. */
static void
on_grace(gpointer data)
{
    ChGrpcServer *server = data;

    if (server->connections.length > 0)
        close_connections(server); /* arms this timer again */
    else
        server->stopped(server->stopped_data);
}

void
ch_grpc_server_connection_gone(ChGrpcServer *server)
{
    if (server->is_stopping && server->connections.length == 0)
        ch_timer_arm(server->grace, 0);
}

void
ch_grpc_server_stop(ChGrpcServer *server, int64_t grace_us, ChLoopFunc done, gpointer data)
{
    g_return_if_fail(!server->is_stopping);

    server->is_stopping = true;
    server->stopped = done;
    server->stopped_data = data;
    g_ptr_array_set_size(server->listeners, 0);
    server->grace = ch_timer_new(server->loop, on_grace, server);
    ch_timer_arm(server->grace, grace_us);
    for (GList *link = server->connections.head; link != NULL;) {
        GList *next = link->next; /* draining may close this one */

        ch_grpc_connection_drain(link->data);
        link = next;
    }
    ch_grpc_server_connection_gone(server); /* there may have been none */
}

void
ch_grpc_server_free(ChGrpcServer *server)
{
    if (server == NULL)
        return;
    g_ptr_array_unref(server->listeners);
    close_connections(server);
    ch_timer_free(server->grace);
    g_hash_table_unref(server->methods);
    nghttp2_session_callbacks_del(server->callbacks);
    g_free(server);
}
