/* SPDX-License-Identifier: Apache-2.0 */

/*
 * worker-pool: threads for work that may block, as many as there is work, within limits.
 *
 * Theory of operation: a job that finds no idle thread gets a new one while there are few; beyond
 * that one is added each time that jobs have waited for a moment, until the maximum is reached. A
 * thread that was idle for a while ends, down to the minimum; since the one that was busy last gets
 * the next job, a few jobs now and then do not keep many threads. The queue is guarded by a pthread
 * mutex, which ThreadSanitizer sees. A thread is never reused for anything that changes namespaces,
 * credentials or root: only the hands do such things. Thread: any, but free: not a pool thread.
 */

#pragma once

#include <glib.h>

typedef struct ChWorkerPool ChWorkerPool;
typedef void (*ChWorkFunc)(gpointer data);

/* @min, @max: threads, 1 <= min <= max; none is started before there is work */
ChWorkerPool *ch_worker_pool_new(guint min, guint max);
/* Waits for the jobs that run; drops those that wait by their drop functions. */
void ch_worker_pool_free(ChWorkerPool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChWorkerPool, ch_worker_pool_free)

/**
 * ch_worker_pool_run: runs @func(@data) once on some thread of the pool; it owns @data.
 * @drop: (nullable): called instead when the pool is freed before the job ran
 */
void ch_worker_pool_run(ChWorkerPool *pool, ChWorkFunc func, gpointer data, GDestroyNotify drop);

guint ch_worker_pool_n_threads(ChWorkerPool *pool);
/* Threads that run a job now. */
guint ch_worker_pool_n_busy(ChWorkerPool *pool);
