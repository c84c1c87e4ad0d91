/* SPDX-License-Identifier: Apache-2.0 */

/*
 * clients-internal: the table of clients.h, as clients*.c see it.
 */

#pragma once

#include <pthread.h>

#include "handler/launcher/client.h"
#include "handler/launcher/clients.h"

/* What binds the agent to a launcher. */
typedef struct {
    ChLauncherPeer *peer;     /* owned; NULL: not connected, and so is the rest */
    ChLauncherClient *client; /* owned; NULL: the connection was closed, as nothing used it */
    gpointer pipe;            /* owned */
} Tie;

typedef struct {
    Tie tie;
    char *socket_path;     /* NULL until the socket was found */
    int64_t first_seen_us; /* first look for the launcher, later the time of the connection */
    bool is_ready;
} Entry;

struct ChLauncherClients {
    ChLoop *loop;
    char *node_name;
    ChLauncherSeam seam;
    gpointer seam_data;
    pthread_mutex_t
        lock; /* guards entries and what they hold; innermost lock, never held during a seam call */
    GHashTable *entries; /* VMI UID -> Entry, owned */
    ChTimer *idle_timer; /* loop thread only; NULL until a connection was made */
};

/* (transfer full): spec 01 §14.2 FindSocket; NULL with an error for none and for several.
 * @out_is_unresponsive: of the one */
char *ch_launcher_clients_find_socket(ChLauncherClients *clients,
                                      const ChLauncherVmi *vmi,
                                      bool *out_is_unresponsive,
                                      GError **error);

/* With the lock held: the entry, made if there is none; and its socket, which makes it ready. */
Entry *
ch_launcher_clients_ensure_entry(ChLauncherClients *clients, const char *uid, int64_t now_us);
void ch_launcher_entry_set_socket(Entry *entry, const char *socket_path);

/* Ends what is in the table no more; without the lock. The pipe goes first: it lies in the pod. */
void ch_launcher_clients_disconnect(ChLauncherClients *clients, const Tie *tie);

/* A connection was made: it will be closed when nothing uses it. Thread: any. */
void ch_launcher_clients_watch_idle(ChLauncherClients *clients);
