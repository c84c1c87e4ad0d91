/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-spec.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/quantity.h"
#include "lib/linux/nft.h"
#include "lib/vmi/nics.h"

#define DEFAULT_CIDR_V4 "10.0.2.0/24"
#define DEFAULT_CIDR_V6 "fd10:0:2::/120"
#define MAX_QUEUES      256
#define MAX_IFACES      64

/* In the order in which they are looked for. */
static const struct {
    const char *member;
    ChNetworkBinding binding; /* INVALID: left out */
} bindings[] = {
    {"bridge", CH_NETWORK_BRIDGE},
    {"masquerade", CH_NETWORK_MASQUERADE},
    {"binding", CH_NETWORK_PLUGIN},
    {"passtBinding", CH_NETWORK_PASST},
    {"sriov", CH_NETWORK_BINDING_INVALID},
};

static void
clear_iface(gpointer data)
{
    ChNetworkIface *iface = data;

    g_array_unref(iface->ports);
}

void
ch_network_spec_free(ChNetworkSpec *spec)
{
    if (spec == NULL)
        return;
    g_array_unref(spec->ifaces);
    g_free(spec);
}

ChNetworkIface *
ch_network_spec_iface(const ChNetworkSpec *spec, guint index)
{
    return &g_array_index(spec->ifaces, ChNetworkIface, index);
}

static bool
is_primary(const ChJson *network)
{
    return ch_json_at(network, "pod") != NULL ||
           ch_json_bool_at(network, false, "multus", "default");
}

static bool
is_secondary(const ChJson *network)
{
    return !is_primary(network) && ch_json_at(network, "multus") != NULL;
}

/* --- queues: 04 §2.3, §8.6 */

static int64_t
n_units(const ChJson *resources, const char *kind)
{
    const char *text = ch_json_string_at(resources, kind, "cpu");
    int64_t n = 0;
    ChQuantity quantity;

    if (text != NULL && ch_quantity_parse(text, &quantity, NULL))
        return ch_quantity_units(&quantity);
    (void)ch_json_int_at(resources, &n, kind, "cpu"); /* a number is a quantity too */
    return n;
}

/* Each factor that is not set counts 1; none set: as many as the CPU limit or request has. */
static int64_t
count_vcpus(const ChJson *domain)
{
    static const char *const factors[] = {"cores", "sockets", "threads"};
    const ChJson *resources = ch_json_at(domain, "resources");
    int64_t product = 1;
    bool has_any = false;

    for (gsize i = 0; i < G_N_ELEMENTS(factors); i++) {
        int64_t n = 0;

        if (!ch_json_int_at(domain, &n, "cpu", factors[i]) || n <= 0)
            continue;
        has_any = true;
        product *= MIN(n, MAX_QUEUES);
    }
    if (has_any)
        return product;
    product = n_units(resources, "limits");
    return product > 0 ? product : n_units(resources, "requests");
}

static bool
is_multi_queue(const ChJson *vmi, const ChJson *json, const ChJson *status)
{
    const ChJson *domain = ch_json_at(vmi, "spec", "domain");
    const char *model = ch_json_string_at(json, "model");
    int64_t n = 0;

    if (model != NULL && model[0] != '\0' && !g_str_equal(model, "virtio"))
        return false;
    if (ch_nic_has_source(status, "domain"))
        return ch_json_int_at(status, &n, "queueCount") && n > 1;
    return ch_json_bool_at(domain, false, "devices", "networkInterfaceMultiqueue") &&
           count_vcpus(domain) > 1;
}

/* --- interfaces */

static const char *
text_or(const char *text, const char *fallback)
{
    return text != NULL && text[0] != '\0' ? text : fallback;
}

/* A single port or a range, by the members with its ends. */
static bool
read_port(ChNetworkIface *iface,
          const ChJson *json,
          const char *first,
          const char *last,
          const char *default_protocol,
          GError **error)
{
    const char *text = text_or(ch_json_string_at(json, "protocol"), default_protocol);
    g_autofree char *protocol = g_ascii_strdown(text, -1);
    ChNetworkPort port = {.protocol = ch_nft_protocol(protocol)};
    int64_t from = 0;
    int64_t to = 0;

    (void)ch_json_int_at(json, &from, first);
    (void)ch_json_int_at(json, &to, last);
    if (port.protocol == 0 || from < 0 || from > UINT16_MAX || to < from || to > UINT16_MAX)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "interface %s: there is no port %s/%" G_GINT64_FORMAT,
                       iface->name,
                       protocol,
                       from < 0 || from > UINT16_MAX ? from : to);
    port.port = (uint16_t)from;
    port.last = (uint16_t)(to > from ? to : 0);
    g_array_append_val(iface->ports, port);
    return true;
}

