/* SPDX-License-Identifier: Apache-2.0 */

/*
 * interfaces: the list is made anew from four sources: the domain's devices, the pod's addresses,
 * the guest agent, and what multus said before (02 §7).
 */

#include "handler/reconcile/status-internal.h"

#define MAX_GUEST_ONLY 10  /* a guest can invent interfaces at will */
#define MAX_SHUFFLED   128 /* entries that are compared each with each */

typedef enum {
    SOURCE_DOMAIN = 1u << 0,
    SOURCE_AGENT = 1u << 1,
    SOURCE_MULTUS = 1u << 2,
} Source;

/* In the order in which the API text lists them. */
static const char *const source_texts[] = {"domain", "guest-agent", "multus-status"};

/* Strings are borrowed from the documents of the pass. */
typedef struct {
    const char *name; /* "" for an interface that only the guest knows */
    const char *mac;
    const char *ip;
    GPtrArray *ips; /* owned */
    const char *interface_name;
    const char *link_state;
    int32_t queue_count;
    unsigned sources;
} Nic;

typedef struct {
    const ChStatusPass *pass;
    const ChJson *spec;     /* spec.domain.devices.interfaces */
    const ChJson *previous; /* status.interfaces as it was */
    GPtrArray *nics;        /* Nic, in the order of the result */
} Merge;

static Nic *
nic_new(const char *name, unsigned sources)
{
    Nic *nic = g_new(Nic, 1);

    *nic = (Nic){
        .name = name,
        .mac = "",
        .ip = "",
        .ips = g_ptr_array_new(),
        .interface_name = "",
        .link_state = "",
        .sources = sources,
    };
    return nic;
}

static void
nic_free(void *data)
{
    Nic *nic = data;

    g_ptr_array_unref(nic->ips);
    g_free(nic);
}

/* @out_index: (out) (optional) */
static Nic *
find_by_name(const Merge *merge, const char *name, guint *out_index)
{
    for (guint i = 0; i < merge->nics->len; i++) {
        Nic *nic = merge->nics->pdata[i];

        if (name[0] == '\0' || !g_str_equal(nic->name, name))
            continue;
        if (out_index != NULL)
            *out_index = i;
        return nic;
    }
    return NULL;
}

/* --- the domain's devices --- */

static void
add_domain_nics(Merge *merge)
{
    const GArray *devices = merge->pass->domain->nics;

    for (guint i = 0; i < devices->len; i++) {
        const ChDomainNic *device = &g_array_index(devices, ChDomainNic, i);
        Nic *nic = nic_new(device->name, SOURCE_DOMAIN);

        nic->mac = device->mac;
        nic->queue_count = device->has_queues ? (int32_t)(uint32_t)device->queues : 1;
        nic->link_state = device->link_state != NULL ? device->link_state : "up";
        g_ptr_array_add(merge->nics, nic);
    }
}

/* Passed-through devices tell no MAC: the spec may. */
static void
add_sriov_nics(Merge *merge)
{
    const GPtrArray *devices = merge->pass->domain->host_devices;

    for (guint i = 0; i < devices->len; i++) {
        const char *alias = devices->pdata[i];
        Nic *nic;

        if (!g_str_has_prefix(alias, "sriov-"))
            continue;
        nic = nic_new(alias + strlen("sriov-"), SOURCE_DOMAIN);
        nic->mac = ch_status_text(ch_json_find(merge->spec, "name", nic->name), "macAddress");
        g_ptr_array_add(merge->nics, nic);
    }
}

/* --- the pod's addresses --- */

static void
add_pod_addresses(Merge *merge)
{
    const ChStatusInput *input = merge->pass->input;

    for (gsize i = 0; i < input->n_pod_addresses; i++) {
        const ChPodAddresses *addresses = &input->pod_addresses[i];
        Nic *nic = find_by_name(merge, addresses->network, NULL);

        if (nic == NULL || ch_json_find(merge->spec, "name", addresses->network) == NULL)
            continue;
        nic->ip = addresses->ip != NULL ? addresses->ip : "";
        g_ptr_array_set_size(nic->ips, 0);
        for (gsize j = 0; addresses->ips != NULL && addresses->ips[j] != NULL; j++)
            g_ptr_array_add(nic->ips, (gpointer)addresses->ips[j]);
    }
}

/* --- the guest agent --- */

static void
append_family(GPtrArray *target, const GPtrArray *ips, ChIpFamily family)
{
    for (guint i = 0; i < ips->len; i++)
        if (ch_status_ip_family(ips->pdata[i]) == family)
            g_ptr_array_add(target, ips->pdata[i]);
}

