/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/domain-store.h"

#include <stdatomic.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "lib/kube/names.h"

typedef struct {
    ChKnownDomain domain;
    atomic_int n_refs;
} Counted;

struct ChDomainStore {
    GHashTable *domains; /* key (borrowed from the value) -> ChKnownDomain, owned */
    void (*on_change)(gpointer data, const char *key);
    gpointer data;
};

static ChKnownDomain *
known_new(ChDomain *domain /* (transfer full) */)
{
    Counted *counted = g_new0(Counted, 1);

    atomic_init(&counted->n_refs, 1);
    counted->domain = (ChKnownDomain){g_strdup_printf("%s/%s", domain->namespace_, domain->name),
                                      domain->uid,
                                      domain->status_text,
                                      domain};
    return &counted->domain;
}

ChKnownDomain *
ch_known_domain_new(const char *json, gsize length, GError **error)
{
    g_autoptr(ChDomain) domain = ch_domain_parse(json, (gssize)length, error);

    if (domain == NULL)
        return NULL;
    if (!ch_name_is_dns_subdomain(domain->namespace_) || !ch_name_is_dns_subdomain(domain->name)) {
        ch_fail(error,
                CH_ERROR_INVALID,
                "domain '%.64s/%.64s': no namespace and name of a VMI",
                domain->namespace_,
                domain->name);
        return NULL;
    }
    return known_new(g_steal_pointer(&domain));
}

ChKnownDomain *
ch_known_domain_new_minimal(const char *namespace_,
                            const char *name,
                            const char *uid,
                            const char *owner_uid,
                            ChKnownDomainKind kind,
                            int64_t wall_us)
{
    g_autoptr(ChJson) document = ch_json_new_object();
    g_autofree char *deletion = ch_time_format(wall_us);
    g_autofree char *spec_name = g_strdup_printf("%s_%s", namespace_, name);
    const char *status = kind == CH_KNOWN_DOMAIN_GONE ? "" : "Unknown";
    ChJson *meta, *spec, *state;
    g_autofree char *text = NULL;
    ChDomain *domain;
    gsize length;

    ch_json_set_string(document, "kind", "Domain");
    ch_json_set_string(document, "apiVersion", "1.2.2");
    meta = ch_json_ensure_object(document, "ObjectMeta");
    ch_json_set_string(meta, "name", name);
    ch_json_set_string(meta, "namespace", namespace_);
    ch_json_set_string(meta, "uid", uid);
    if (kind == CH_KNOWN_DOMAIN_GONE)
        ch_json_set_string(meta, "deletionTimestamp", deletion);
    spec = ch_json_ensure_object(document, "Spec");
    ch_json_set_string(spec, "Name", spec_name);
    ch_json_set_string(ch_json_ensure_object(ch_json_ensure_object(spec, "Metadata"), "KubeVirt"),
                       "UID",
                       owner_uid);
    state = ch_json_ensure_object(document, "Status");
    ch_json_set_string(state, "Status", status);
    if (kind == CH_KNOWN_DOMAIN_AWAITED)
        ch_json_set_string(state, "Reason", CH_DOMAIN_REASON_AWAITED);
    text = ch_json_print(document, &length);
    domain = ch_domain_parse(text, (gssize)length, NULL);
    g_assert(domain != NULL); /* it is our own */
    return known_new(domain);
}

bool
ch_known_domain_is_of(const ChKnownDomain *domain, const char *key, const char *uid)
{
    return g_str_equal(domain->key, key) &&
           (domain->uid[0] == '\0' || g_str_equal(domain->uid, uid));
}

ChKnownDomain *
ch_known_domain_ref(ChKnownDomain *domain)
{
    atomic_fetch_add(&((Counted *)domain)->n_refs, 1);
    return domain;
}

void
ch_known_domain_unref(ChKnownDomain *domain)
{
    if (domain == NULL || atomic_fetch_sub(&((Counted *)domain)->n_refs, 1) > 1)
        return;
    g_free(domain->key);
    ch_domain_unref(domain->domain);
    g_free(domain);
}

static void
known_unref(gpointer domain)
{
    ch_known_domain_unref(domain);
}

ChDomainStore *
ch_domain_store_new(void (*on_change)(gpointer data, const char *key), gpointer data)
{
    ChDomainStore *store = g_new0(ChDomainStore, 1);

    store->domains = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, known_unref);
    store->on_change = on_change;
    store->data = data;
    return store;
}

void
ch_domain_store_free(ChDomainStore *store)
{
    if (store == NULL)
        return;
    g_hash_table_unref(store->domains);
    g_free(store);
}

void
ch_domain_store_put(ChDomainStore *store, ChKnownDomain *domain)
{
    g_hash_table_replace(store->domains, domain->key, ch_known_domain_ref(domain));
    store->on_change(store->data, domain->key);
}

void
ch_domain_store_remove(ChDomainStore *store, const char *key)
{
    g_autofree char *kept = g_strdup(key); /* @key may be the entry's own */

    if (g_hash_table_remove(store->domains, kept))
        store->on_change(store->data, kept);
}

void
ch_domain_store_forget(ChDomainStore *store, const char *key, const char *uid)
{
    const ChKnownDomain *domain = ch_domain_store_lookup(store, key);

    if (domain != NULL && ch_known_domain_is_of(domain, key, uid))
        g_hash_table_remove(store->domains, key);
}

ChKnownDomain *
ch_domain_store_lookup(const ChDomainStore *store, const char *key)
{
    return g_hash_table_lookup(store->domains, key);
}

guint
ch_domain_store_count(const ChDomainStore *store)
{
    return g_hash_table_size(store->domains);
}

void
ch_domain_store_foreach(const ChDomainStore *store,
                        void (*func)(gpointer data, ChKnownDomain *domain),
                        gpointer data)
{
    GHashTableIter iter;
    gpointer domain;

    g_hash_table_iter_init(&iter, store->domains);
    while (g_hash_table_iter_next(&iter, NULL, &domain))
        func(data, domain);
}
