/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/vmi-network.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/linux/mac.h"
#include "lib/vmi/nics.h"
#include "local/podrunner/multus.h"
#include "local/podrunner/record.h"

#define DEFAULT_NAME "default" /* of network and interface, as on a cluster */

static const ChJson *
interfaces_of(const ChJson *vmi)
{
    return ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
}

bool
ch_vmi_wants_default_network(const ChJson *vmi)
{
    return ch_json_bool_at(vmi, true, "spec", "domain", "devices", "autoattachPodInterface") &&
           ch_json_length(ch_json_at(vmi, "spec", "networks")) == 0 &&
           ch_json_length(interfaces_of(vmi)) == 0;
}

static void
set_one(ChJson *object, const char *key, ChJson *item /* (transfer full) */)
{
    ChJson *array = ch_json_new_array();

    ch_json_append(array, item);
    ch_json_set(object, key, array);
}

bool
ch_vmi_add_default_network(ChJson *vmi, const char *binding, GError **error)
{
    ChJson *spec = ch_json_ensure_object(vmi, "spec");
    ChJson *devices = ch_json_ensure_object(ch_json_ensure_object(spec, "domain"), "devices");
    ChJson *interface;
    ChJson *network;

    if (binding == NULL || *binding == '\0')
        binding = "bridge";
    if (!g_str_equal(binding, "bridge") && !g_str_equal(binding, "masquerade"))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "the KubeVirt object's defaultNetworkInterface is '%s': only bridge and "
                       "masquerade are possible",
                       binding);
    interface = ch_json_new_object();
    network = ch_json_new_object();
    ch_json_set_string(interface, "name", DEFAULT_NAME);
    ch_json_set(interface, binding, ch_json_new_object());
    ch_json_set_string(network, "name", DEFAULT_NAME);
    ch_json_set(network, "pod", ch_json_new_object());
    set_one(devices, "interfaces", interface);
    set_one(spec, "networks", network);
    return true;
}

/* What becomes names of devices, and words for plugins. */
static bool
check_words(const ChJson *interface, GError **error)
{
    const char *name = ch_json_string_at(interface, "name");
    const char *mac = ch_json_string_at(interface, "macAddress");
    uint8_t bytes[CH_MAC_BYTES];

    if (!ch_nic_name_is_valid(name))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "an interface cannot be called '%s': its name consists of at most %d "
                       "letters, digits, '-' and '_', and begins with a letter or digit",
                       name != NULL ? name : "",
                       CH_NIC_MAX_NAME_BYTES);
    return mac == NULL || *mac == '\0' || ch_mac_parse(mac, bytes) ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "interface '%s': macAddress is not a MAC address: '%.40s'",
                   name,
                   mac);
}

static bool
check_interface(const ChJson *vmi, const ChJson *interface, GError **error)
{
    const char *name = ch_json_string_at(interface, "name");
    const ChJson *network = ch_json_find(ch_json_at(vmi, "spec", "networks"), "name", name);
    const bool is_bridge = ch_json_has(interface, "bridge");

    if (!check_words(interface, error))
        return false;
    if (network == NULL)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "interface '%s' has no network of its name in spec.networks",
                       name);
    if (!is_bridge && !ch_json_has(interface, "masquerade"))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "interface '%s' is neither masquerade nor bridge: nothing else is possible "
                       "on this machine",
                       name);
    if (!is_bridge && !ch_json_has(network, "pod"))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "interface '%s': masquerade is possible with the pod network only",
                       name);
    return true;
}

static bool
check_network(const ChJson *network, GError **error)
{
    const char *name = ch_json_string_at(network, "name");
    const ChJson *multus = ch_json_at(network, "multus");
    g_autofree char *space = NULL;
    g_autofree char *definition = NULL;

    if (name == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "a network of spec.networks has no name");
    if (ch_json_is_object(ch_json_at(network, "pod")))
        return true;
    if (!ch_json_is_object(multus) || ch_json_bool_at(multus, false, "default"))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "network '%s' is neither the pod network ('pod: {}') nor a secondary one "
                       "('multus: {networkName: ...}'): this machine has no others",
                       name);
    return ch_multus_parse_name(
               ch_json_string_at(multus, "networkName"), DEFAULT_NAME, &space, &definition) ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "network '%s': multus.networkName is no NAME or NAMESPACE/NAME",
                   name);
}

/* By its name guest, agent and plugins know it. */
static bool
is_first(const ChJson *list, const ChJson *item, GError **error)
{
    const char *name = ch_json_string_at(item, "name");

    return ch_json_find(list, "name", name) == item ||
           ch_fail(error, CH_ERROR_INVALID, "the VM has two networks or interfaces '%s'", name);
}

bool
ch_vmi_check_networks(const ChJson *vmi, GError **error)
{
    const ChJson *networks = ch_json_at(vmi, "spec", "networks");
    const ChJson *interfaces = interfaces_of(vmi);
    gsize n_pod = 0;

    for (gsize i = 0; i < ch_json_length(networks); i++) {
        const ChJson *network = ch_json_item(networks, i);

        if (!check_network(network, error) || !is_first(networks, network, error))
            return false;
        n_pod += ch_json_is_object(ch_json_at(network, "pod"));
        if (n_pod > 1)
            return ch_fail(error,
                           CH_ERROR_INVALID,
                           "network '%s' is a second pod network: a pod has one",
                           ch_json_string_at(network, "name"));
    }
    if (ch_json_length(networks) - n_pod > CH_MULTUS_MAX_NETWORKS)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "there are more than %d secondary networks",
                       CH_MULTUS_MAX_NETWORKS);
    for (gsize i = 0; i < ch_json_length(interfaces); i++) {
        const ChJson *interface = ch_json_item(interfaces, i);

        if (!check_interface(vmi, interface, error) || !is_first(interfaces, interface, error))
            return false;
    }
    return true;
}

