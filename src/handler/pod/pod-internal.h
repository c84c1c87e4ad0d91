/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-internal: what pod*.c share. Thread: as of pod.h.
 */

#pragma once

#include "handler/pod/pod.h"

struct ChPod {
    ChHands *hands;  /* borrowed, outlives it */
    char *uid;       /* owned */
    uint64_t handle; /* in the hands' table */
    pid_t pid;
    uint64_t pipe_dev; /* identity of the open notify pipe */
    uint64_t pipe_ino; /* 0: none is open */
    char *label;       /* owned; NULL: not asked for yet */
    bool has_devices;  /* DEVICES_LOOK was content, with these flags; a runtime's nodes stay */
    uint32_t devices_flags;
    GHashTable *sizes; /* "image/name" (owned) -> int64_t (owned), -1: none; NULL: none asked for */
};

/* What is told and fails leaves an entry in the hands' table, or a dead socket in the pod, until
 * either ends: logged and ignored. Never blocks. */
void ch_pod_tell(ChPod *pod, const ChHandsRequest *request);
