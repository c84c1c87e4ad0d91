/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-filter.h"

#include "lib/vmi/nics.h"

const ChJson *
ch_network_find_named(const ChJson *list, const char *name)
{
    return name == NULL ? NULL : ch_json_find(list, "name", name);
}

/* Of several with the name the last counts. */
static const ChJson *
find_status(const ChJson *vmi, const char *name)
{
    const ChJson *list = ch_json_at(vmi, "status", "interfaces");

    for (gsize i = ch_json_length(list); name != NULL && i > 0; i--)
        if (g_strcmp0(ch_json_string_at(ch_json_item(list, i - 1), "name"), name) == 0)
            return ch_json_item(list, i - 1);
    return NULL;
}

typedef bool (*IsChosen)(const ChJson *vmi, const ChJson *iface);

static bool
is_wanted(const ChJson *vmi, const ChJson *iface)
{
    return !ch_nic_is_absent(iface);
}

/* In the pod already, and not in the guest yet. */
static bool
is_to_plug(const ChJson *vmi, const ChJson *iface)
{
    const ChJson *status = find_status(vmi, ch_json_string_at(iface, "name"));

    return !ch_nic_is_absent(iface) && ch_nic_has_source(status, "multus-status") &&
           !ch_nic_has_source(status, "domain");
}

/* No longer in the guest. */
static bool
is_to_unplug(const ChJson *vmi, const ChJson *iface)
{
    const ChJson *status = find_status(vmi, ch_json_string_at(iface, "name"));

    return ch_nic_is_absent(iface) && status != NULL && !ch_nic_has_source(status, "domain");
}

bool
ch_network_awaits_guest(const ChJson *vmi)
{
    const ChJson *list = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    const ChJson *networks = ch_json_at(vmi, "spec", "networks");

    for (gsize i = 0; i < ch_json_length(list); i++) {
        const ChJson *iface = ch_json_item(list, i);
        const char *name = ch_json_string_at(iface, "name");
        const ChJson *multus = ch_json_at(ch_network_find_named(networks, name), "multus");

        if (ch_nic_is_absent(iface) && ch_json_has(iface, "bridge") && multus != NULL &&
            !ch_json_bool_at(multus, false, "default") &&
            ch_nic_has_source(find_status(vmi, name), "domain"))
            return true;
    }
    return false;
}

static void
choose(GArray *choices, const ChJson *vmi, IsChosen is_chosen)
{
    const ChJson *list = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    const ChJson *networks = ch_json_at(vmi, "spec", "networks");

    for (gsize i = 0; i < ch_json_length(list); i++) {
        const ChJson *iface = ch_json_item(list, i);
        ChNetworkChoice choice = {.iface = iface};

        if (!is_chosen(vmi, iface))
            continue;
        choice.network = ch_network_find_named(networks, ch_json_string_at(iface, "name"));
        if (choice.network != NULL)
            g_array_append_val(choices, choice);
    }
}

static void
choose_all_networks(GArray *choices, const ChJson *vmi)
{
    const ChJson *list = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    const ChJson *networks = ch_json_at(vmi, "spec", "networks");

    for (gsize i = 0; i < ch_json_length(networks); i++) {
        const ChJson *network = ch_json_item(networks, i);
        const ChNetworkChoice choice = {
            .network = network,
            .iface = ch_network_find_named(list, ch_json_string_at(network, "name")),
        };

        g_array_append_val(choices, choice);
    }
}

GArray *
ch_network_filter(const ChJson *vmi, ChNetworkRun run)
{
    GArray *choices = g_array_new(FALSE, FALSE, sizeof(ChNetworkChoice));

    switch (run) {
    case CH_NETWORK_RUN_START:
        choose(choices, vmi, is_wanted);
        return choices;
    case CH_NETWORK_RUN_UPDATE:
        choose(choices, vmi, is_to_plug);
        choose(choices, vmi, is_to_unplug);
        return choices;
    case CH_NETWORK_RUN_TARGET:
        choose_all_networks(choices, vmi);
        return choices;
    case CH_NETWORK_RUN_INVALID:
        break;
    }
    g_assert_not_reached();
}
