/* SPDX-License-Identifier: Apache-2.0 */

/*
 * watch: one client's view of the history as a sequence of watch frames.
 *
 * It is pulled: whoever sends asks for the next frames when there is room, so a slow client costs
 * no memory; one that is slower than the history's compaction gets an ERROR frame (410). An object
 * that starts or stops to match the selector shows as ADDED or DELETED, as on a cluster.
 * Thread: the loop's.
 */

#pragma once

#include "local/apiserver/history.h"
#include "local/apiserver/view.h"

typedef struct {
    const ChResource *resource;
    char *namespace_; /* owned (nullable): NULL: all */
    ChSelect *select; /* owned */
    ChView view;
    bool wants_bookmarks;
    bool ends_initial; /* a bookmark says where the initial objects end */
    int64_t revision;  /* changes after this one */
    int64_t timeout_us;
} ChWatchSpec;

typedef struct ChWatch ChWatch;

/* @spec: its members are taken over. @initial: (element-type utf8) (transfer full) (nullable):
 * objects that come as ADDED before everything else */
ChWatch *ch_watch_new(ChHistory *history, ChWatchSpec *spec, GPtrArray *initial);
void ch_watch_free(ChWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChWatch, ch_watch_free)

const ChWatchSpec *ch_watch_peek_spec(const ChWatch *watch);

/* (transfer full) (nullable): frames, one a line, about 64 KiB at most; NULL: nothing new */
GBytes *ch_watch_next(ChWatch *watch, int64_t now_us);
/* The client was told that it lost its place: nothing comes any more. */
bool ch_watch_is_over(const ChWatch *watch);
/* (transfer full): a bookmark at the newest revision. Only when ch_watch_next() gave NULL. */
GBytes *ch_watch_bookmark(const ChWatch *watch);
