/* SPDX-License-Identifier: Apache-2.0 */

/*
 * retry-manager: spaces out retries of what keeps failing (a guest paused by an I/O error).
 *
 * Pure: the clock is a parameter. Thread: the owner's (callers on several threads need a lock of
 * their own). Spec: 01 §24.3.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ChRetryManager ChRetryManager;

/* All in microseconds; the agent's: 10 s, 3 min, 30 s. */
ChRetryManager *
ch_retry_manager_new(int64_t initial_us, int64_t max_us, int64_t response_window_us);
void ch_retry_manager_free(ChRetryManager *manager);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChRetryManager, ch_retry_manager_free)

/**
 * ch_retry_manager_ask: tells that @key failed (again) at @now_us.
 *
 * Call it on a failure signal only. Returns: how long to hold the retry back, in microseconds;
 * 0: retry now
 */
int64_t ch_retry_manager_ask(ChRetryManager *manager, const char *key, int64_t now_us);

/* Forgets what has been quiet for longer than the response window. Call every max_us. */
void ch_retry_manager_sweep(ChRetryManager *manager, int64_t now_us);
gsize ch_retry_manager_size(const ChRetryManager *manager);