/* Behind masquerade the addresses between guest and pod are nobody's business. */
static GPtrArray *
guest_ips(const Merge *merge, const Nic *nic, const ChGuestNic *guest, bool is_masquerade)
{
    const ChJson *network =
        ch_json_find(ch_json_at(merge->pass->vmi, "spec", "networks"), "name", nic->name);
    GPtrArray *ips = g_ptr_array_new();

    for (const char **text = guest->ips; *text != NULL; text++)
        if (!is_masquerade || !ch_status_ip_is_of_guest_only(*text, network))
            g_ptr_array_add(ips, (gpointer)*text);
    return ips;
}

/* Per family the pod's addresses win, but a guest that has none of it clears it; not so behind
 * masquerade, where the pod answers for it. */
static void
merge_family(GPtrArray *merged,
             const GPtrArray *pod,
             const GPtrArray *guest,
             ChIpFamily family,
             bool is_masquerade)
{
    g_autoptr(GPtrArray) from_pod = g_ptr_array_new();
    g_autoptr(GPtrArray) from_guest = g_ptr_array_new();

    append_family(from_pod, pod, family);
    append_family(from_guest, guest, family);
    if (from_pod->len > 0 && (from_guest->len > 0 || is_masquerade))
        append_family(merged, from_pod, family);
    else
        append_family(merged, from_guest, family);
}

static void
merge_guest_nic(const Merge *merge, Nic *nic, const ChGuestNic *guest)
{
    const bool is_masquerade =
        ch_json_at(ch_json_find(merge->spec, "name", nic->name), "masquerade") != NULL;
    g_autoptr(GPtrArray) ips = guest_ips(merge, nic, guest, is_masquerade);
    GPtrArray *merged = g_ptr_array_new();

    merge_family(merged, nic->ips, ips, CH_IP_V4, is_masquerade);
    merge_family(merged, nic->ips, ips, CH_IP_V6, is_masquerade);
    g_ptr_array_unref(nic->ips);
    nic->ips = merged;
    nic->ip = merged->len > 0 ? merged->pdata[0] : "";
    nic->interface_name = guest->interface_name;
    /* Data that an old launcher merged itself has no interface name. */
    if (guest->interface_name[0] != '\0')
        nic->sources = SOURCE_DOMAIN | SOURCE_AGENT;
}

static void
add_guest_only_nic(Merge *merge, const ChGuestNic *guest)
{
    Nic *nic = nic_new("", SOURCE_AGENT);

    nic->mac = guest->mac;
    nic->ip = guest->ip;
    nic->interface_name = guest->interface_name;
    for (const char **text = guest->ips; *text != NULL; text++)
        g_ptr_array_add(nic->ips, (gpointer)*text);
    g_ptr_array_add(merge->nics, nic);
}

/* A spec may write in capitals what the guest does not. */
static Nic *
find_by_mac(const Merge *merge, const char *mac)
{
    for (guint i = 0; i < merge->nics->len; i++) {
        Nic *nic = merge->nics->pdata[i];

        if (g_ascii_strcasecmp(nic->mac, mac) == 0)
            return nic;
    }
    return NULL;
}

static void
add_guest_nics(Merge *merge)
{
    const GArray *guests = merge->pass->domain->guest_nics;
    unsigned n_guest_only = 0;

    for (guint i = 0; i < guests->len; i++) {
        const ChGuestNic *guest = &g_array_index(guests, ChGuestNic, i);
        Nic *nic = find_by_mac(merge, guest->mac);

        if (nic != NULL)
            merge_guest_nic(merge, nic, guest);
        else if (n_guest_only++ < MAX_GUEST_ONLY)
            add_guest_only_nic(merge, guest);
    }
}

/* --- primary and multus --- */

static const char *
primary_name(const ChStatusPass *pass)
{
    const ChJson *networks = ch_json_at(pass->vmi, "spec", "networks");

    for (gsize i = 0; i < ch_json_length(networks); i++)
        if (ch_json_at(ch_json_item(networks, i), "pod") != NULL)
            return ch_status_text(ch_json_item(networks, i), "name");
    return "";
}

/* kubectl's column shows interfaces[0]. */
static void
put_primary_first(Merge *merge)
{
    const char *name = primary_name(merge->pass);
    guint index = 0;
    Nic *nic = find_by_name(merge, name, &index);

    if (nic == NULL && name[0] != '\0' && ch_json_find(merge->previous, "name", name) != NULL)
        nic = nic_new(name, 0);
    else if (nic != NULL)
        nic = g_ptr_array_steal_index(merge->nics, index);
    if (nic != NULL)
        g_ptr_array_insert(merge->nics, 0, nic);
}

static bool
was_seen_by_multus(const ChJson *entry)
{
    g_auto(GStrv) tokens = g_strsplit(ch_status_text(entry, "infoSource"), ", ", -1);

    return g_strv_contains((const char *const *)tokens, "multus-status");
}

