/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/guest-panics.h"

#include <pthread.h>

struct ChGuestPanics {
    ChCounter *counter;
    pthread_mutex_t lock;
    GHashTable *seen; /* VMI UID (owned) -> int64_t (owned): the count that was seen last */
};

ChGuestPanics *
ch_guest_panics_new(void)
{
    static const char *const labels[] = {"namespace", "name", "type", "bugcheck_code", NULL};
    ChGuestPanics *panics = g_new0(ChGuestPanics, 1);

    panics->counter = ch_counter_new("kubevirt_vmi_guest_os_panic_total",
                                     "Total number of guest OS panic events detected, partitioned "
                                     "by VMI and panic type.",
                                     labels);
    pthread_mutex_init(&panics->lock, NULL);
    panics->seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return panics;
}

void
ch_guest_panics_free(ChGuestPanics *panics)
{
    if (panics == NULL)
        return;
    ch_counter_free(panics->counter);
    pthread_mutex_destroy(&panics->lock);
    g_hash_table_unref(panics->seen);
    g_free(panics);
}

/* A panic of count 0 is none; the same count again is the same panic. */
static bool
is_news(ChGuestPanics *panics, const char *uid, int64_t count)
{
    const int64_t *last;
    bool result;

    pthread_mutex_lock(&panics->lock);
    last = g_hash_table_lookup(panics->seen, uid);
    result = count > (last != NULL ? *last : 0);
    if (result)
        g_hash_table_replace(panics->seen, g_strdup(uid), g_memdup2(&count, sizeof(count)));
    pthread_mutex_unlock(&panics->lock);
    return result;
}

void
ch_guest_panics_note(ChGuestPanics *panics,
                     const char *namespace_,
                     const char *name,
                     const char *uid,
                     const ChDomain *domain)
{
    g_autofree char *code = NULL;
    const char *type = "unknown";

    domain = ch_domain_live(domain);
    if (domain == NULL || !is_news(panics, uid, domain->panic_count))
        return;
    if (domain->panic.exists && domain->panic.type[0] != '\0')
        type = domain->panic.type;
    code = domain->panic.arg1 != 0
               ? g_strdup_printf("0x%" G_GINT64_MODIFIER "x", domain->panic.arg1)
               : g_strdup("unknown");
    /* Beyond the limit of series a panic is not told: a launcher that invents panic codes. */
    (void)ch_counter_increment(panics->counter,
                               (const char *const[]){namespace_, name, type, code, NULL});
}

void
ch_guest_panics_forget(ChGuestPanics *panics, const char *uid)
{
    pthread_mutex_lock(&panics->lock);
    g_hash_table_remove(panics->seen, uid);
    pthread_mutex_unlock(&panics->lock);
}

ChCounter *
ch_guest_panics_peek_counter(const ChGuestPanics *panics)
{
    return panics->counter;
}
