/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/network-memory.h"

#define PASST_BYTES (INT64_C(250) << 20)

/* As in the KubeVirt object, whose check lets pass what is no quantity. */
static int64_t
plugin_bytes(const ChBindingPlugin *plugin)
{
    g_autoptr(ChJson) overhead =
        plugin->compute_overhead != NULL ? ch_json_parse(plugin->compute_overhead, -1, NULL) : NULL;
    const ChJson *requests = ch_json_at(overhead, "requests");
    const char *text = ch_json_string_at(requests, "memory");
    int64_t n_bytes = 0;
    ChQuantity quantity;

    if (text != NULL && ch_quantity_parse(text, &quantity, NULL))
        n_bytes = ch_quantity_units(&quantity);
    else
        (void)ch_json_int_at(requests, &n_bytes, "memory"); /* a number is a quantity too */
    return MAX(n_bytes, 0);
}

static int64_t
add(int64_t a, int64_t b)
{
    return a > G_MAXINT64 - b ? G_MAXINT64 : a + b;
}

int64_t
ch_network_memory(const ChClusterConfig *config, const ChJson *vmi)
{
    const ChJson *interfaces = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    g_autoptr(GHashTable) counted = g_hash_table_new(NULL, NULL);
    bool has_passt = false;
    int64_t n_bytes = 0;

    for (gsize i = 0; i < ch_json_length(interfaces); i++) {
        const ChJson *interface = ch_json_item(interfaces, i);
        const char *name = ch_json_string_at(interface, "binding", "name");
        const ChBindingPlugin *plugin =
            name != NULL ? ch_cluster_config_binding(config, name) : NULL;

        has_passt = has_passt || ch_json_at(interface, "passtBinding") != NULL;
        if (plugin != NULL && g_hash_table_add(counted, (gpointer)plugin))
            n_bytes = add(n_bytes, plugin_bytes(plugin));
    }
    return has_passt ? add(n_bytes, PASST_BYTES) : n_bytes;
}
