/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/stale-sockets.h"

#include "lib/base/time.h"

struct ChStaleSockets {
    int64_t watchdog_s;
    GHashTable *since; /* socket path (owned) -> second of its first refusal */
};

ChStaleSockets *
ch_stale_sockets_new(int64_t watchdog_us)
{
    ChStaleSockets *sockets = g_new0(ChStaleSockets, 1);

    sockets->watchdog_s = watchdog_us / CH_SECOND_US;
    sockets->since = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return sockets;
}

void
ch_stale_sockets_free(ChStaleSockets *sockets)
{
    if (sockets == NULL)
        return;
    g_hash_table_unref(sockets->since);
    g_free(sockets);
}

/* The table of this round: those that refuse, with the second of their first refusal. */
static GHashTable *
carry_over(const ChStaleSockets *sockets, const GPtrArray *refusing, int64_t now_s)
{
    GHashTable *since = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < refusing->len; i++) {
        const ChGhostRecord *record = refusing->pdata[i];
        gpointer first;

        if (!g_hash_table_lookup_extended(sockets->since, record->socket_file, NULL, &first))
            first = GSIZE_TO_POINTER((gsize)now_s);
        g_hash_table_replace(since, g_strdup(record->socket_file), first);
    }
    return since;
}

void
ch_stale_sockets_judge(ChStaleSockets *sockets, GPtrArray *refusing, int64_t now_us)
{
    const int64_t now_s = now_us / CH_SECOND_US;
    GHashTable *since = carry_over(sockets, refusing, now_s);

    g_hash_table_unref(sockets->since);
    sockets->since = since;
    for (guint i = 0; i < refusing->len;) {
        const ChGhostRecord *record = refusing->pdata[i];
        const int64_t first =
            (int64_t)GPOINTER_TO_SIZE(g_hash_table_lookup(since, record->socket_file));

        if (now_s - first > sockets->watchdog_s)
            i++;
        else
            g_ptr_array_remove_index_fast(refusing, i);
    }
}
