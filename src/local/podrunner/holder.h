/* SPDX-License-Identifier: Apache-2.0 */

/*
 * holder: containers that hold a disk's or a volume's files, for the agent to mount from.
 *
 * Each runs chandler-container-disk, which listens on a socket in an emptyDir of its pod; by that
 * the agent finds it. With a launcher there is one for each container disk, and one for the kernel;
 * a pod for a hot-plugged volume is nothing else. Thread: a worker's. Blocks: for crun and the
 * disk. Needs: root. Spec: 05 §1.1, §1.3, §6.1.
 */

#pragma once

#include "local/podrunner/oci-config.h"

typedef struct {
    const char *state_dir;
    const char *program; /* chandler-container-disk */
    const char *pod_uid;
    const char *name;          /* (nullable): beside the launcher; NULL: it is all of the pod */
    const char *volume;        /* the emptyDir, which is there: CH_POD_DISKS_VOLUME, ... */
    const char *socket;        /* name of the file in it */
    const char *temporary_dir; /* (nullable): as ChOciHolderSpec's */
    const ChPodFile *files;
    gsize n_files;
} ChHolder;

/**
 * ch_holder_start: what is left of an earlier attempt is removed first.
 * @out_pid: (out) (optional)
 */
bool ch_holder_start(const ChHolder *holder, int64_t *out_pid, GError **error);

/* Whether it serves: the socket is there. */
bool ch_holder_is_ready(const ChHolder *holder);