static bool
read_ports(ChNetworkIface *iface, bool has_ranges, GError **error)
{
    const ChJson *ports = ch_json_at(iface->json, "ports");
    const ChJson *ranges = has_ranges ? ch_json_at(iface->json, "portRanges") : NULL;

    for (gsize i = 0; i < ch_json_length(ports); i++)
        if (!read_port(iface, ch_json_item(ports, i), "port", "port", "tcp", error))
            return false;
    for (gsize i = 0; i < ch_json_length(ranges); i++)
        if (!read_port(iface, ch_json_item(ranges, i), "start", "end", "", error))
            return false;
    return true;
}

static ChNetworkBinding
plugin_binding(const ChJson *json, const ChClusterConfig *config)
{
    const char *name = ch_json_string_at(json, "binding", "name");
    const ChBindingPlugin *plugin =
        config != NULL && name != NULL ? ch_cluster_config_binding(config, name) : NULL;

    return plugin != NULL && g_str_equal(plugin->domain_attachment, "managedTap")
               ? CH_NETWORK_MANAGED_TAP
               : CH_NETWORK_PLUGIN;
}

static bool
read_binding(ChNetworkIface *iface, const ChClusterConfig *config, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(bindings); i++) {
        if (ch_json_at(iface->json, bindings[i].member) == NULL)
            continue;
        iface->binding = bindings[i].binding == CH_NETWORK_PLUGIN
                             ? plugin_binding(iface->json, config)
                             : bindings[i].binding;
        return true;
    }
    return ch_fail(error, CH_ERROR_INVALID, "undefined binding method: interface %s", iface->name);
}

/* Of a network that is neither primary nor secondary the pod's link has no name. */
static void
place(ChNetworkSpec *spec, ChNetworkIface *iface, const ChJson *network)
{
    iface->index = spec->n_seen++;
    iface->is_primary = !spec->has_primary && is_primary(network);
    spec->has_primary = spec->has_primary || iface->is_primary;
    if (is_secondary(network))
        iface->ordinal = ++spec->n_secondary;
}

static bool
check_iface(const ChNetworkSpec *spec,
            const ChNetworkIface *iface,
            const ChJson *network,
            GError **error)
{
    if (spec->ifaces->len >= MAX_IFACES)
        return ch_fail(error, CH_ERROR_INVALID, "more than %d interfaces", MAX_IFACES);
    if (iface->binding == CH_NETWORK_MASQUERADE && ch_json_at(network, "pod") == NULL)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "interface %s: masquerade is for the pod network only",
                       iface->name);
    return true;
}

static bool
read_iface(ChNetworkSpec *spec,
           const ChJson *vmi,
           const ChNetworkChoice *choice,
           const ChClusterConfig *config,
           GError **error)
{
    const ChJson *network = choice->network;
    const ChJson *json = choice->iface;
    const char *name = ch_json_string_at(network, "name");
    const ChJson *status = ch_network_find_named(ch_json_at(vmi, "status", "interfaces"), name);
    ChNetworkIface iface = {.name = name, .json = json};

    if (name == NULL || name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL ||
        strlen(name) > 253)
        return ch_fail(
            error, CH_ERROR_INVALID, "'%s' cannot be a network's name", text_or(name, ""));
    if (json == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "no iface matching with network %s", name);
    place(spec, &iface, network);
    if (!read_binding(&iface, config, error))
        return false;
    if (iface.binding == CH_NETWORK_BINDING_INVALID)
        return true;
    if (!check_iface(spec, &iface, network, error))
        return false;
    iface.is_absent = ch_nic_is_absent(json);
    iface.custom_name = iface.is_primary ? ch_json_string_at(status, "podInterfaceName") : NULL;
    iface.cidr_v4 = text_or(ch_json_string_at(network, "pod", "vmNetworkCIDR"), DEFAULT_CIDR_V4);
    iface.cidr_v6 =
        text_or(ch_json_string_at(network, "pod", "vmIPv6NetworkCIDR"), DEFAULT_CIDR_V6);
    iface.mac = text_or(ch_json_string_at(json, "macAddress"),
                        text_or(ch_json_string_at(status, "mac"), NULL));
    iface.is_multi_queue = is_multi_queue(vmi, json, status);
    iface.ports = g_array_new(FALSE, FALSE, sizeof(ChNetworkPort));
    if (!read_ports(&iface,
                    config != NULL && ch_cluster_config_has_gate(config, "PortRangesSpec"),
                    error)) {
        g_array_unref(iface.ports);
        return false;
    }
    g_array_append_val(spec->ifaces, iface);
    return true;
}

static void
read_options(ChNetworkSpec *spec, const ChJson *vmi)
{
    const char *inject =
        ch_json_string_at(vmi, "metadata", "annotations", "sidecar.istio.io/inject");
    int64_t user = 0;

    spec->is_non_root = (ch_json_int_at(vmi, &user, "status", "runtimeUser") && user != 0) ||
                        ch_json_at(vmi, "metadata", "annotations", "kubevirt.io/nonroot") != NULL;
    spec->is_istio = inject != NULL && g_ascii_strcasecmp(inject, "true") == 0;
    spec->reserves_migration_ports =
        g_strcmp0(ch_json_string_at(vmi, "status", "migrationTransport"), "Unix") != 0;
}

