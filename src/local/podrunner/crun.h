/* SPDX-License-Identifier: Apache-2.0 */

/*
 * crun: runs and removes one container by the program crun.
 *
 * A bundle is a directory with config.json; beside it lie then "pid", "crun.log" and the output.
 * Ids are a pod's UID, or that with "-NAME" for containers beside the launcher's. Thread: a
 * worker's. Blocks: for crun.
 */

#pragma once

#include "lib/json/json.h"

typedef struct {
    const char *state_dir; /* crun's state lies in its "crun" */
    const char *id;
    const char *bundle;
    const char *log_name; /* in the bundle: what the container says */
} ChCrun;

/**
 * ch_crun_run: starts it, detached.
 * @out_pid: (out): of its first process
 *
 * Returns: false: nothing runs; what crun said is in the message
 */
bool ch_crun_run(const ChCrun *crun, int64_t *out_pid, GError **error);

/* Kills what still runs of it. True also when there is nothing. */
bool ch_crun_delete(const char *state_dir, const char *id, GError **error);

/* The pod's and all beside it. */
bool ch_crun_delete_all(const char *state_dir, const char *pod_uid, GError **error);

/* When a process started, in clock ticks since boot: with its pid it is that very process. */
bool ch_crun_start_time(int64_t pid, int64_t *out_start_time);
