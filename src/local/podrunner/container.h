/* SPDX-License-Identifier: Apache-2.0 */

/*
 * container: makes and ends the one container of a pod, with crun.
 *
 * The container's root is an overlay over this machine's root, writable in memory, which has a user
 * 107. Once crun has moved into it, nothing of it stays mounted here. Thread: a worker's. Blocks:
 * for crun (at most CH_CONTAINER_TIMEOUT_US each call) and the disk. Needs: root, a mount namespace
 * of its own.
 */

#pragma once

#include "local/podrunner/oci-config.h"
#include "local/podrunner/record.h"

typedef struct {
    const char *state_dir;
    const char *launcher; /* the program */
    const char *holder;   /* chandler-container-disk, the program */
    bool is_emulated;
    int verbosity;
} ChContainerSpec;

/**
 * ch_container_start: what is left of an earlier attempt is removed first.
 * @record: pid and start_time are set
 * @files: from images
 *
 * Returns: false: nothing runs
 */
bool ch_container_start(const ChContainerSpec *spec,
                        const ChJson *vmi,
                        const ChPodFile *files,
                        gsize n_files,
                        ChRecord *record,
                        GError **error);

/* SIGTERM or SIGKILL to its first process. True also when there is none anymore. */
bool ch_container_signal(const ChRecord *record, int signo, GError **error);

/* Removes all that is left of an ended container and its pod's volumes. Idempotent. */
bool ch_container_remove(const char *state_dir, const char *pod_uid, GError **error);

/* A pidfd of the very process that @record names; negative: it has ended. */
int ch_container_open(const ChRecord *record);
