/* SPDX-License-Identifier: Apache-2.0 */

/*
 * backoff: growing, jittered delays. Pure: randomness and time are parameters. Thread: the owner's.
 */

#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct {
    int64_t initial_us;
    int64_t cap_us;
    double factor;          /* >= 1 */
    double jitter;          /* each delay is multiplied by a uniform factor of [1, 1 + jitter) */
    int64_t reset_after_us; /* a pause longer than this between two calls starts over; 0: never */
} ChBackoffSpec;

typedef struct {
    ChBackoffSpec spec;
    int64_t next_us; /* un-jittered delay of the next call; 0 before the first */
    int64_t last_call_us;
} ChBackoff;

void ch_backoff_init(ChBackoff *backoff, const ChBackoffSpec *spec);
void ch_backoff_reset(ChBackoff *backoff);

/**
 * ch_backoff_next:
 * @now_us: monotonic
 * @random: uniform in [0, 1)
 *
 * Returns: the delay to wait now, in microseconds
 */
int64_t ch_backoff_next(ChBackoff *backoff, int64_t now_us, double random);
