/* SPDX-License-Identifier: Apache-2.0 */

/* clients-idle: closing the connections that nothing uses. */

#include "handler/launcher/clients-internal.h"
#include "lib/base/time.h"

#define IDLE_SLACK_US CH_SECOND_US

/* Takes those away that are due. Nobody can get them meanwhile: references are given under the
 * lock. Returns: (transfer full) of (transfer full) clients; @out_next_us: when the next is due at
 * the earliest; 0: there is none */
static GPtrArray *
take_idle(ChLauncherClients *clients, int64_t now_us, int64_t *out_next_us)
{
    GPtrArray *idle = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;

    *out_next_us = 0;
    pthread_mutex_lock(&clients->lock);
    g_hash_table_iter_init(&iter, clients->entries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Tie *tie = &((Entry *)value)->tie;
        int64_t due_us;

        if (tie->client == NULL)
            continue;
        due_us = CH_LAUNCHER_IDLE_US + (ch_launcher_client_is_shared(tie->client)
                                            ? now_us
                                            : ch_launcher_client_used_us(tie->client));
        if (due_us <= now_us)
            g_ptr_array_add(idle, g_steal_pointer(&tie->client));
        else if (*out_next_us == 0 || due_us < *out_next_us)
            *out_next_us = due_us;
    }
    pthread_mutex_unlock(&clients->lock);
    return idle;
}

int64_t
ch_launcher_clients_close_idle(ChLauncherClients *clients, int64_t now_us)
{
    int64_t next_us;
    g_autoptr(GPtrArray) idle = take_idle(clients, now_us, &next_us);

    for (guint i = 0; i < idle->len; i++)
        ch_launcher_clients_disconnect(clients, &(Tie){.client = g_ptr_array_index(idle, i)});
    return next_us;
}

static void
on_idle_timer(gpointer data)
{
    ChLauncherClients *clients = data;
    const int64_t now_us = ch_time_now_us();
    const int64_t next_us = ch_launcher_clients_close_idle(clients, now_us);

    /* A little later there may be several. */
    if (next_us != 0)
        ch_timer_arm(clients->idle_timer, next_us - now_us + IDLE_SLACK_US);
}

static void
do_watch_idle(gpointer data)
{
    ChLauncherClients *clients = data;

    if (clients->idle_timer == NULL)
        clients->idle_timer = ch_timer_new(clients->loop, on_idle_timer, clients);
    if (!ch_timer_is_armed(clients->idle_timer))
        ch_timer_arm(clients->idle_timer, CH_LAUNCHER_IDLE_US);
}

/* A connection was made. */
void
ch_launcher_clients_watch_idle(ChLauncherClients *clients)
{
    ch_loop_post(clients->loop, do_watch_idle, clients, NULL);
}
