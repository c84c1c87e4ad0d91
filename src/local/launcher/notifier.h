/* SPDX-License-Identifier: Apache-2.0 */

/*
 * notifier: tells the agent of the node what became of the domain.
 *
 * Theory of operation: events queue for one worker, which reads the domain's state when it gets to
 * them, and again before each attempt to send it; so order is kept, nothing old is told, and events
 * that wait behind a slow send would all say the same: of such neighbours one is kept. The
 * connection is made at the first send and again after every failure, since the agent's end of the
 * pipe comes and goes with the agent. Spec 03 §9.
 */

#pragma once

#include "lib/io/loop.h"
#include "local/launcher/report.h"

typedef struct {
    guint64 n_events;      /* attempts to tell, successful or not */
    bool is_deletion_sent; /* ... one of them of the domain's end */
} ChNotifierProgress;

typedef struct ChNotifier ChNotifier;
typedef void (*ChNotifierFunc)(gpointer data, ChNotifierProgress progress);

/**
 * ch_notifier_new:
 * @socket_path: of the agent's pipe; copied
 * @reporter: borrowed
 * @func: on the loop's thread after each event
 */
ChNotifier *ch_notifier_new(ChLoop *loop,
                            const char *socket_path,
                            const ChReporter *reporter,
                            ChNotifierFunc func,
                            gpointer data);
/**
 * ch_notifier_end: breaks off the send that is under way, drops what waits, then calls @func on the
 * loop's thread. To be called before the loop stops: a send waits for a loop that turns.
 * Thread: loop.
 */
void ch_notifier_end(ChNotifier *notifier, ChLoopFunc func, gpointer data);

/* Drops what waits; blocks until the current send is over (20 s at most). Thread: the loop is not
 * running any more, or another thread's. */
void ch_notifier_free(ChNotifier *notifier);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChNotifier, ch_notifier_free)

/* libvirt told of the domain. @is_added: it is new. Thread: any. */
void ch_notifier_tell_domain(ChNotifier *notifier, bool is_added);
/* Something beside libvirt changed (metadata, guest data): told only of a domain that libvirt told
 * of before. Thread: any. */
void ch_notifier_tell_change(ChNotifier *notifier);
