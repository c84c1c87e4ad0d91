/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/counter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A series' key is its values, each ended by this byte, which no value contains. */
#define END '\n'

struct ChCounter {
    char *name, *help;
    char **labels;
    guint n_labels;

    pthread_mutex_t lock;
    GHashTable *series; /* key (owned) -> uint64_t, owned */
};

ChCounter *
ch_counter_new(const char *name, const char *help, const char *const *labels)
{
    ChCounter *counter = g_new0(ChCounter, 1);

    counter->name = g_strdup(name);
    counter->help = g_strdup(help);
    counter->labels = g_strdupv((char **)labels);
    counter->n_labels = g_strv_length(counter->labels);
    pthread_mutex_init(&counter->lock, NULL);
    counter->series = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return counter;
}

void
ch_counter_free(ChCounter *counter)
{
    if (counter == NULL)
        return;
    g_free(counter->name);
    g_free(counter->help);
    g_strfreev(counter->labels);
    g_hash_table_unref(counter->series);
    pthread_mutex_destroy(&counter->lock);
    g_free(counter);
}

/* Valid UTF-8 of a bounded length without line breaks. */
static void
append_value(GString *key, const char *value)
{
    g_autofree char *valid = g_utf8_make_valid(value, -1);
    gsize length = strlen(valid);

    if (length > CH_COUNTER_MAX_LABEL) {
        const char *end = g_utf8_find_prev_char(valid, valid + CH_COUNTER_MAX_LABEL + 1);

        length = (gsize)(end - valid);
    }
    valid[length] = '\0';
    g_strdelimit(valid, "\n", ' ');
    g_string_append(key, valid);
    g_string_append_c(key, END);
}

/* (transfer full) */
static char *
key_of(const ChCounter *counter, const char *const *values, bool is_whole)
{
    GString *key = g_string_new(NULL);
    guint n = 0;

    for (; values[n] != NULL && n < counter->n_labels; n++)
        append_value(key, values[n]);
    g_assert(!is_whole || n == counter->n_labels);
    return g_string_free(key, FALSE);
}

bool
ch_counter_increment(ChCounter *counter, const char *const *values)
{
    char *key = key_of(counter, values, true);
    uint64_t *number;
    bool has_room = true;

    pthread_mutex_lock(&counter->lock);
    number = g_hash_table_lookup(counter->series, key);
    if (number != NULL) {
        (*number)++;
    } else if (g_hash_table_size(counter->series) < CH_COUNTER_MAX_SERIES) {
        number = g_new(uint64_t, 1);
        *number = 1;
        g_hash_table_insert(counter->series, g_steal_pointer(&key), number);
    } else {
        has_room = false;
    }
    pthread_mutex_unlock(&counter->lock);
    g_free(key);
    return has_room;
}

uint64_t
ch_counter_read(ChCounter *counter, const char *const *values)
{
    g_autofree char *key = key_of(counter, values, true);
    const uint64_t *number;
    uint64_t result;

    pthread_mutex_lock(&counter->lock);
    number = g_hash_table_lookup(counter->series, key);
    result = number != NULL ? *number : 0;
    pthread_mutex_unlock(&counter->lock);
    return result;
}

void
ch_counter_forget(ChCounter *counter, const char *const *first_values)
{
    g_autofree char *prefix = key_of(counter, first_values, false);
    GHashTableIter iter;
    gpointer key;

    pthread_mutex_lock(&counter->lock);
    g_hash_table_iter_init(&iter, counter->series);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        if (g_str_has_prefix(key, prefix))
            g_hash_table_iter_remove(&iter);
    pthread_mutex_unlock(&counter->lock);
}

/* The format's escapes; a key has no line break inside a value. */
static const char *
append_escaped(GString *page, const char *value)
{
    for (; *value != END; value++) {
        if (*value == '\\' || *value == '"')
            g_string_append_c(page, '\\');
        g_string_append_c(page, *value);
    }
    return value + 1;
}

static void
print_series(const ChCounter *counter, GString *page, const char *key, uint64_t number)
{
    g_string_append(page, counter->name);
    for (guint i = 0; i < counter->n_labels; i++) {
        g_string_append_printf(page, "%s%s=\"", i == 0 ? "{" : ",", counter->labels[i]);
        key = append_escaped(page, key);
        g_string_append_c(page, '"');
    }
    g_string_append_printf(page, "} %" G_GUINT64_FORMAT "\n", number);
}

static int
compare_keys(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
ch_counter_print(ChCounter *counter, GString *page)
{
    g_autofree gpointer *keys = NULL;
    guint n_keys;

    pthread_mutex_lock(&counter->lock);
    keys = g_hash_table_get_keys_as_array(counter->series, &n_keys);
    if (n_keys > 0) {
        qsort(keys, n_keys, sizeof(*keys), compare_keys);
        g_string_append_printf(
            page, "# HELP %s %s\n# TYPE %s counter\n", counter->name, counter->help, counter->name);
    }
    for (guint i = 0; i < n_keys; i++) {
        const uint64_t *number = g_hash_table_lookup(counter->series, keys[i]);

        print_series(counter, page, keys[i], *number);
    }
    pthread_mutex_unlock(&counter->lock);
}
