/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/history.h"

#include <string.h>

typedef struct {
    ChHistoryFunc func;
    gpointer data;
} Listener;

struct ChHistory {
    ChChange **ring; /* position p lies at p % max_changes */
    guint max_changes;
    gsize max_bytes;
    gsize n_bytes;
    guint64 first; /* position of the oldest change */
    guint64 end;   /* position of the next one */
    int64_t oldest;
    int64_t newest;
    GArray *listeners; /* of Listener */
};

void
ch_change_free(ChChange *change)
{
    if (change == NULL)
        return;
    g_free(change->namespace_);
    g_free(change->object);
    g_free(change->previous);
    ch_json_unref(change->traits);
    ch_json_unref(change->previous_traits);
    g_free(change);
}

static gsize
change_bytes(const ChChange *change)
{
    return sizeof(*change) + strlen(change->object) +
           (change->previous != NULL ? strlen(change->previous) : 0);
}

ChHistory *
ch_history_new(int64_t revision, guint max_changes, gsize max_bytes)
{
    ChHistory *history = g_new0(ChHistory, 1);

    history->ring = g_new0(ChChange *, max_changes);
    history->max_changes = max_changes;
    history->max_bytes = max_bytes;
    history->oldest = history->newest = revision;
    history->listeners = g_array_new(FALSE, FALSE, sizeof(Listener));
    return history;
}

static ChChange **
slot(const ChHistory *history, guint64 position)
{
    return &history->ring[position % history->max_changes];
}

static void
drop_first(ChHistory *history)
{
    ChChange *change = g_steal_pointer(slot(history, history->first));

    history->first++;
    history->oldest = change->revision;
    history->n_bytes -= change_bytes(change);
    ch_change_free(change);
}

void
ch_history_free(ChHistory *history)
{
    if (history == NULL)
        return;
    while (history->first < history->end)
        drop_first(history);
    g_array_unref(history->listeners);
    g_free(history->ring);
    g_free(history);
}

void
ch_history_append(ChHistory *history, ChChange *change)
{
    const gsize n_bytes = change_bytes(change);

    while (history->first < history->end &&
           (history->end - history->first >= history->max_changes ||
            history->n_bytes + n_bytes > history->max_bytes))
        drop_first(history);
    *slot(history, history->end) = change;
    history->end++;
    history->n_bytes += n_bytes;
    history->newest = change->revision;
    /* backwards: a listener may leave while it is called */
    for (guint i = history->listeners->len; i-- > 0;) {
        const Listener listener = g_array_index(history->listeners, Listener, i);

        listener.func(listener.data);
    }
}

int64_t
ch_history_revision(const ChHistory *history)
{
    return history->newest;
}

int64_t
ch_history_oldest(const ChHistory *history)
{
    return history->oldest;
}

guint64
ch_history_seek(const ChHistory *history, int64_t revision)
{
    guint64 low = history->first, high = history->end;

    while (low < high) {
        const guint64 middle = low + (high - low) / 2;

        if ((*slot(history, middle))->revision <= revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

ChHistoryOutcome
ch_history_get(const ChHistory *history, guint64 position, const ChChange **out_change)
{
    if (position < history->first)
        return CH_HISTORY_LOST;
    if (position >= history->end)
        return CH_HISTORY_NONE;
    *out_change = *slot(history, position);
    return CH_HISTORY_CHANGE;
}

void
ch_history_listen(ChHistory *history, ChHistoryFunc func, gpointer data)
{
    const Listener listener = {func, data};

    g_array_append_val(history->listeners, listener);
}

void
ch_history_unlisten(ChHistory *history, ChHistoryFunc func, gpointer data)
{
    for (guint i = 0; i < history->listeners->len; i++) {
        const Listener *listener = &g_array_index(history->listeners, Listener, i);

        if (listener->func == func && listener->data == data) {
            g_array_remove_index(history->listeners, i);
            return;
        }
    }
}
