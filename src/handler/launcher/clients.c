/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/clients.h"

#include "handler/launcher/clients-internal.h"
#include "handler/launcher/rpc.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define AUTHORITY "localhost"

static void
entry_free(gpointer data)
{
    Entry *entry = data;

    g_free(entry->socket_path);
    g_free(entry);
}

ChLauncherClients *
ch_launcher_clients_new(ChLoop *loop,
                        const char *node_name,
                        const ChLauncherSeam *seam,
                        gpointer seam_data)
{
    ChLauncherClients *clients = g_new0(ChLauncherClients, 1);

    clients->loop = loop;
    clients->node_name = g_strdup(node_name != NULL && node_name[0] != '\0' ? node_name : NULL);
    clients->seam = *seam;
    clients->seam_data = seam_data;
    pthread_mutex_init(&clients->lock, NULL);
    clients->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    return clients;
}

/* On the loop's thread, or when the loop is freed. */
static void
clients_destroy(gpointer data)
{
    ChLauncherClients *clients = data;

    ch_timer_free(clients->idle_timer);
    g_hash_table_unref(clients->entries);
    pthread_mutex_destroy(&clients->lock);
    g_free(clients->node_name);
    g_free(clients);
}

static void
do_nothing(gpointer data)
{
}

/* Without the lock, which is never held during a seam call; the timer then finds an empty table. */
void
ch_launcher_clients_free(ChLauncherClients *clients)
{
    g_autoptr(GHashTable) entries = NULL;
    GHashTableIter iter;
    gpointer value;

    if (clients == NULL)
        return;
    pthread_mutex_lock(&clients->lock);
    entries = clients->entries;
    clients->entries = g_hash_table_new(g_str_hash, g_str_equal);
    pthread_mutex_unlock(&clients->lock);
    g_hash_table_iter_init(&iter, entries);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        ch_launcher_clients_disconnect(clients, &((const Entry *)value)->tie);
    ch_loop_post(clients->loop, do_nothing, clients, clients_destroy);
}

Entry *
ch_launcher_clients_ensure_entry(ChLauncherClients *clients, const char *uid, int64_t now_us)
{
    Entry *entry = g_hash_table_lookup(clients->entries, uid);

    if (entry == NULL) {
        entry = g_new0(Entry, 1);
        entry->first_seen_us = now_us;
        g_hash_table_insert(clients->entries, g_strdup(uid), entry);
    }
    return entry;
}

void
ch_launcher_entry_set_socket(Entry *entry, const char *socket_path)
{
    g_free(entry->socket_path);
    entry->socket_path = g_strdup(socket_path);
    entry->is_ready = true;
}

void
ch_launcher_clients_disconnect(ChLauncherClients *clients, const Tie *tie)
{
    if (tie->client != NULL)
        ch_grpc_channel_close(tie->client->channel);
    if (tie->pipe != NULL)
        clients->seam.close_pipe(clients->seam_data, tie->pipe);
    ch_launcher_client_unref(tie->client);
    ch_launcher_peer_unref(tie->peer);
}

ChGrpcChannel *
ch_launcher_dial(ChLoop *loop, int fd, GError **error)
{
    g_autoptr(ChGrpcChannel) channel = ch_grpc_channel_new(loop, fd, AUTHORITY);

    if (!ch_grpc_channel_wait_ready(channel, CH_LAUNCHER_DIAL_TIMEOUT_US, error) ||
        !ch_launcher_check_version(channel, error)) {
        ch_grpc_channel_close(channel);
        return NULL;
    }
    return g_steal_pointer(&channel);
}

/* Steps d and e of spec 01 §14.2. On failure nothing is left but what the caller recorded. */
static bool
connect_launcher(ChLauncherClients *clients,
                 const ChLauncherVmi *vmi,
                 const char *path,
                 Tie *out_tie,
                 GError **error)
{
    const ChLauncherSeam *seam = &clients->seam;
    g_autoptr(GError) reason = NULL;
    ch_autofd int fd = -EBADF;
    ChGrpcChannel *channel;
    Tie tie = {0};
    gpointer pod;

    if (!seam->connect(clients->seam_data, path, &fd, &pod, error))
        return false;
    tie.peer = ch_launcher_peer_new(seam, clients->seam_data, pod);
    channel = ch_launcher_dial(clients->loop, g_steal_fd(&fd), &reason);
    if (channel == NULL) {
        if (g_error_matches(reason, CH_GRPC_ERROR, CH_GRPC_DEADLINE_EXCEEDED))
            ch_log_info_reason(NULL, reason, "failed to dial cmd socket: %s", path);
        g_propagate_error(error, g_steal_pointer(&reason));
        ch_launcher_clients_disconnect(clients, &tie);
        return false;
    }
    CH_CRASH_POINT("client/dialled");
    tie.client = ch_launcher_client_new(tie.peer, channel);
    tie.pipe = seam->open_pipe(clients->seam_data, pod, vmi, error);
    if (tie.pipe == NULL) {
        ch_launcher_clients_disconnect(clients, &tie);
        return false;
    }
    CH_CRASH_POINT("client/pipe");
    *out_tie = tie;
    return true;
}

