/* SPDX-License-Identifier: Apache-2.0 */

/*
 * notify-server: where launchers report what happens to their domains. Spec 01 §12, 03 §10.
 *
 * gRPC on `<share-dir>/domain-notify.sock`; connections that come through a VMI's notify pipe are
 * handed in with their origin, and what comes through a pipe counts for that VMI only. Limits: 8
 * connections a pipe, 4 calls at once on each. Somebody who removes or replaces the socket's file
 * stops the server (it looks every 5 s). Thread: the loop's.
 */

#pragma once

#include "handler/watch/domain-store.h"
#include "lib/io/loop.h"

/* Whose pipe a connection came through. Counted by the loop's thread. */
typedef struct {
    char *key; /* "namespace/name" of the VMI */
    char *uid;
    guint n_connections; /* that are open */
    guint n_refs;
} ChNotifyOrigin;

/* Thread: any, while nobody else has it. */
ChNotifyOrigin *ch_notify_origin_new(const char *namespace_, const char *name, const char *uid);
void ch_notify_origin_unref(ChNotifyOrigin *origin);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChNotifyOrigin, ch_notify_origin_unref)

typedef struct {
    const char *namespace_, *name, *uid; /* of the involved object */
    const char *type, *reason, *message;
} ChLauncherEvent;

typedef struct {
    void (*on_domain)(gpointer data, ChKnownDomain *domain, bool is_deleted);
    /* An event of type ERROR through the pipe of the VMI @key: what is known of it has to be asked
     * for again */
    void (*on_relist)(gpointer data, const char *key);
    /* Returns: NULL when the event was recorded, else why not; static storage */
    const char *(*on_event)(gpointer data, const ChLauncherEvent *event);
    /* The server ended by itself and can be started again. */
    void (*on_failed)(gpointer data, const GError *error);
} ChNotifyHandlers;

typedef struct ChNotifyServer ChNotifyServer;

/* @share_dir: copied */
ChNotifyServer *ch_notify_server_new(ChLoop *loop,
                                     const char *share_dir,
                                     const ChNotifyHandlers *handlers,
                                     gpointer data);
void ch_notify_server_free(ChNotifyServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChNotifyServer, ch_notify_server_free)

/**
 * ch_notify_server_start: removes what lies at the socket's path, makes the directory (0755) and
 * listens. Returns: false with CH_ERRNO
 */
bool ch_notify_server_start(ChNotifyServer *server, GError **error);
bool ch_notify_server_is_running(const ChNotifyServer *server);

/* @fd: (transfer full): accepted from the pipe of @origin (a reference is taken). Closed at once
 * when the server is not running or the pipe has its limit of connections. */
void ch_notify_server_adopt(ChNotifyServer *server, int fd, ChNotifyOrigin *origin);
