/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/pod-addresses.h"

#include "handler/pod/network-cache.h"

#define MAX_IPS 2 /* one of each family is what is noted */

struct ChPodAddressList {
    GArray *entries; /* ChPodAddresses */
    GPtrArray *ips;  /* owned arrays of borrowed texts: the entries' `ips` */
    GStringChunk *texts;
};

static const char *
keep(ChPodAddressList *list, const char *text)
{
    return text != NULL ? g_string_chunk_insert_const(list->texts, text) : NULL;
}

static void
add(ChPodAddressList *list, const char *network, const ChJson *document)
{
    const ChJson *ips = ch_json_at(document, "podIPs");
    const gsize n = MIN(ch_json_length(ips), MAX_IPS);
    const char **kept = g_new0(const char *, MAX_IPS + 1);
    ChPodAddresses entry = {
        .network = network, .ip = keep(list, ch_json_string_at(document, "podIP")), .ips = kept};

    for (gsize i = 0; i < n; i++)
        kept[i] = keep(list, ch_json_as_string(ch_json_item(ips, i)));
    g_ptr_array_add(list->ips, kept);
    g_array_append_val(list->entries, entry);
}

ChPodAddressList *
ch_pod_address_list_load(const char *private_dir, const ChJson *vmi)
{
    const ChJson *ifaces = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    const char *uid = ch_json_string_at(vmi, "metadata", "uid");
    ChPodAddressList *list = g_new0(ChPodAddressList, 1);

    list->entries = g_array_new(FALSE, FALSE, sizeof(ChPodAddresses));
    list->ips = g_ptr_array_new_with_free_func(g_free);
    list->texts = g_string_chunk_new(64);
    for (gsize i = 0; uid != NULL && i < ch_json_length(ifaces); i++) {
        const char *name = ch_json_string_at(ch_json_item(ifaces, i), "name");
        g_autoptr(ChJson) document =
            name != NULL ? ch_network_cache_load(private_dir, uid, name, NULL) : NULL;

        if (ch_json_string_at(document, "podIP") != NULL ||
            ch_json_length(ch_json_at(document, "podIPs")) > 0)
            add(list, name, document);
    }
    return list;
}

void
ch_pod_address_list_free(ChPodAddressList *list)
{
    if (list == NULL)
        return;
    g_array_unref(list->entries);
    g_ptr_array_unref(list->ips);
    g_string_chunk_free(list->texts);
    g_free(list);
}

const ChPodAddresses *
ch_pod_address_list_peek(const ChPodAddressList *list, gsize *out_n)
{
    *out_n = list->entries->len;
    return (const ChPodAddresses *)(gpointer)list->entries->data;
}