/* What the table has of a launcher, referenced. */
typedef struct {
    ChLauncherPeer *peer;     /* NULL: never connected */
    ChLauncherClient *client; /* (nullable) */
    char *path;               /* where it listens */
} Found;

static void
found_clear(Found *found)
{
    ch_launcher_client_unref(found->client);
    ch_launcher_peer_unref(found->peer);
    g_free(found->path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Found, found_clear)

static Found
look_up(ChLauncherClients *clients, const char *uid)
{
    Found found = {0};
    const Entry *entry;

    pthread_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->entries, uid);
    if (entry != NULL && entry->tie.peer != NULL) {
        found.peer = ch_launcher_peer_ref(entry->tie.peer);
        found.path = g_strdup(entry->socket_path);
        if (entry->tie.client != NULL)
            found.client = ch_launcher_client_ref(entry->tie.client);
    }
    pthread_mutex_unlock(&clients->lock);
    return found;
}

/* Puts a new tie into the table in the place of @lost, or of nothing, unless another connection is
 * there by now. @made: (transfer full). Returns: (transfer full): the connection in the table */
static ChLauncherClient *
keep_tie(ChLauncherClients *clients,
         const char *uid,
         const char *path,
         const Tie *made,
         const ChLauncherClient *lost)
{
    const int64_t since_us = ch_launcher_peer_since_us(made->peer);
    Tie superfluous = *made;
    ChLauncherClient *kept;
    Entry *entry;

    pthread_mutex_lock(&clients->lock);
    entry = ch_launcher_clients_ensure_entry(clients, uid, since_us);
    if (entry->tie.client == NULL || entry->tie.client == lost) {
        superfluous = entry->tie;
        entry->tie = *made;
        entry->first_seen_us = since_us;
        ch_launcher_entry_set_socket(entry, path);
    }
    kept = ch_launcher_client_ref(entry->tie.client);
    pthread_mutex_unlock(&clients->lock);
    ch_launcher_clients_disconnect(clients, &superfluous);
    ch_launcher_clients_watch_idle(clients);
    return kept;
}

/* The same for a new connection to a launcher that is in the table. When that has another by now,
 * or none, the new one is the caller's alone. @made: (transfer full) */
static ChLauncherClient *
keep_client(ChLauncherClients *clients,
            const char *uid,
            const ChLauncherPeer *peer,
            ChLauncherClient *made,
            const ChLauncherClient *lost)
{
    Tie superfluous = {0};
    ChLauncherClient *kept = made;
    Entry *entry;

    pthread_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->entries, uid);
    if (entry != NULL && entry->tie.client != NULL && entry->tie.client != lost) {
        superfluous.client = made;
        kept = ch_launcher_client_ref(entry->tie.client);
    } else if (entry != NULL && entry->tie.peer == peer) {
        superfluous.client = entry->tie.client;
        entry->tie.client = ch_launcher_client_ref(made);
    }
    pthread_mutex_unlock(&clients->lock);
    ch_launcher_clients_disconnect(clients, &superfluous);
    ch_launcher_clients_watch_idle(clients);
    return kept;
}

/* Nothing was heard of the launcher yet: whether it answers shows at the first call, which has its
 * own deadline. Its version is known: it is the same process. */
static ChLauncherClient *
reconnect(ChLauncherClients *clients, const char *uid, const Found *found, GError **error)
{
    ChGrpcChannel *channel;
    int fd;

    if (!clients->seam.reconnect(clients->seam_data, ch_launcher_peer_pod(found->peer), &fd, error))
        return NULL;
    channel = ch_grpc_channel_new(clients->loop, fd, AUTHORITY);
    return keep_client(
        clients, uid, found->peer, ch_launcher_client_new(found->peer, channel), found->client);
}

/* A connection that is none: calls on it fail with the text of spec 03 §3.4. */
static ChLauncherClient *
make_lost(ChLauncherClients *clients, const Found *found, const GError *why)
{
    char reason[CH_ERRNO_TEXT_SIZE];
    g_autofree char *text = g_strdup_printf(
        "connection error: desc = \"transport: Error while dialing: dial unix %s: connect: %s\"",
        found->path,
        why->domain == CH_ERRNO ? ch_errno_print(why->code, reason) : why->message);

    return ch_launcher_client_new(found->peer, ch_grpc_channel_new_lost(clients->loop, text));
}