const char *
ch_vmi_pod_network(const ChJson *vmi)
{
    const ChJson *interfaces = interfaces_of(vmi);

    for (gsize i = 0; i < ch_json_length(interfaces); i++) {
        const ChJson *interface = ch_json_item(interfaces, i);
        const char *name = ch_json_string_at(interface, "name");

        if (!ch_nic_is_absent(interface) && name != NULL &&
            ch_json_has(ch_json_find(ch_json_at(vmi, "spec", "networks"), "name", name), "pod"))
            return name;
    }
    return NULL;
}

bool
ch_vmi_needs_network(const ChJson *vmi, const char *state)
{
    g_autoptr(ChJson) attachments = ch_multus_attachments(vmi);

    if (g_strcmp0(state, CH_RECORD_NETWORK_UP) == 0)
        return false;
    return g_strcmp0(state, CH_RECORD_NETWORK_BEGUN) == 0 || ch_vmi_pod_network(vmi) != NULL ||
           ch_json_length(attachments) > 0;
}

/* --- ports of this machine -------------------------------------------------------------------- */

static bool
parse_port(const char *text, uint16_t *out_port)
{
    guint64 port = 0;

    if (!g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT16, &port, NULL))
        return false;
    *out_port = (uint16_t)port;
    return true;
}

/* "8080:80", "5353:53/udp" */
static bool
parse_mapping(char *text, ChHostPort *out_port)
{
    char *slash = strchr(text, '/');
    char *colon;
    const char *protocol = slash != NULL ? slash + 1 : "tcp";

    if (slash != NULL)
        *slash = '\0';
    colon = strchr(text, ':');
    if (colon == NULL)
        return false;
    *colon = '\0';
    out_port->protocol = g_ascii_strcasecmp(protocol, "tcp") == 0   ? "tcp"
                         : g_ascii_strcasecmp(protocol, "udp") == 0 ? "udp"
                                                                    : NULL;
    return out_port->protocol != NULL && parse_port(text, &out_port->host) &&
           parse_port(colon + 1, &out_port->guest);
}

/* A masquerade interface that lists ports lets nothing else in. */
static bool
is_let_in(const ChJson *vmi, const ChHostPort *mapping)
{
    const ChJson *interface = ch_json_item(interfaces_of(vmi), 0);
    const ChJson *ports = ch_json_at(interface, "ports");
    int64_t port = 0;

    if (!ch_json_has(interface, "masquerade") || ch_json_length(ports) == 0)
        return true;
    for (gsize i = 0; i < ch_json_length(ports); i++) {
        const char *protocol = ch_json_string_at(ch_json_item(ports, i), "protocol");

        if (ch_json_int_at(ch_json_item(ports, i), &port, "port") && port == mapping->guest &&
            g_ascii_strcasecmp(protocol != NULL && *protocol != '\0' ? protocol : "tcp",
                               mapping->protocol) == 0)
            return true;
    }
    return false;
}

static bool
has_host_port(const GArray *ports, const ChHostPort *port)
{
    for (guint i = 0; i < ports->len; i++) {
        const ChHostPort *other = &g_array_index(ports, ChHostPort, i);

        if (other->host == port->host && g_str_equal(other->protocol, port->protocol))
            return true;
    }
    return false;
}

static bool
take_mapping(const ChJson *vmi, char *text, GArray *ports, GError **error)
{
    g_autofree char *shown = g_strdup(g_strstrip(text));
    const char *fault = NULL;
    ChHostPort port = {0};

    if (*shown == '\0')
        return true;
    if (!parse_mapping(text, &port))
        fault = "is no HOST-PORT:GUEST-PORT[/tcp|/udp]";
    else if (!is_let_in(vmi, &port))
        fault = "leads to a port that is not among the interface's ports";
    else if (has_host_port(ports, &port))
        fault = "names a port of this machine for the second time";
    if (fault != NULL)
        return ch_fail(
            error, CH_ERROR_INVALID, CH_HOST_PORTS_ANNOTATION ": '%.40s' %s", shown, fault);
    g_array_append_val(ports, port);
    return true;
}

GArray *
ch_vmi_host_ports(const ChJson *vmi, GError **error)
{
    const char *text = ch_json_string_at(vmi, "metadata", "annotations", CH_HOST_PORTS_ANNOTATION);
    g_autoptr(GArray) ports = g_array_new(FALSE, FALSE, sizeof(ChHostPort));
    g_auto(GStrv) words = g_strsplit(text != NULL ? text : "", ",", CH_HOST_PORTS_MAX + 2);

    if (g_strv_length(words) > CH_HOST_PORTS_MAX) {
        ch_fail(error, CH_ERROR_LIMIT, CH_HOST_PORTS_ANNOTATION " has too many ports");
        return NULL;
    }
    for (gsize i = 0; words[i] != NULL; i++) {
        if (!take_mapping(vmi, words[i], ports, error))
            return NULL;
    }
    if (ports->len > 0 && ch_vmi_pod_network(vmi) == NULL) {
        ch_fail(error, CH_ERROR_INVALID, CH_HOST_PORTS_ANNOTATION ": the VM has no interface");
        return NULL;
    }
    return g_steal_pointer(&ports);
}
