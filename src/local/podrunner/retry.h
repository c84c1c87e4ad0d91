/* SPDX-License-Identifier: Apache-2.0 */

/*
 * retry: when the next pass over one VMI is, and what it is for.
 *
 * What failed is tried again with back-off. What is merely waited for is looked at more often, and
 * these passes leave alone what failed; until something changes: then all is tried at once. Pure.
 * Thread: the owner's.
 */

#pragma once

#include <stdbool.h>

#include "lib/base/backoff.h"

typedef struct {
    ChBackoff backoff;
    int64_t failed_until_us; /* monotonic: what failed is tried again then; 0: nothing failed */
    bool is_changed;         /* since the last pass began */
    bool is_poll;            /* the pass that runs */
} ChRetry;

void ch_retry_init(ChRetry *retry);

void ch_retry_note_change(ChRetry *retry);

/* A pass begins. Returns: whether it is to leave alone what failed */
bool ch_retry_begin(ChRetry *retry, int64_t now_us);

/**
 * ch_retry_end:
 * @has_failed: whether something that was tried failed
 * @wait_us: look again then at what is waited for; negative: at nothing
 * @random: uniform in [0, 1)
 *
 * Returns: the delay until the next pass; negative: none is needed
 */
int64_t
ch_retry_end(ChRetry *retry, bool has_failed, int64_t wait_us, int64_t now_us, double random);
