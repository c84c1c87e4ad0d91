/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/sriov-plug.h"

#include "lib/base/time.h"
#include "lib/vmi/nics.h"

#define FIRST_STEP_US (3 * CH_SECOND_US)
#define MAX_STEP_US   (600 * CH_SECOND_US)
#define LIFETIME_US   (5 * 3600 * CH_SECOND_US)

typedef struct {
    int64_t created_us;
    int64_t held_until_us; /* exclusive; 0: not tried yet */
    int64_t step_us;       /* by which the next try puts off the one after it */
} Plug;

struct ChSriovPlugs {
    GHashTable *plugs; /* UID (owned) -> Plug (owned) */
};

static bool
is_sriov(const ChJson *vmi, const char *name)
{
    const ChJson *list = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");

    for (gsize i = 0; i < ch_json_length(list); i++) {
        const ChJson *iface = ch_json_item(list, i);

        if (ch_json_at(iface, "sriov") != NULL &&
            g_strcmp0(ch_json_string_at(iface, "name"), name) == 0)
            return true;
    }
    return false;
}

bool
ch_sriov_plug_is_due(const ChJson *vmi)
{
    const ChJson *list = ch_json_at(vmi, "status", "interfaces");

    for (gsize i = 0; i < ch_json_length(list); i++) {
        const ChJson *entry = ch_json_item(list, i);
        const char *name = ch_json_string_at(entry, "name");

        if (name != NULL && is_sriov(vmi, name) && ch_nic_has_source(entry, "multus-status") &&
            !ch_nic_has_source(entry, "domain"))
            return true;
    }
    return false;
}

ChSriovPlugs *
ch_sriov_plugs_new(void)
{
    ChSriovPlugs *plugs = g_new(ChSriovPlugs, 1);

    plugs->plugs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return plugs;
}

void
ch_sriov_plugs_free(ChSriovPlugs *plugs)
{
    if (plugs == NULL)
        return;
    g_hash_table_unref(plugs->plugs);
    g_free(plugs);
}

int64_t
ch_sriov_plugs_ask(ChSriovPlugs *plugs, const char *uid, int64_t now_us)
{
    Plug *plug = g_hash_table_lookup(plugs->plugs, uid);

    if (plug == NULL) {
        plug = g_new(Plug, 1);
        *plug = (Plug){.created_us = now_us, .step_us = FIRST_STEP_US};
        g_hash_table_insert(plugs->plugs, g_strdup(uid), plug);
    }
    if (now_us >= plug->created_us + LIFETIME_US)
        return -1;
    return plug->held_until_us == 0 ? 0 : MAX(plug->held_until_us + 1 - now_us, 0);
}

void
ch_sriov_plugs_tried(ChSriovPlugs *plugs, const char *uid, int64_t now_us)
{
    Plug *plug = g_hash_table_lookup(plugs->plugs, uid);

    if (plug == NULL)
        return;
    plug->held_until_us = now_us + plug->step_us;
    plug->step_us = MIN(plug->step_us / 5 * 9, MAX_STEP_US);
}

void
ch_sriov_plugs_forget(ChSriovPlugs *plugs, const char *uid)
{
    g_hash_table_remove(plugs->plugs, uid);
}
