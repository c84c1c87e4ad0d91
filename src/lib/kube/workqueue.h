/* SPDX-License-Identifier: Apache-2.0 */

/*
 * workqueue: keys to work on: each at most once at a time, any number of adds while it runs cause
 * one more run. Spec 01 §6.
 *
 * Pure data structure with the clock as a parameter (tests drive it without threads); its owner
 * serializes the calls.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ChWorkqueue ChWorkqueue;

ChWorkqueue *ch_workqueue_new(void);
void ch_workqueue_free(ChWorkqueue *queue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChWorkqueue, ch_workqueue_free)

void ch_workqueue_add(ChWorkqueue *queue, const char *key);
/* <= 0: now. A key that waits already keeps the earlier time. */
void ch_workqueue_add_after(ChWorkqueue *queue, const char *key, int64_t delay_us, int64_t now_us);
/* 5 ms * 2^n per key (cap 1000 s), or the queue's bucket of 10/s, burst 100, whichever is later. */
void ch_workqueue_add_rate_limited(ChWorkqueue *queue, const char *key, int64_t now_us);
void ch_workqueue_forget(ChWorkqueue *queue, const char *key);
guint ch_workqueue_n_requeues(const ChWorkqueue *queue, const char *key);

/* Moves delayed keys whose time has come. Returns: the time of the next one, or -1. */
int64_t ch_workqueue_advance(ChWorkqueue *queue, int64_t now_us);
/* (transfer full) (nullable): the next key; it counts as processed until ch_workqueue_done() */
char *ch_workqueue_get(ChWorkqueue *queue);
void ch_workqueue_done(ChWorkqueue *queue, const char *key);
guint ch_workqueue_length(const ChWorkqueue *queue);
guint ch_workqueue_n_processing(const ChWorkqueue *queue);
/* Adds are ignored from now on; what is queued is still handed out. */
void ch_workqueue_shut_down(ChWorkqueue *queue);
