/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/lru.h"

#include <stdbool.h>

typedef struct {
    char *text;
} Value;

static guint n_cleared;

static void
clear(gpointer data)
{
    Value *value = data;

    n_cleared += value->text != NULL;
    g_free(value->text);
}

/* The first word chooses the bucket: many keys share one. */
static ChLruKey
key_of(guint number)
{
    return (ChLruKey){{number % 5, 0, 0, number}};
}

static void
put(ChLru *lru, guint number, const char *text)
{
    const ChLruKey key = key_of(number);
    Value *value = ch_lru_insert(lru, &key);

    g_assert_null(value->text);
    value->text = g_strdup(text);
}

static const char *
get(ChLru *lru, guint number)
{
    const ChLruKey key = key_of(number);
    const Value *value = ch_lru_lookup(lru, &key);

    return value != NULL ? value->text : NULL;
}

static void
test_forgets_the_least_used(void)
{
    g_autoptr(ChLru) lru = ch_lru_new(2, sizeof(Value), clear);

    g_assert_null(get(lru, 1));
    put(lru, 1, "1");
    put(lru, 2, "2");
    g_assert_cmpstr(get(lru, 1), ==, "1");
    put(lru, 3, "3");
    g_assert_null(get(lru, 2));
    g_assert_cmpstr(get(lru, 1), ==, "1");
    g_assert_cmpstr(get(lru, 3), ==, "3");
}

static void
test_replacing_evicts_nobody(void)
{
    g_autoptr(ChLru) lru = ch_lru_new(2, sizeof(Value), clear);

    put(lru, 1, "1");
    put(lru, 2, "2");
    put(lru, 1, "3");
    g_assert_cmpstr(get(lru, 1), ==, "3");
    g_assert_cmpstr(get(lru, 2), ==, "2");
}

/* Beside a model of it, through growth and eviction. */
static void
test_as_its_model(void)
{
    enum { MOST = 100, KEYS = 150 };
    ChLru *lru = ch_lru_new(MOST, sizeof(Value), clear);
    guint used[KEYS] = {0}; /* when; 0: never */
    guint n_put = 0;

    n_cleared = 0;
    for (guint turn = 1; turn <= 20000; turn++) {
        const guint number = g_test_rand_int_range(0, KEYS) < KEYS / 2
                                 ? (guint)g_test_rand_int_range(0, 10)
                                 : (guint)g_test_rand_int_range(0, KEYS);
        g_autofree char *text = g_strdup_printf("%u", number);
        const bool is_write = g_test_rand_bit();
        guint n_newer = 0;

        for (guint i = 0; i < KEYS; i++)
            n_newer += used[i] > used[number];
        if (used[number] != 0 && n_newer < MOST)
            g_assert_cmpstr(get(lru, number), ==, text);
        else
            g_assert_null(get(lru, number));
        if (is_write) {
            put(lru, number, text);
            n_put++;
        }
        if (is_write || (used[number] != 0 && n_newer < MOST))
            used[number] = turn;
    }
    ch_lru_free(lru);
    g_assert_cmpuint(n_cleared, ==, n_put); /* nothing is lost, nothing freed twice */
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lru/forgets-the-least-used", test_forgets_the_least_used);
    g_test_add_func("/lru/replacing-evicts-nobody", test_replacing_evicts_nobody);
    g_test_add_func("/lru/as-its-model", test_as_its_model);
    return g_test_run();
}
