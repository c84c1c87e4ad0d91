/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/controller-seam.h"

static ChObject *
lookup_vmi(gpointer data, const char *key)
{
    const ChControllerSeamData *caches = data;

    return ch_informer_lookup(caches->vmis, key);
}

static ChDomain *
lookup_domain(gpointer data, const char *key)
{
    const ChControllerSeamData *caches = data;
    const ChKnownDomain *found = ch_domain_store_lookup(caches->domains, key);

    return found != NULL ? ch_domain_ref(found->domain) : NULL;
}

static void
forget_domain(gpointer data, const char *key, const char *uid)
{
    const ChControllerSeamData *caches = data;

    ch_domain_store_forget(caches->domains, key, uid);
}

static ChClusterConfig *
peek_config(gpointer data)
{
    const ChControllerSeamData *caches = data;

    return ch_cluster_watch_peek(caches->cluster);
}

static GBytes *
list_plugins(gpointer data)
{
    const ChControllerSeamData *caches = data;

    return ch_plugin_watch_list(caches->plugins);
}

typedef struct {
    const char *uid;
    bool is_found;
} UidSearch;

static void
compare_uid(gpointer data, ChObject *vmi)
{
    UidSearch *search = data;

    search->is_found = search->is_found || g_str_equal(vmi->uid, search->uid);
}

static bool
knows_uid(gpointer data, const char *uid)
{
    const ChControllerSeamData *caches = data;
    UidSearch search = {uid, false};

    ch_informer_foreach(caches->vmis, compare_uid, &search);
    return search.is_found;
}

const ChReconcileSeam ch_controller_seam = {
    .lookup_vmi = lookup_vmi,
    .lookup_domain = lookup_domain,
    .forget_domain = forget_domain,
    .peek_config = peek_config,
    .list_plugins = list_plugins,
    .knows_uid = knows_uid,
};
