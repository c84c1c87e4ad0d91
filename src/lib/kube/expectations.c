/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/expectations.h"

typedef struct {
    int adds;
    int64_t since_us;
} Expectation;

struct ChExpectations {
    int64_t timeout_us;
    GHashTable *by_key; /* char * -> Expectation *, both owned */
};

ChExpectations *
ch_expectations_new(int64_t timeout_us)
{
    ChExpectations *expectations = g_new0(ChExpectations, 1);

    expectations->timeout_us = timeout_us;
    expectations->by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return expectations;
}

void
ch_expectations_free(ChExpectations *expectations)
{
    if (expectations == NULL)
        return;
    g_hash_table_unref(expectations->by_key);
    g_free(expectations);
}

void
ch_expectations_set(ChExpectations *expectations, const char *key, int adds, int64_t now_us)
{
    Expectation *entry = g_new(Expectation, 1);

    *entry = (Expectation){.adds = adds, .since_us = now_us};
    g_hash_table_replace(expectations->by_key, g_strdup(key), entry);
}

void
ch_expectations_delete(ChExpectations *expectations, const char *key)
{
    g_hash_table_remove(expectations->by_key, key);
}

/* NULL: nothing is expected */
static const Expectation *
lookup_armed(const ChExpectations *expectations, const char *key)
{
    const Expectation *entry = g_hash_table_lookup(expectations->by_key, key);

    return entry != NULL && entry->adds > 0 ? entry : NULL;
}

bool
ch_expectations_are_satisfied(const ChExpectations *expectations, const char *key, int64_t now_us)
{
    const Expectation *entry = lookup_armed(expectations, key);

    return entry == NULL || now_us - entry->since_us >= expectations->timeout_us;
}

int64_t
ch_expectations_expiry_us(const ChExpectations *expectations, const char *key)
{
    const Expectation *entry = lookup_armed(expectations, key);

    return entry != NULL ? entry->since_us + expectations->timeout_us : -1;
}