/* What CNI numbered when the pod was made: of a VM that runs, all that it has ever had. The
 * original counts those of the run only, and finds another network's links. */
static void
number_as_of_all(ChNetworkSpec *spec, const ChJson *vmi)
{
    const ChJson *list = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    const ChJson *networks = ch_json_at(vmi, "spec", "networks");
    unsigned n = 0;

    for (gsize i = 0; spec->ifaces->len > 0 && i < ch_json_length(list); i++) {
        const char *name = ch_json_string_at(ch_json_item(list, i), "name");
        const ChJson *network = ch_network_find_named(networks, name);

        if (network == NULL || !is_secondary(network))
            continue;
        n++;
        for (guint j = 0; j < spec->ifaces->len; j++)
            if (g_str_equal(ch_network_spec_iface(spec, j)->name, name))
                ch_network_spec_iface(spec, j)->ordinal = n;
    }
}

ChNetworkSpec *
ch_network_spec_new(const ChJson *vmi,
                    ChNetworkRun run,
                    const ChClusterConfig *config,
                    GError **error)
{
    g_autoptr(GArray) choices = ch_network_filter(vmi, run);
    g_autoptr(ChNetworkSpec) spec = g_new0(ChNetworkSpec, 1);

    spec->ifaces = g_array_new(FALSE, FALSE, sizeof(ChNetworkIface));
    g_array_set_clear_func(spec->ifaces, clear_iface);
    read_options(spec, vmi);
    for (guint i = 0; i < choices->len; i++)
        if (!read_iface(spec, vmi, &g_array_index(choices, ChNetworkChoice, i), config, error))
            return NULL;
    if (run == CH_NETWORK_RUN_UPDATE)
        number_as_of_all(spec, vmi);
    return g_steal_pointer(&spec);
}

/* --- names: 04 §7.1 */

/* "net" and a number, also of a link that stands in for it while it is made. */
static bool
is_ordinal(const char *name)
{
    const char *digits = name + strlen("net");
    gsize n;

    if (!g_str_has_prefix(name, "net"))
        return false;
    n = strspn(digits, "0123456789");
    return n > 0 && (digits[n] == '\0' || g_str_equal(digits + n, "-nic"));
}

static bool
has_ordinals(const ChNetState *seen)
{
    for (guint i = 0; i < seen->links->len; i++)
        if (is_ordinal(g_array_index(seen->links, ChLink, i).name))
            return true;
    return false;
}

static void
hash_name(const char *network, char name[CH_NETWORK_NAME_SIZE])
{
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, network, -1);

    (void)g_snprintf(name, CH_NETWORK_NAME_SIZE, "pod%.11s", hash);
}

static void
name_pod_link(ChNetworkIface *iface, bool by_ordinal)
{
    char *name = iface->names.pod_link;
    const gsize size = sizeof(iface->names.pod_link);

    if (iface->is_primary) {
        g_strlcpy(name, text_or(iface->custom_name, "eth0"), size);
    } else if (iface->ordinal == 0) {
        name[0] = '\0';
    } else if (by_ordinal) {
        (void)g_snprintf(name, size, "net%u", iface->ordinal);
    } else {
        hash_name(iface->name, name);
    }
}

static void
name_others(ChNetworkIface *iface)
{
    ChNetworkNames *names = &iface->names;
    const char *stem = names->pod_link;

    if (g_str_has_prefix(stem, "pod"))
        stem += strlen("pod");
    (void)g_snprintf(names->bridge, sizeof(names->bridge), "k6t-%.27s", stem);
    (void)g_snprintf(names->nic, sizeof(names->nic), "%.27s-nic", stem);
    (void)g_snprintf(names->spare, sizeof(names->spare), "%.27s-new", stem);
    if (iface->is_primary)
        g_strlcpy(names->tap, "tap0", sizeof(names->tap));
    else
        (void)g_snprintf(names->tap,
                         sizeof(names->tap),
                         "tap%.28s",
                         names->pod_link + MIN(strlen(names->pod_link), strlen("pod")));
}

void
ch_network_spec_name(ChNetworkSpec *spec, const ChNetState *seen)
{
    const bool by_ordinal = has_ordinals(seen);

    for (guint i = 0; i < spec->ifaces->len; i++) {
        ChNetworkIface *iface = ch_network_spec_iface(spec, i);

        name_pod_link(iface, by_ordinal);
        name_others(iface);
    }
}

bool
ch_network_fail_missing(const ChNetworkIface *iface, GError **error)
{
    const char *name = iface->names.pod_link;
    char hashed[CH_NETWORK_NAME_SIZE];

    if (iface->is_primary || iface->ordinal == 0)
        return ch_fail(error, CH_ERROR_FAILED, "pod link (%s) is missing", name);
    hash_name(iface->name, hashed);
    return ch_fail(error,
                   CH_ERROR_FAILED,
                   "pod link (%s) is missing: network %s has neither %s nor net%u in the pod",
                   name,
                   iface->name,
                   hashed,
                   iface->ordinal);
}
