/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-watch: sees when a launcher begins to serve, and when it ends.
 *
 * Serving: launcher-sock appears in the pod's sockets directory (inotify). The end: the pidfd of
 * the container's first process. Thread: the loop's.
 */

#pragma once

#include "lib/io/loop.h"
#include "local/podrunner/record.h"

typedef struct ChPodWatch ChPodWatch;

/* @on_change: something of the below changed; may free the watch. */
ChPodWatch *ch_pod_watch_new(ChLoop *loop,
                             const ChRecord *record,
                             const char *state_dir,
                             ChLoopFunc on_change,
                             gpointer data);
void ch_pod_watch_free(ChPodWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChPodWatch, ch_pod_watch_free)

bool ch_pod_watch_is_ready(const ChPodWatch *watch);
bool ch_pod_watch_has_ended(const ChPodWatch *watch);
/* Negative: not known, since another process started it. */
int ch_pod_watch_exit_code(const ChPodWatch *watch);
