/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/lru.h"

#include <string.h>

#define FIRST_ENTRIES 16
#define NONE          G_MAXUINT32

typedef struct {
    ChLruKey key;
    uint32_t next;         /* of the same bucket */
    uint32_t newer, older; /* in the order of use */
    uint32_t unused;
    uint8_t value[] __attribute__((aligned(8)));
} Entry;

struct ChLru {
    uint8_t *entries;
    uint32_t *buckets; /* as many as `capacity` */
    guint n_entries, capacity, max_entries;
    uint32_t newest, oldest;
    gsize entry_bytes;
    GDestroyNotify value_clear;
};

static Entry *
entry_at(const ChLru *lru, uint32_t index)
{
    return (Entry *)(void *)(lru->entries + (gsize)index * lru->entry_bytes);
}

static gsize
value_bytes(const ChLru *lru)
{
    return lru->entry_bytes - sizeof(Entry);
}

static uint32_t *
bucket_of(const ChLru *lru, const ChLruKey *key)
{
    return &lru->buckets[key->words[0] % MAX(lru->capacity, 1)];
}

static void
join_bucket(ChLru *lru, uint32_t index)
{
    Entry *entry = entry_at(lru, index);
    uint32_t *bucket = bucket_of(lru, &entry->key);

    entry->next = *bucket;
    *bucket = index;
}

static void
leave_bucket(ChLru *lru, uint32_t index)
{
    uint32_t *link = bucket_of(lru, &entry_at(lru, index)->key);

    while (*link != index)
        link = &entry_at(lru, *link)->next;
    *link = entry_at(lru, index)->next;
}

static void
join_order(ChLru *lru, uint32_t index)
{
    Entry *entry = entry_at(lru, index);

    entry->newer = NONE;
    entry->older = lru->newest;
    if (lru->newest != NONE)
        entry_at(lru, lru->newest)->newer = index;
    else
        lru->oldest = index;
    lru->newest = index;
}

static void
leave_order(ChLru *lru, uint32_t index)
{
    const Entry *entry = entry_at(lru, index);

    if (entry->newer != NONE)
        entry_at(lru, entry->newer)->older = entry->older;
    else
        lru->newest = entry->older;
    if (entry->older != NONE)
        entry_at(lru, entry->older)->newer = entry->newer;
    else
        lru->oldest = entry->newer;
}

static void
clear_value(ChLru *lru, uint32_t index)
{
    Entry *entry = entry_at(lru, index);

    if (lru->value_clear != NULL)
        lru->value_clear(entry->value);
    memset(entry->value, 0, value_bytes(lru));
}

static void
grow(ChLru *lru)
{
    lru->capacity = MIN(lru->max_entries, lru->capacity > 0 ? 2 * lru->capacity : FIRST_ENTRIES);
    lru->entries = g_realloc_n(lru->entries, lru->capacity, lru->entry_bytes);
    lru->buckets = g_realloc_n(lru->buckets, lru->capacity, sizeof(*lru->buckets));
    for (guint i = 0; i < lru->capacity; i++)
        lru->buckets[i] = NONE;
    for (guint i = 0; i < lru->n_entries; i++)
        join_bucket(lru, i);
}

ChLru *
ch_lru_new(guint max_entries, gsize bytes, GDestroyNotify value_clear)
{
    ChLru *lru = g_new0(ChLru, 1);

    lru->max_entries = max_entries;
    lru->entry_bytes = sizeof(Entry) + (bytes + 7) / 8 * 8;
    lru->value_clear = value_clear;
    lru->newest = lru->oldest = NONE;
    return lru;
}

void
ch_lru_free(ChLru *lru)
{
    if (lru == NULL)
        return;
    for (guint i = 0; i < lru->n_entries; i++)
        clear_value(lru, i);
    g_free(lru->entries);
    g_free(lru->buckets);
    g_free(lru);
}

static uint32_t
find(const ChLru *lru, const ChLruKey *key)
{
    uint32_t index = lru->capacity > 0 ? *bucket_of(lru, key) : NONE;

    while (index != NONE && memcmp(&entry_at(lru, index)->key, key, sizeof(*key)) != 0)
        index = entry_at(lru, index)->next;
    return index;
}

static void
use(ChLru *lru, uint32_t index)
{
    leave_order(lru, index);
    join_order(lru, index);
}

gpointer
ch_lru_lookup(ChLru *lru, const ChLruKey *key)
{
    const uint32_t index = find(lru, key);

    if (index == NONE)
        return NULL;
    use(lru, index);
    return entry_at(lru, index)->value;
}

/* Returns: an entry in no list, its value not set */
static uint32_t
take_entry(ChLru *lru)
{
    const uint32_t oldest = lru->oldest;

    if (lru->n_entries < lru->max_entries) {
        if (lru->n_entries == lru->capacity)
            grow(lru);
        memset(entry_at(lru, lru->n_entries), 0, lru->entry_bytes);
        return lru->n_entries++;
    }
    leave_order(lru, oldest);
    leave_bucket(lru, oldest);
    clear_value(lru, oldest);
    return oldest;
}

gpointer
ch_lru_insert(ChLru *lru, const ChLruKey *key)
{
    uint32_t index = find(lru, key);

    if (index != NONE) {
        use(lru, index);
        clear_value(lru, index);
        return entry_at(lru, index)->value;
    }
    index = take_entry(lru);
    entry_at(lru, index)->key = *key;
    join_bucket(lru, index);
    join_order(lru, index);
    return entry_at(lru, index)->value;
}
