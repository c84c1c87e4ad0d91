/* SPDX-License-Identifier: Apache-2.0 */

/*
 * event-catalogue: every event that the reconcile core records, as data.
 *
 * Pure. Thread: any. Spec: 01 §26, 02 §4.4, §10.
 */

#pragma once

#include <glib.h>

typedef enum {
    CH_EVENT_INVALID = 0,
    CH_EVENT_CREATED,
    CH_EVENT_STARTED,
    CH_EVENT_SHUT_DOWN,
    CH_EVENT_CRASHED,
    CH_EVENT_SHUTTING_DOWN,
    CH_EVENT_STOPPING,
    CH_EVENT_SIGNALED_DELETION,
    CH_EVENT_SYNC_FAILED,    /* argument: the error's text */
    CH_EVENT_HOTPLUG_FAILED, /* argument: the error's text */
    CH_EVENT_NIC_HOTPLUG,    /* argument: the error's text */
    CH_EVENT_CREDENTIALS_SYNCED,
    CH_EVENT_CREDENTIALS_SYNCED_WITH_MESSAGE,
    CH_EVENT_CREDENTIALS_FAILED,
    CH_EVENT_NOT_EVICTABLE, /* argument: the condition's message */
    CH_EVENT_SMALL_VOLUME,  /* argument: what was expected and found */
    CH_EVENT_N,
} ChEventKind;

typedef struct {
    const char *type; /* "Normal" or "Warning", static storage */
    char *reason;     /* owned */
    char *message;    /* owned */
} ChEvent;

/* @argument: (nullable): what follows the text of the message */
ChEvent *ch_event_new(ChEventKind kind, const char *argument);
/* An event whose reason is not in the catalogue (volumes carry theirs); @type has static storage.
 */
ChEvent *ch_event_new_custom(const char *type, const char *reason, const char *message);
void ch_event_free(ChEvent *event);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChEvent, ch_event_free)
