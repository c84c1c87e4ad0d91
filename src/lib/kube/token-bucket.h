/* SPDX-License-Identifier: Apache-2.0 */

/*
 * token-bucket: so many a second, with bursts. Spec 01 §2.1, §6.3, §8.2.
 *
 * Pure: time is a parameter (monotonic; steps back count as no time). The owner serializes the
 * calls.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double per_second;
    double burst;
    double tokens; /* negative: reserved ahead */
    int64_t last_us;
} ChTokenBucket;

/* The bucket is full at first. @per_second: 0: what was in it is all there will be */
void ch_token_bucket_init(ChTokenBucket *bucket, double per_second, guint burst, int64_t now_us);

/* Takes a token that is there. Returns: false: there is none */
bool ch_token_bucket_take(ChTokenBucket *bucket, int64_t now_us);

/**
 * ch_token_bucket_reserve: takes a token even when it is not there yet; it cannot be given back.
 *
 * Returns: how long to wait for it, in microseconds; 0: it was there; G_MAXINT64: it never comes
 * (then none was taken)
 */
int64_t ch_token_bucket_reserve(ChTokenBucket *bucket, int64_t now_us);