/* The connection was lost, or closed as nothing used it. A launcher that is not there keeps its
 * entry and ghost record: others decide whether the VM is dead. */
static ChLauncherClient *
get_again(ChLauncherClients *clients, const ChLauncherVmi *vmi, const Found *found)
{
    g_autoptr(GError) why = NULL;
    ChLauncherClient *client = reconnect(clients, vmi->uid, found, &why);
    Tie made;

    if (client != NULL)
        return client;
    if (g_error_matches(why, CH_ERRNO, ESTALE)) { /* another launcher has taken its place */
        g_clear_error(&why);
        if (connect_launcher(clients, vmi, found->path, &made, &why))
            return keep_tie(clients, vmi->uid, found->path, &made, found->client);
    }
    ch_log_verbose(3, NULL, "the connection to %s is not back: %s", found->path, why->message);
    return found->client != NULL ? ch_launcher_client_ref(found->client)
                                 : make_lost(clients, found, why);
}

/* Returns: (transfer full): NULL with @error */
static char *
first_socket(ChLauncherClients *clients, const ChLauncherVmi *vmi, GError **error)
{
    bool is_unresponsive;

    if (vmi->found_socket != NULL)
        return g_strdup(vmi->found_socket);
    if (vmi->n_pods == 0 && vmi->known_socket != NULL)
        return g_strdup(vmi->known_socket);
    return ch_launcher_clients_find_socket(clients, vmi, &is_unresponsive, error);
}

static ChLauncherClient *
get_first(ChLauncherClients *clients, const ChLauncherVmi *vmi, GError **error)
{
    g_autofree char *path = first_socket(clients, vmi, error);
    bool is_new_record;
    Tie made;

    if (path == NULL || !clients->seam.record(clients->seam_data, vmi, path, &is_new_record, error))
        return NULL;
    CH_CRASH_POINT("client/recorded");
    if (connect_launcher(clients, vmi, path, &made, error))
        return keep_tie(clients, vmi->uid, path, &made, NULL);
    if (is_new_record)
        clients->seam.forget(clients->seam_data, vmi->namespace_, vmi->name, vmi->uid);
    return NULL;
}

ChLauncherClient *
ch_launcher_clients_get(ChLauncherClients *clients, const ChLauncherVmi *vmi, GError **error)
{
    g_auto(Found) found = look_up(clients, vmi->uid);

    if (found.peer == NULL)
        return get_first(clients, vmi, error);
    if (found.client != NULL && ch_grpc_channel_is_usable(found.client->channel))
        return g_steal_pointer(&found.client);
    return get_again(clients, vmi, &found);
}

ChLauncherClient *
ch_launcher_clients_get_verified(ChLauncherClients *clients,
                                 const ChLauncherVmi *vmi,
                                 GError **error)
{
    g_autoptr(ChLauncherClient) client = ch_launcher_clients_get(clients, vmi, error);

    if (client == NULL || !ch_launcher_ping(client->channel, error))
        return NULL;
    return g_steal_pointer(&client);
}

void
ch_launcher_clients_close(ChLauncherClients *clients,
                          const char *namespace_,
                          const char *name,
                          const char *uid)
{
    gpointer key = NULL;
    gpointer entry = NULL;

    if (uid == NULL || uid[0] == '\0')
        return;
    pthread_mutex_lock(&clients->lock);
    (void)g_hash_table_steal_extended(
        clients->entries, uid, &key, &entry); /* absent: nothing to close */
    pthread_mutex_unlock(&clients->lock);
    if (entry != NULL) {
        ch_launcher_clients_disconnect(clients, &((Entry *)entry)->tie);
        entry_free(entry);
    }
    g_free(key);
    CH_CRASH_POINT("client/closed");
    clients->seam.forget(clients->seam_data, namespace_, name, uid);
}

void
ch_launcher_clients_forget(ChLauncherClients *clients, const char *uid)
{
    const Entry *entry;

    pthread_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->entries, uid);
    if (entry != NULL && entry->tie.peer == NULL)
        g_hash_table_remove(clients->entries, uid);
    pthread_mutex_unlock(&clients->lock);
}

ChLauncherPeer *
ch_launcher_clients_find_peer(ChLauncherClients *clients, const char *uid)
{
    ChLauncherPeer *peer = NULL;
    const Entry *entry;

    pthread_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->entries, uid);
    if (entry != NULL && entry->tie.peer != NULL)
        peer = ch_launcher_peer_ref(entry->tie.peer);
    pthread_mutex_unlock(&clients->lock);
    return peer;
}
