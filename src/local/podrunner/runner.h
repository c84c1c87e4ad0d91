/* SPDX-License-Identifier: Apache-2.0 */

/*
 * runner: every VMI that has a pod here or wants one; watches, queue, and the table of pods.
 *
 * Theory of operation: the loop owns the table and takes keys from one queue; a worker runs one
 * pass (pass.h) on a snapshot, and its result is put into the table. A key names one VMI:
 * namespace, name and UID, so that a namesake's pod can still be ending. The queue is fed by the
 * watches of VMIs and pods, by containers that begin to serve or end, and by time. Thread: the
 * loop's.
 */

#pragma once

#include "lib/io/worker-pool.h"
#include "local/podrunner/pass.h"

typedef struct ChRunner ChRunner;

/* @env: borrowed. Blocks: reads the records of an earlier pod runner. */
ChRunner *ch_runner_new(ChLoop *loop, ChWorkerPool *pool, const ChPassEnv *env);
void ch_runner_start(ChRunner *runner);
/* Begins no pass anymore; @on_stopped comes when none runs. */
void ch_runner_stop(ChRunner *runner, ChLoopFunc on_stopped, gpointer data);
void ch_runner_free(ChRunner *runner); /* after the pool */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChRunner, ch_runner_free)
