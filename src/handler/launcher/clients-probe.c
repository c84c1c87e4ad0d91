/* SPDX-License-Identifier: Apache-2.0 */

/* clients-probe: where a launcher's socket is, and whether it is to be believed alive. */

#include "handler/launcher/clients-internal.h"
#include "lib/base/errors.h"

/* (transfer full): paths of the sockets that the VMI's pods on this node have;
 * *out_is_unresponsive: the last one is */
static GPtrArray *
list_sockets(ChLauncherClients *clients, const ChLauncherVmi *vmi, bool *out_is_unresponsive)
{
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);

    for (gsize i = 0; i < vmi->n_pods; i++) {
        char *path;

        if (clients->node_name != NULL && g_strcmp0(clients->node_name, vmi->pods[i].node) != 0)
            continue;
        path = clients->seam.find_socket(clients->seam_data, vmi->pods[i].uid, out_is_unresponsive);
        if (path != NULL)
            g_ptr_array_add(paths, path);
    }
    return paths;
}

/* Pods that ended leave their sockets for a while: they do not count beside a live one. */
static void
drop_dead_sockets(ChLauncherClients *clients, GPtrArray *paths)
{
    for (guint i = 0; i < paths->len;) {
        if (clients->seam.is_live(clients->seam_data, paths->pdata[i]))
            i++;
        else
            g_ptr_array_remove_index(paths, i);
    }
}

char *
ch_launcher_clients_find_socket(ChLauncherClients *clients,
                                const ChLauncherVmi *vmi,
                                bool *out_is_unresponsive,
                                GError **error)
{
    g_autoptr(GPtrArray) paths = list_sockets(clients, vmi, out_is_unresponsive);

    if (paths->len == 0) {
        ch_fail(error, CH_ERROR_NOT_FOUND, "No command socket found for vmi %s", vmi->uid);
        return NULL;
    }
    if (paths->len > 1) {
        drop_dead_sockets(clients, paths);
        *out_is_unresponsive = false; /* those are live */
    }
    if (paths->len == 1)
        return g_strdup(paths->pdata[0]);
    ch_fail(error,
            CH_ERROR_FAILED,
            "Found multiple sockets for vmi %s/%s. waiting for only one to exist",
            vmi->namespace_,
            vmi->name);
    return NULL;
}

static bool
has_socket_dir(ChLauncherClients *clients, const ChLauncherVmi *vmi)
{
    for (gsize i = 0; i < vmi->n_pods; i++) {
        if (clients->seam.has_socket_dir(clients->seam_data, vmi->pods[i].uid))
            return true;
    }
    return false;
}

/* The entry's state as a copy, so that the lock need not be held while the pod is looked at. */
typedef struct {
    bool exists;
    bool is_ready;
    char *socket_path;
    int64_t first_seen_us;
} EntryView;

static EntryView
view_entry(ChLauncherClients *clients, const char *uid)
{
    EntryView view = {0};
    const Entry *entry;

    pthread_mutex_lock(&clients->lock);
    entry = g_hash_table_lookup(clients->entries, uid);
    if (entry != NULL)
        view =
            (EntryView){true, entry->is_ready, g_strdup(entry->socket_path), entry->first_seen_us};
    pthread_mutex_unlock(&clients->lock);
    return view;
}

/* Makes the entry if need be; @socket_path: (nullable): found now, the entry becomes ready */
static void
note_entry(ChLauncherClients *clients, const char *uid, const char *socket_path, int64_t now_us)
{
    Entry *entry;

    pthread_mutex_lock(&clients->lock);
    entry = ch_launcher_clients_ensure_entry(clients, uid, now_us);
    if (socket_path != NULL)
        ch_launcher_entry_set_socket(entry, socket_path);
    pthread_mutex_unlock(&clients->lock);
}

ChLauncherLiveness
ch_launcher_clients_probe_socket(ChLauncherClients *clients, const char *socket_path)
{
    return clients->seam.is_unresponsive(clients->seam_data, socket_path)
               ? CH_LAUNCHER_LIVENESS_UNRESPONSIVE
               : CH_LAUNCHER_LIVENESS_RESPONSIVE;
}

ChLauncherLiveness
ch_launcher_clients_probe(ChLauncherClients *clients,
                          const ChLauncherVmi *vmi,
                          int64_t now_us,
                          char **out_found)
{
    EntryView view = view_entry(clients, vmi->uid);
    g_autofree char *path = view.socket_path;
    bool is_unresponsive = false;

    if (out_found != NULL)
        *out_found = NULL;
    if (view.is_ready && path != NULL)
        return ch_launcher_clients_probe_socket(clients, path);
    if (!view.is_ready) {
        g_free(path);
        path = ch_launcher_clients_find_socket(clients, vmi, &is_unresponsive, NULL);
        note_entry(clients, vmi->uid, path, now_us);
        if (out_found != NULL)
            *out_found = g_strdup(path);
    }
    if (path != NULL)
        return is_unresponsive ? CH_LAUNCHER_LIVENESS_UNRESPONSIVE
                               : CH_LAUNCHER_LIVENESS_RESPONSIVE;
    if (!has_socket_dir(clients, vmi))
        return CH_LAUNCHER_LIVENESS_UNRESPONSIVE;
    if (view.exists && now_us - view.first_seen_us > CH_LAUNCHER_READY_TIMEOUT_US)
        return CH_LAUNCHER_LIVENESS_UNRESPONSIVE;
    return CH_LAUNCHER_LIVENESS_NOT_INITIALIZED;
}
