/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain-watch: keeps the domain store true: list at start, events, resync, dead launchers. Spec 01
 * §11.
 *
 * Theory of operation: the ghost records say which launchers there are. Until its launcher has
 * answered for the first time, a domain counts as awaited: a status of Unknown, with which nothing
 * is done about its VM. So nobody waits for a silent launcher but its own VM. A list asks all
 * launchers on the worker pool, a bounded number at a time and each with its own deadline; each
 * answer counts when it comes. The notify server listens meanwhile, and what an event told about a
 * domain while its launcher was being asked wins; a VM whose ghost record is gone by then does not
 * come back. Every resync period the launchers are asked again. Every third of the watchdog's time
 * they are only connected to; one that has refused for longer than that is marked and reported as
 * gone, and one that has not answered yet is asked again. Thread: the loop's.
 */

#pragma once

#include "handler/hands/client.h"
#include "handler/pod/ghost-records.h"
#include "handler/watch/notify-server.h"
#include "lib/io/worker-pool.h"

typedef struct {
    const char *(*on_event)(gpointer data, const ChLauncherEvent *event); /* as ChNotifyHandlers */
    void (*on_server_failure)(gpointer data, const char *message); /* record it on the node */
    void (*on_fatal)(gpointer data, const char *message);          /* the agent cannot go on */
} ChDomainWatchHandlers;

typedef struct {
    const char *share_dir;
    int64_t watchdog_us; /* not negative */
    int64_t resync_us;
    guint max_server_failures; /* in a row, then the agent cannot go on; 0: 10 */
} ChDomainWatchSpec;

typedef struct ChDomainWatch ChDomainWatch;

/* All arguments borrowed; @pool must be freed before the watch is. */
ChDomainWatch *ch_domain_watch_new(ChLoop *loop,
                                   ChWorkerPool *pool,
                                   ChHands *hands,
                                   ChGhostRecords *records,
                                   ChDomainStore *store,
                                   const ChDomainWatchSpec *spec,
                                   const ChDomainWatchHandlers *handlers,
                                   gpointer data);
void ch_domain_watch_free(ChDomainWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChDomainWatch, ch_domain_watch_free)
/* Once it returns, the store tells about every VM on record, if only that it is awaited. */
void ch_domain_watch_start(ChDomainWatch *watch);
/* Borrowed: where notify pipes bring their connections. */
ChNotifyServer *ch_domain_watch_peek_server(ChDomainWatch *watch);
