/* SPDX-License-Identifier: Apache-2.0 */

/*
 * worker: one thread that runs jobs in the order of their arrival.
 *
 * libvirt's calls may block for long, so none runs on the loop's thread. Whatever must not overlap
 * is given to the same worker: the worker is the lock. The queue is guarded by a pthread mutex, and
 * bounded: a job that does not fit is dropped by its destroy function.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct ChWorker ChWorker;
typedef void (*ChWorkFunc)(gpointer data);

/* @name: of the thread, at most 15 bytes */
ChWorker *ch_worker_new(const char *name, guint max_jobs);
/* Drops what waits, waits for the job that runs. Thread: not the worker's. Blocks: that long. */
void ch_worker_free(ChWorker *worker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChWorker, ch_worker_free)

/**
 * ch_worker_push: runs @func(@data), then @destroy(@data), on the worker's thread. Thread: any.
 * @destroy: (nullable): also called, alone and at once, when the job is dropped
 *
 * Returns: false when the queue is full or the worker ends: the job was dropped
 */
bool ch_worker_push(ChWorker *worker, ChWorkFunc func, gpointer data, GDestroyNotify destroy);
