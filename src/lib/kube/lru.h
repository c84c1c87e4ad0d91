/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lru: a map from digests to small values that forgets what was not used for longest.
 *
 * Theory of operation: entries lie in one array, chained by index into buckets and into the order
 * of use; the array doubles until it holds the most there may be. So an entry costs its value and
 * 36 bytes. Thread: the owner's.
 */

#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct ChLru ChLru;

/* 16 bytes of a digest: evenly distributed. */
typedef struct {
    uint32_t words[4];
} ChLruKey;

/**
 * ch_lru_new:
 * @max_entries: > 0
 * @value_bytes: of one value, which may be moved in memory
 * @value_clear: (nullable): frees what a value owns
 */
ChLru *ch_lru_new(guint max_entries, gsize value_bytes, GDestroyNotify value_clear);
void ch_lru_free(ChLru *lru);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLru, ch_lru_free)

/* (nullable): borrowed until the next insertion; counts as a use */
gpointer ch_lru_lookup(ChLru *lru, const ChLruKey *key);

/* Returns: (transfer none): a value of zeros to fill in, borrowed until the next insertion; clears
 * what was there, may evict another entry. */
gpointer ch_lru_insert(ChLru *lru, const ChLruKey *key);
