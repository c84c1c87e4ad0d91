/* SPDX-License-Identifier: Apache-2.0 */

/*
 * recorder: Kubernetes events, correlated and written in order. Spec 01 §8.
 *
 * Recording never blocks: a bounded queue feeds one serial writer on the loop's thread.
 */

#pragma once

#include "lib/kube/client.h"

typedef struct ChRecorder ChRecorder;

/* The object an event is about; strings borrowed for the call. */
typedef struct {
    const char *kind, *api_version, *namespace_, *name, *uid, *resource_version;
} ChObjectRef;

/* new and free: Thread: the loop's. Free drops what is not written; no other thread may be
 * recording then any more. */
ChRecorder *ch_recorder_new(ChKubeClient *client, const char *component, const char *host);
void ch_recorder_free(ChRecorder *recorder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChRecorder, ch_recorder_free)

/* @type: "Normal" or "Warning"; anything else is logged and dropped. Never waits: beyond 1000
 * events that the loop has not fetched, and 1000 that are not written, new ones are dropped.
 * Thread: any. */
void ch_recorder_event(ChRecorder *recorder,
                       const ChObjectRef *object,
                       const char *type,
                       const char *reason,
                       const char *message);

/* Calls @done, perhaps at once, when all that was recorded before is written or dropped; not after
 * ch_recorder_free(). One at a time. Thread: the loop's. */
void ch_recorder_flush(ChRecorder *recorder, void (*done)(gpointer data), gpointer data);
