/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: a key is in `fifo` if and only if it is in `dirty` and not in `processing`.
 * Adding marks it dirty, getting moves it from dirty to processing, done puts it back into the FIFO
 * if it became dirty meanwhile. Hence a key is never out twice, and adds during a run collapse into
 * one more run. Delayed keys wait in `waiting`, apart from all that: an immediate add does not
 * cancel a delayed one.
 */

#include "lib/kube/workqueue.h"

#include "lib/base/time.h"
#include "lib/kube/token-bucket.h"

#define FAILURE_INITIAL_US  (5 * CH_MS_US)
#define FAILURE_CAP_US      (1000 * CH_SECOND_US)
#define FAILURE_MAX_DOUBLED 18 /* 5 ms * 2^18 is beyond the cap */
#define REQUEUES_PER_SECOND 10
#define REQUEUES_BURST      100

typedef struct {
    char *key; /* owned */
    int64_t ready_us;
} Delayed;

struct ChWorkqueue {
    GQueue fifo;                /* char *, owned */
    GHashTable *dirty;          /* set of char *, owned */
    GHashTable *processing;     /* set of char *, owned */
    GSequence *waiting;         /* Delayed *, owned, earliest first */
    GHashTable *waiting_by_key; /* Delayed.key, borrowed -> GSequenceIter * */
    GHashTable *failures;       /* char *, owned -> GUINT_TO_POINTER(consecutive ones) */
    ChTokenBucket bucket;
    bool has_bucket; /* it starts full at the first use: new() knows no time */
    bool is_shut_down;
};

static void
delayed_free(gpointer data)
{
    Delayed *delayed = data;

    g_free(delayed->key);
    g_free(delayed);
}

static int
delayed_compare(gconstpointer a, gconstpointer b, gpointer data)
{
    const Delayed *x = a;
    const Delayed *y = b;

    return (x->ready_us > y->ready_us) - (x->ready_us < y->ready_us);
}

static GHashTable *
string_set(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

ChWorkqueue *
ch_workqueue_new(void)
{
    ChWorkqueue *queue = g_new0(ChWorkqueue, 1);

    g_queue_init(&queue->fifo);
    queue->dirty = string_set();
    queue->processing = string_set();
    queue->waiting = g_sequence_new(delayed_free);
    queue->waiting_by_key = g_hash_table_new(g_str_hash, g_str_equal);
    queue->failures = string_set();
    return queue;
}

void
ch_workqueue_free(ChWorkqueue *queue)
{
    if (queue == NULL)
        return;
    g_queue_clear_full(&queue->fifo, g_free);
    g_hash_table_unref(queue->dirty);
    g_hash_table_unref(queue->processing);
    g_hash_table_unref(queue->waiting_by_key);
    g_sequence_free(queue->waiting);
    g_hash_table_unref(queue->failures);
    g_free(queue);
}

void
ch_workqueue_add(ChWorkqueue *queue, const char *key)
{
    if (queue->is_shut_down || g_hash_table_contains(queue->dirty, key))
        return;
    g_hash_table_add(queue->dirty, g_strdup(key));
    if (!g_hash_table_contains(queue->processing, key))
        g_queue_push_tail(&queue->fifo, g_strdup(key));
}

void
ch_workqueue_add_after(ChWorkqueue *queue, const char *key, int64_t delay_us, int64_t now_us)
{
    GSequenceIter *iter;
    Delayed *delayed;
    int64_t ready_us;

    if (queue->is_shut_down)
        return;
    if (delay_us <= 0) {
        ch_workqueue_add(queue, key);
        return;
    }
    if (__builtin_add_overflow(now_us, delay_us, &ready_us))
        ready_us = G_MAXINT64;

    iter = g_hash_table_lookup(queue->waiting_by_key, key);
    if (iter != NULL) {
        delayed = g_sequence_get(iter);
        if (delayed->ready_us > ready_us) {
            delayed->ready_us = ready_us;
            g_sequence_sort_changed(iter, delayed_compare, NULL);
        }
        return;
    }
    delayed = g_new(Delayed, 1);
    *delayed = (Delayed){.key = g_strdup(key), .ready_us = ready_us};
    iter = g_sequence_insert_sorted(queue->waiting, delayed, delayed_compare, NULL);
    g_hash_table_insert(queue->waiting_by_key, delayed->key, iter);
}

static int64_t
failure_delay_us(guint n_failures)
{
    if (n_failures >= FAILURE_MAX_DOUBLED)
        return FAILURE_CAP_US;
    return MIN(FAILURE_INITIAL_US << n_failures, FAILURE_CAP_US);
}

void
ch_workqueue_add_rate_limited(ChWorkqueue *queue, const char *key, int64_t now_us)
{
    const guint n_failures = ch_workqueue_n_requeues(queue, key);
    int64_t bucket_delay_us;

    if (queue->is_shut_down)
        return;
    if (!queue->has_bucket)
        ch_token_bucket_init(&queue->bucket, REQUEUES_PER_SECOND, REQUEUES_BURST, now_us);
    queue->has_bucket = true;

    g_hash_table_replace(queue->failures, g_strdup(key), GUINT_TO_POINTER(n_failures + 1));
    bucket_delay_us = ch_token_bucket_reserve(&queue->bucket, now_us);
    ch_workqueue_add_after(queue, key, MAX(failure_delay_us(n_failures), bucket_delay_us), now_us);
}

void
ch_workqueue_forget(ChWorkqueue *queue, const char *key)
{
    g_hash_table_remove(queue->failures, key);
}

guint
ch_workqueue_n_requeues(const ChWorkqueue *queue, const char *key)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(queue->failures, key));
}

int64_t
ch_workqueue_advance(ChWorkqueue *queue, int64_t now_us)
{
    while (g_sequence_get_length(queue->waiting) > 0) {
        GSequenceIter *iter = g_sequence_get_begin_iter(queue->waiting);
        const Delayed *delayed = g_sequence_get(iter);

        if (delayed->ready_us > now_us)
            return delayed->ready_us;
        ch_workqueue_add(queue, delayed->key);
        g_hash_table_remove(queue->waiting_by_key, delayed->key);
        g_sequence_remove(iter);
    }
    return -1;
}

char *
ch_workqueue_get(ChWorkqueue *queue)
{
    char *key = g_queue_pop_head(&queue->fifo);

    if (key == NULL)
        return NULL;
    g_hash_table_add(queue->processing, g_strdup(key));
    g_hash_table_remove(queue->dirty, key);
    return key;
}

void
ch_workqueue_done(ChWorkqueue *queue, const char *key)
{
    if (g_hash_table_remove(queue->processing, key) && g_hash_table_contains(queue->dirty, key))
        g_queue_push_tail(&queue->fifo, g_strdup(key));
}

guint
ch_workqueue_length(const ChWorkqueue *queue)
{
    return queue->fifo.length;
}

guint
ch_workqueue_n_processing(const ChWorkqueue *queue)
{
    return g_hash_table_size(queue->processing);
}

void
ch_workqueue_shut_down(ChWorkqueue *queue)
{
    queue->is_shut_down = true;
    g_hash_table_remove_all(queue->waiting_by_key);
    g_sequence_remove_range(g_sequence_get_begin_iter(queue->waiting),
                            g_sequence_get_end_iter(queue->waiting));
}