/* In the order of the spec: upstream walks a map here, and writes when the order flaps. */
static void
add_multus(Merge *merge)
{
    for (guint i = 0; i < merge->nics->len; i++) {
        Nic *nic = merge->nics->pdata[i];

        if (nic->name[0] != '\0' &&
            was_seen_by_multus(ch_json_find(merge->previous, "name", nic->name)))
            nic->sources |= SOURCE_MULTUS;
    }
    for (gsize i = 0; i < ch_json_length(merge->spec); i++) {
        const char *name = ch_status_text(ch_json_item(merge->spec, i), "name");

        if (name[0] != '\0' && find_by_name(merge, name, NULL) == NULL &&
            was_seen_by_multus(ch_json_find(merge->previous, "name", name)))
            g_ptr_array_add(merge->nics, nic_new(name, SOURCE_MULTUS));
    }
}

/* --- the list --- */

static void
set_sources(ChJson *entry, unsigned sources)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(source_texts); i++)
        if (sources & (1u << i))
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", source_texts[i]);
    ch_status_set_text(entry, "infoSource", text->str);
}

static ChJson *
print_ips(const GPtrArray *ips)
{
    ChJson *list = ch_json_new_array();

    for (guint i = 0; i < ips->len; i++)
        ch_json_append(list, ch_json_new_string(ips->pdata[i]));
    return list;
}

/* Starts from the previous entry of the name: it carries podInterfaceName, and what we do not
 * know. */
static ChJson *
print_nic(const Merge *merge, const Nic *nic)
{
    const ChJson *previous =
        nic->name[0] != '\0' ? ch_json_find(merge->previous, "name", nic->name) : NULL;
    ChJson *entry = previous != NULL ? ch_json_dup(previous) : ch_json_new_object();

    ch_status_set_text(entry, "name", nic->name);
    ch_status_set_text(entry, "mac", nic->mac);
    ch_status_set_text(entry, "ipAddress", nic->ip);
    ch_json_remove(entry, "ipAddresses");
    if (nic->ips->len > 0)
        ch_json_set(entry, "ipAddresses", print_ips(nic->ips));
    ch_status_set_text(entry, "interfaceName", nic->interface_name);
    set_sources(entry, nic->sources);
    ch_json_remove(entry, "queueCount");
    if (nic->queue_count != 0)
        ch_json_set_int(entry, "queueCount", nic->queue_count);
    ch_status_set_text(entry, "linkState", nic->link_state);
    return entry;
}

static bool
has_equal_item(const ChJson *list, const ChJson *item)
{
    for (gsize i = 0; i < ch_json_length(list); i++)
        if (ch_json_equal(ch_json_item(list, i), item))
            return true;
    return false;
}

/* The same entries in another order, as other writers of the list may leave them, are no news; the
 * first one is shown in columns. */
static bool
is_same_but_for_order(const ChJson *a, const ChJson *b)
{
    const gsize n = ch_json_length(a);

    if (n != ch_json_length(b) || n == 0 || n > MAX_SHUFFLED ||
        !ch_json_equal(ch_json_item(a, 0), ch_json_item(b, 0)))
        return false;
    for (gsize i = 1; i < n; i++)
        if (!has_equal_item(a, ch_json_item(b, i)) || !has_equal_item(b, ch_json_item(a, i)))
            return false;
    return true;
}

static void
store(ChStatusPass *pass, const Merge *merge)
{
    ChJson *list;

    if (merge->nics->len == 0) {
        ch_json_remove(pass->status, "interfaces");
        return;
    }
    list = ch_json_new_array();
    for (guint i = 0; i < merge->nics->len; i++)
        ch_json_append(list, print_nic(merge, merge->nics->pdata[i]));
    if (is_same_but_for_order(merge->previous, list))
        ch_json_unref(list);
    else
        ch_json_set(pass->status, "interfaces", list);
}

void
ch_status_interfaces(ChStatusPass *pass)
{
    g_autoptr(GPtrArray) nics = g_ptr_array_new_with_free_func(nic_free);
    Merge merge = {
        .pass = pass,
        .spec = ch_json_at(pass->vmi, "spec", "domain", "devices", "interfaces"),
        /* the document as read: the new one's list is replaced while this one is still read */
        .previous = ch_json_at(pass->old.document, "status", "interfaces"),
        .nics = nics,
    };

    if (pass->domain == NULL)
        return;
    add_domain_nics(&merge);
    add_sriov_nics(&merge);
    add_pod_addresses(&merge);
    add_guest_nics(&merge);
    put_primary_first(&merge);
    add_multus(&merge);
    store(pass, &merge);
}
