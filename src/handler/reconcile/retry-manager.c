/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/retry-manager.h"

typedef struct {
    int64_t last_run_us;
    int64_t next_run_us;
    int64_t interval_us;
    bool last_run_failed;
} RetryState;

struct ChRetryManager {
    int64_t initial_us, max_us, response_window_us;
    GHashTable *states; /* owned: key -> RetryState, owned both */
};

ChRetryManager *
ch_retry_manager_new(int64_t initial_us, int64_t max_us, int64_t response_window_us)
{
    ChRetryManager *manager = g_new(ChRetryManager, 1);

    *manager = (ChRetryManager){
        .initial_us = initial_us,
        .max_us = max_us,
        .response_window_us = response_window_us,
        .states = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
    };
    return manager;
}

void
ch_retry_manager_free(ChRetryManager *manager)
{
    if (manager == NULL)
        return;
    g_hash_table_unref(manager->states);
    g_free(manager);
}

static bool
is_quiet(const ChRetryManager *manager, const RetryState *state, int64_t now_us)
{
    return !state->last_run_failed && now_us >= state->last_run_us + manager->response_window_us;
}

/* The first failure, or one that no longer answers to the last try: it is retried at once. */
static void
start_over(const ChRetryManager *manager, RetryState *state, int64_t now_us)
{
    *state = (RetryState){
        .last_run_us = now_us,
        .next_run_us = now_us + manager->initial_us,
        .interval_us = manager->initial_us,
    };
}

int64_t
ch_retry_manager_ask(ChRetryManager *manager, const char *key, int64_t now_us)
{
    RetryState *state = g_hash_table_lookup(manager->states, key);

    if (state == NULL) {
        state = g_new(RetryState, 1);
        start_over(manager, state, now_us);
        g_hash_table_insert(manager->states, g_strdup(key), state);
        return 0;
    }
    if (is_quiet(manager, state, now_us)) {
        start_over(manager, state, now_us);
        return 0;
    }
    if (!state->last_run_failed) {
        state->last_run_failed = true;
        return MAX(0, state->next_run_us - now_us);
    }
    if (now_us <= state->next_run_us)
        return state->next_run_us - now_us;

    state->interval_us = MIN(2 * state->interval_us, manager->max_us);
    state->next_run_us = now_us + state->interval_us;
    state->last_run_us = now_us;
    state->last_run_failed = false;
    return 0;
}

void
ch_retry_manager_sweep(ChRetryManager *manager, int64_t now_us)
{
    GHashTableIter iter;
    gpointer state;

    g_hash_table_iter_init(&iter, manager->states);
    while (g_hash_table_iter_next(&iter, NULL, &state))
        if (is_quiet(manager, state, now_us))
            g_hash_table_iter_remove(&iter);
}

gsize
ch_retry_manager_size(const ChRetryManager *manager)
{
    return g_hash_table_size(manager->states);
}
