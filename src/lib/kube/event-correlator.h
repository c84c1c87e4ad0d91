/* SPDX-License-Identifier: Apache-2.0 */

/*
 * event-correlator: from "something happened to this object" to the request that writes it: many
 * similar events become one, repetitions a count, storms are cut. Spec 01 §8.1-8.3, traps 33, 34.
 *
 * Pure: clocks and randomness are parameters; the owner serializes the calls (one writer, since the
 * order counts). State lives as long as the process, bounded by 4096 entries per cache (LRU).
 */

#pragma once

#include "lib/json/json.h"

typedef struct ChEventCorrelator ChEventCorrelator;

/* One occurrence; all strings borrowed for the call, NULL means empty. */
typedef struct {
    /* the object */
    const char *kind, *api_version, *namespace_, *name, *uid, *resource_version, *field_path;
    const char *type, *reason, *message;
    int64_t wall_ns; /* when it was recorded, nanoseconds since the epoch */
} ChEvent;

/* What to send. */
typedef struct {
    char *namespace_; /* of the URL: the object's, or "default" */
    char *name;       /* of the Event object, for the URL of the PATCH */
    ChJson *document; /* the whole Event, to POST */
    ChJson *patch; /* (nullable): strategic merge patch to try first; when it answers 404, POST */
} ChEventWrite;

/* @component, @host: the source of all events; copied */
ChEventCorrelator *ch_event_correlator_new(const char *component, const char *host);
void ch_event_correlator_free(ChEventCorrelator *correlator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChEventCorrelator, ch_event_correlator_free)

/* Only "Normal" and "Warning" events are written. */
bool ch_event_type_is_valid(const char *type);

/**
 * ch_event_correlator_take:
 * @event: of a valid type
 * @wall_ns: now, nanoseconds since the epoch
 * @now_us: now, monotonic
 * @uuid: a fresh random UUID, the event's name where the object's gives no valid one
 * @out_write: (out): free with ch_event_write_clear()
 *
 * Returns: false: dropped by the spam filter (25 per object and type, then one in 300 s); it was
 * counted nevertheless
 */
bool ch_event_correlator_take(ChEventCorrelator *correlator,
                              const ChEvent *event,
                              int64_t wall_ns,
                              int64_t now_us,
                              const char *uuid,
                              ChEventWrite *out_write);

/* @answer: the Event as the server keeps it, after a write that succeeded: its name, count and
 * first time go on from there. What is no Event is ignored. */
void ch_event_correlator_observe(ChEventCorrelator *correlator, const ChJson *answer);

void ch_event_write_clear(ChEventWrite *write);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChEventWrite, ch_event_write_clear)
