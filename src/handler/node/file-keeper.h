/* SPDX-License-Identifier: Apache-2.0 */

/*
 * file-keeper: has the hands put something of the node in order each time that a file which it
 * depends on comes, goes or is replaced.
 *
 * Theory of operation: the hands give an inotify descriptor of the file's directory, which the loop
 * watches, and then settle, which is idempotent: it looks at what is there itself, so an event only
 * says that it is time. Both is asked by a worker, one job at a time. Settling follows a change at
 * once, but a second after the last time at the earliest, and events of whatever name are taken no
 * more often, as pods can make changes as fast as they like. What fails is tried again with a
 * back-off, and with the next change. Thread: the loop's.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#include "handler/hands/client.h"
#include "lib/io/loop.h"
#include "lib/io/worker-pool.h"

typedef struct ChFileKeeper ChFileKeeper;

typedef struct {
    ChHandsOp watch;  /* gives the descriptor */
    ChHandsOp settle; /* puts things in order */
    bool has_end;     /* settle with CH_HANDS_REMOVE takes it back */
    const char *name; /* of the file; static */

    /* After each time. @error: (nullable): why it failed, or why the directory is not watched.
     * Returns: whether it should be tried again before the file changes; without a watch it is. */
    bool (*on_settled)(gpointer data, const ChHandsReply *reply, const GError *error);
} ChFileKeeperSpec;

/* All are borrowed, @spec too. @pool must be freed before the keeper is. */
ChFileKeeper *ch_file_keeper_new(
    ChLoop *loop, ChWorkerPool *pool, ChHands *hands, const ChFileKeeperSpec *spec, gpointer data);
void ch_file_keeper_free(ChFileKeeper *keeper); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChFileKeeper, ch_file_keeper_free)

/* Settles, and from then on. Once more: settles again. */
void ch_file_keeper_start(ChFileKeeper *keeper);

/**
 * ch_file_keeper_stop: no more from now on; on_settled is not called any more.
 * @done: (nullable): once, in a later turn, when what was settled is taken back, or after 2 s
 */
void ch_file_keeper_stop(ChFileKeeper *keeper, ChLoopFunc done, gpointer data);
