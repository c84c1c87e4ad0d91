/* SPDX-License-Identifier: Apache-2.0 */

/*
 * history: the recent changes, for watches.
 *
 * A ring, bounded in changes and in bytes: the oldest go first ("compaction"), and a watch that
 * still wanted them is told 410 and lists again. Nothing of it is on disk: after a restart it
 * begins at the store's revision. Thread: the loop's.
 */

#pragma once

#include "local/apiserver/select.h"

typedef enum {
    CH_CHANGE_INVALID,
    CH_CHANGE_ADDED,
    CH_CHANGE_MODIFIED,
    CH_CHANGE_DELETED,
} ChChangeType;

typedef struct {
    ChChangeType type;
    int64_t revision;
    const ChResource *resource;
    char *namespace_; /* owned; "" for cluster-scoped kinds */
    char *object;     /* owned text: as of this revision; DELETED: as it was, with this revision */
    char *previous;   /* owned text: before; NULL when ADDED */
    ChJson *traits;   /* owned: what selectors ask of @object */
    ChJson *previous_traits; /* owned: the same of @previous; NULL when ADDED */
} ChChange;

void ch_change_free(ChChange *change);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChChange, ch_change_free)

typedef struct ChHistory ChHistory;
typedef void (*ChHistoryFunc)(gpointer data);

/* @revision: of the store, now: where a watch can start at the earliest */
ChHistory *ch_history_new(int64_t revision, guint max_changes, gsize max_bytes);
void ch_history_free(ChHistory *history); /* no listener is left */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChHistory, ch_history_free)

/* Takes @change over, then calls every listener. */
void ch_history_append(ChHistory *history, ChChange *change);

int64_t ch_history_revision(const ChHistory *history); /* of the newest change */
int64_t ch_history_oldest(const ChHistory *history);   /* changes after this one are all here */

/* The position behind @revision, for ch_history_get(). @revision is between oldest and newest. */
guint64 ch_history_seek(const ChHistory *history, int64_t revision);

typedef enum {
    CH_HISTORY_NONE, /* nothing there yet */
    CH_HISTORY_CHANGE,
    CH_HISTORY_LOST, /* compacted away */
} ChHistoryOutcome;

/* @out_change: borrowed until the next append */
ChHistoryOutcome
ch_history_get(const ChHistory *history, guint64 position, const ChChange **out_change);

/* @func is called after each append, from within it; it must not append. */
void ch_history_listen(ChHistory *history, ChHistoryFunc func, gpointer data);
void ch_history_unlisten(ChHistory *history, ChHistoryFunc func, gpointer data);
