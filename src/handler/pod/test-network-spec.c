/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-spec.h"

#include <netinet/in.h>
#include <string.h>

#include "lib/base/errors.h"

/* %s: interfaces, networks, further members of devices, of domain, of status, annotations */
#define VMI                                                                                        \
    "{\"metadata\":{\"annotations\":{%s}},\"spec\":{\"domain\":{\"devices\":{\"interfaces\":[%s]"  \
    "%s}%s},\"networks\":[%s]},\"status\":{\"runtimeUser\":107%s}}"
#define POD "{\"name\":\"default\",\"pod\":{}}"

typedef struct {
    const char *annotations, *ifaces, *devices, *domain, *networks, *status;
} Parts;

static const char *
or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static ChJson *
make_vmi(const Parts *parts)
{
    g_autofree char *text = g_strdup_printf(VMI,
                                            or_empty(parts->annotations),
                                            or_empty(parts->ifaces),
                                            or_empty(parts->devices),
                                            or_empty(parts->domain),
                                            parts->networks != NULL ? parts->networks : POD,
                                            or_empty(parts->status));
    ChJson *vmi = ch_json_parse(text, -1, NULL);

    g_assert_nonnull(vmi);
    return vmi;
}

/* The configuration with some plugins and one gate. */
static ChClusterConfig *
make_config(void)
{
    g_autoptr(ChJson) kubevirt = ch_json_parse(
        "{\"metadata\":{\"name\":\"kubevirt\"},\"spec\":{\"configuration\":{"
        "\"developerConfiguration\":{\"featureGates\":[\"PortRangesSpec\"]},"
        "\"network\":{\"binding\":{\"ours\":{\"domainAttachmentType\":\"managedTap\"},"
        "\"theirs\":{\"domainAttachmentType\":\"tap\"},\"bare\":{}}}}}}",
        -1,
        NULL);
    g_autoptr(GError) error = NULL;
    ChClusterConfig *config = ch_cluster_config_parse(kubevirt, "node01", &error);

    g_assert_no_error(error);
    return config;
}

/* The one interface of a VMI. @vmi: (out): to be freed after it */
static ChNetworkSpec *
make_spec(const Parts *parts, ChJson **vmi)
{
    g_autoptr(GError) error = NULL;
    ChNetworkSpec *spec;

    *vmi = make_vmi(parts);
    spec = ch_network_spec_new(*vmi, CH_NETWORK_RUN_START, NULL, &error);
    g_assert_no_error(error);
    return spec;
}

static void
test_defaults(void)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChNetworkSpec) spec =
        make_spec(&(Parts){.ifaces = "{\"name\":\"default\",\"masquerade\":{}}"}, &vmi);
    const ChNetworkIface *iface = ch_network_spec_iface(spec, 0);

    g_assert_cmpuint(spec->ifaces->len, ==, 1);
    g_assert_true(spec->is_non_root && spec->reserves_migration_ports);
    g_assert_false(spec->is_istio);
    g_assert_cmpint(iface->binding, ==, CH_NETWORK_MASQUERADE);
    g_assert_cmpstr(iface->cidr_v4, ==, "10.0.2.0/24");
    g_assert_cmpstr(iface->cidr_v6, ==, "fd10:0:2::/120");
    g_assert_null(iface->mac);
    g_assert_false(iface->is_multi_queue);
    g_assert_cmpuint(iface->ports->len, ==, 0);
}

static void
test_options(void)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChNetworkSpec) spec = make_spec(
        &(Parts){.annotations = "\"sidecar.istio.io/inject\":\"TRUE\"",
                 .ifaces =
                     "{\"name\":\"default\",\"bridge\":{},\"macAddress\":\"02:00:00:00:00:01\","
                     "\"ports\":[{\"port\":80},{\"port\":53,\"protocol\":\"UDP\"}]}",
                 .networks = "{\"name\":\"default\",\"pod\":{\"vmNetworkCIDR\":\"10.9.0.0/16\"}}",
                 .status = ",\"migrationTransport\":\"Unix\",\"interfaces\":[{\"name\":\"default\","
                           "\"mac\":\"02:00:00:00:00:02\",\"podInterfaceName\":\"cust\"}]"},
        &vmi);
    const ChNetworkIface *iface = ch_network_spec_iface(spec, 0);

    g_assert_true(spec->is_istio);
    g_assert_false(spec->reserves_migration_ports);
    g_assert_cmpint(iface->binding, ==, CH_NETWORK_BRIDGE);
    g_assert_cmpstr(iface->cidr_v4, ==, "10.9.0.0/16");
    g_assert_cmpstr(iface->mac, ==, "02:00:00:00:00:01");
    g_assert_cmpstr(iface->custom_name, ==, "cust");
    g_assert_cmpuint(iface->ports->len, ==, 2);
    g_assert_cmpuint(g_array_index(iface->ports, ChNetworkPort, 0).protocol, ==, IPPROTO_TCP);
    g_assert_cmpuint(g_array_index(iface->ports, ChNetworkPort, 1).protocol, ==, IPPROTO_UDP);
    g_assert_cmpuint(g_array_index(iface->ports, ChNetworkPort, 1).port, ==, 53);
}

/* spec:04-23.1#16 A migrated VM keeps its MAC: the status's counts before the new pod's. */
static void
test_mac_of_status(void)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChNetworkSpec) spec = make_spec(
        &(Parts){.ifaces = "{\"name\":\"default\",\"bridge\":{}}",
                 .status =
                     ",\"interfaces\":[{\"name\":\"default\",\"mac\":\"02:00:00:00:00:02\"}]"},
        &vmi);

    g_assert_cmpstr(ch_network_spec_iface(spec, 0)->mac, ==, "02:00:00:00:00:02");
}

/* spec:04-23.9#9 A plugin's tap is made here only when it asks for that; SR-IOV is left out. */
static void
test_bindings(void)
{
    static const struct {
        const char *member;
        ChNetworkBinding binding;
    } cases[] = {
        {"\"bridge\":{}", CH_NETWORK_BRIDGE},
        {"\"masquerade\":{}", CH_NETWORK_MASQUERADE},
        {"\"passtBinding\":{}", CH_NETWORK_PASST},
        {"\"binding\":{\"name\":\"ours\"}", CH_NETWORK_MANAGED_TAP},
        {"\"binding\":{\"name\":\"theirs\"}", CH_NETWORK_PLUGIN},
        {"\"binding\":{\"name\":\"bare\"}", CH_NETWORK_PLUGIN},
        {"\"binding\":{\"name\":\"unknown\"}", CH_NETWORK_PLUGIN},
        {"\"binding\":{}", CH_NETWORK_PLUGIN},
        {"\"bridge\":{},\"passtBinding\":{}", CH_NETWORK_BRIDGE},
        {"\"sriov\":{}", CH_NETWORK_BINDING_INVALID},
    };
    g_autoptr(ChClusterConfig) config = make_config();

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *iface = g_strdup_printf("{\"name\":\"default\",%s}", cases[i].member);
        g_autoptr(ChJson) vmi = make_vmi(&(Parts){.ifaces = iface});
        g_autoptr(GError) error = NULL;
        g_autoptr(ChNetworkSpec) spec =
            ch_network_spec_new(vmi, CH_NETWORK_RUN_START, config, &error);

        g_assert_no_error(error);
        if (cases[i].binding == CH_NETWORK_BINDING_INVALID)
            g_assert_cmpuint(spec->ifaces->len, ==, 0);
        else
            g_assert_cmpint(ch_network_spec_iface(spec, 0)->binding, ==, cases[i].binding);
    }
}

/* spec:04-23.3#4 spec:04-23.3#5 Ports come first; without the gate there are no ranges. */
static void
test_ranges(void)
{
    g_autoptr(ChClusterConfig) config = make_config();
    g_autoptr(ChJson) vmi = make_vmi(
        &(Parts){.ifaces = "{\"name\":\"default\",\"masquerade\":{},\"portRanges\":[{\"protocol\":"
                           "\"TCP\",\"start\":80,\"end\":81},{\"protocol\":\"UDP\",\"start\":9,"
                           "\"end\":9}],\"ports\":[{\"port\":22}]}"});
    g_autoptr(ChNetworkSpec) on = ch_network_spec_new(vmi, CH_NETWORK_RUN_START, config, NULL);
    g_autoptr(ChNetworkSpec) off = ch_network_spec_new(vmi, CH_NETWORK_RUN_START, NULL, NULL);
    const ChNetworkPort expected[] = {
        {IPPROTO_TCP, 22, 0}, {IPPROTO_TCP, 80, 81}, {IPPROTO_UDP, 9, 0}};
    const GArray *ports = ch_network_spec_iface(on, 0)->ports;

    g_assert_cmpuint(ports->len, ==, G_N_ELEMENTS(expected));
    for (guint i = 0; i < ports->len; i++) {
        const ChNetworkPort *port = &g_array_index(ports, ChNetworkPort, i);

        g_assert_cmpuint(port->protocol, ==, expected[i].protocol);
        g_assert_cmpuint(port->port, ==, expected[i].port);
        g_assert_cmpuint(port->last, ==, expected[i].last);
    }
    g_assert_cmpuint(ch_network_spec_iface(off, 0)->ports->len, ==, 1);
}

#define MULTUS(name) "{\"name\":\"" name "\",\"multus\":{}}"

/* While the VM runs: numbered as CNI did for all of them, and the first of this run. */
static void
test_update(void)
{
    g_autoptr(ChJson) vmi = make_vmi(&(Parts){
        .ifaces = "{\"name\":\"default\",\"masquerade\":{}},{\"name\":\"a\",\"bridge\":{}},"
                  "{\"name\":\"b\",\"bridge\":{},\"state\":\"absent\"},"
                  "{\"name\":\"c\",\"bridge\":{}}",
        .networks = POD "," MULTUS("a") "," MULTUS("b") "," MULTUS("c"),
        .status = ",\"interfaces\":[{\"name\":\"default\",\"infoSource\":\"domain\"},"
                  "{\"name\":\"a\",\"infoSource\":\"domain, multus-status\"},"
                  "{\"name\":\"b\",\"infoSource\":\"multus-status\"},"
                  "{\"name\":\"c\",\"infoSource\":\"multus-status\"}]"});
    g_autoptr(ChNetworkSpec) spec = ch_network_spec_new(vmi, CH_NETWORK_RUN_UPDATE, NULL, NULL);
    g_autoptr(ChNetState) numbered = ch_net_state_new();
    const ChLink net = {.index = 2, .name = "net1"};

    g_array_append_val(numbered->links, net);
    g_assert_cmpuint(spec->ifaces->len, ==, 2);
    ch_network_spec_name(spec, numbered);
    g_assert_cmpstr(ch_network_spec_iface(spec, 0)->name, ==, "c");
    g_assert_false(ch_network_spec_iface(spec, 0)->is_absent);
    g_assert_cmpuint(ch_network_spec_iface(spec, 0)->index, ==, 0);
    g_assert_cmpstr(ch_network_spec_iface(spec, 0)->names.pod_link, ==, "net3");
    g_assert_cmpstr(ch_network_spec_iface(spec, 1)->name, ==, "b");
    g_assert_true(ch_network_spec_iface(spec, 1)->is_absent);
    g_assert_cmpstr(ch_network_spec_iface(spec, 1)->names.pod_link, ==, "net2");
}

/* spec:04-23.6#4 spec:04-23.6#3 The default is eth0 wherever it stands, also multus' own; of a
 * second one, and of what is neither, the pod's link has no name. */
static void
test_schemes(void)
{
    static const char *const hashed[] = {"pod16477688c0e", "eth0", "podb1f51a511f1", "", ""};
    static const char *const numbered[] = {"net1", "eth0", "net2", "", ""};
    static const char *const taps[] = {"tap1", "tap0", "tap2", "tap", "tap"};
    g_autoptr(ChJson) vmi = make_vmi(
        &(Parts){.ifaces = "{\"name\":\"blue\",\"bridge\":{}},{\"name\":\"default\",\"bridge\":{}},"
                           "{\"name\":\"red\",\"bridge\":{}},{\"name\":\"second\",\"bridge\":{}},"
                           "{\"name\":\"claim\",\"bridge\":{}}",
                 .networks = MULTUS("red") "," MULTUS(
                     "blue") ",{\"name\":\"claim\",\"resourceClaim\":{}},"
                             "{\"name\":\"second\",\"pod\":{}},"
                             "{\"name\":\"default\",\"multus\":{\"default\":true}}"});
    g_autoptr(ChNetworkSpec) spec = ch_network_spec_new(vmi, CH_NETWORK_RUN_START, NULL, NULL);
    g_autoptr(ChNetState) seen = ch_net_state_new();
    const ChLink net = {.index = 2, .name = "net1"};

    ch_network_spec_name(spec, seen);
    for (guint i = 0; i < spec->ifaces->len; i++)
        g_assert_cmpstr(ch_network_spec_iface(spec, i)->names.pod_link, ==, hashed[i]);
    g_array_append_val(seen->links, net);
    ch_network_spec_name(spec, seen);
    for (guint i = 0; i < spec->ifaces->len; i++) {
        g_assert_cmpstr(ch_network_spec_iface(spec, i)->names.pod_link, ==, numbered[i]);
        g_assert_cmpstr(ch_network_spec_iface(spec, i)->names.tap, ==, taps[i]);
    }
}

/* FR-H04: who looks for the link is told under which names it was looked for. */
static void
test_missing(void)
{
    static const char *const texts[] = {
        "pod link (pod16477688c0e) is missing: network blue has neither pod16477688c0e nor net1 in "
        "the pod",
        "pod link (eth0) is missing",
        "pod link (podb1f51a511f1) is missing: network red has neither podb1f51a511f1 nor net2 in "
        "the pod"};
    g_autoptr(ChJson) vmi = make_vmi(
        &(Parts){.ifaces = "{\"name\":\"blue\",\"bridge\":{}},{\"name\":\"default\",\"bridge\":{}},"
                           "{\"name\":\"red\",\"bridge\":{}}",
                 .networks = MULTUS("red") "," MULTUS("blue") "," POD});
    g_autoptr(ChNetworkSpec) spec = ch_network_spec_new(vmi, CH_NETWORK_RUN_START, NULL, NULL);
    g_autoptr(ChNetState) seen = ch_net_state_new();

    ch_network_spec_name(spec, seen);
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(ch_network_fail_missing(ch_network_spec_iface(spec, i), &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_FAILED);
        g_assert_cmpstr(error->message, ==, texts[i]);
    }
}

/* spec:04-23.9#10 */
static void
test_target(void)
{
    g_autoptr(ChJson) vmi = make_vmi(&(Parts){.ifaces = "{\"name\":\"default\",\"masquerade\":{}}",
                                              .networks = POD "," MULTUS("a")});
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_network_spec_new(vmi, CH_NETWORK_RUN_TARGET, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_cmpstr(error->message, ==, "no iface matching with network a");
}

#define MULTI       ",\"networkInterfaceMultiqueue\":true"
#define IFACE(more) "{\"name\":\"default\",\"masquerade\":{}" more "}"

static const struct QueueCase {
    const char *path;
    Parts parts;
    bool is_multi;
} queue_cases[] = {
    {"/network-spec/queues/one-cpu", {.ifaces = IFACE(""), .devices = MULTI}, false},
    {"/network-spec/queues/product",
     {.ifaces = IFACE(""), .devices = MULTI, .domain = ",\"cpu\":{\"cores\":1,\"threads\":2}"},
     true},
    {"/network-spec/queues/not-asked",
     {.ifaces = IFACE(""), .domain = ",\"cpu\":{\"cores\":8}"},
     false},
    {"/network-spec/queues/cpu-limit",
     {.ifaces = IFACE(""),
      .devices = MULTI,
      .domain = ",\"resources\":{\"limits\":{\"cpu\":\"1500m\"}}"},
     true},
    {"/network-spec/queues/cpu-request-as-number",
     {.ifaces = IFACE(""), .devices = MULTI, .domain = ",\"resources\":{\"requests\":{\"cpu\":3}}"},
     true},
    /* spec:04-23.9#8 */
    {"/network-spec/queues/other-model",
     {.ifaces = IFACE(",\"model\":\"e1000\""),
      .devices = MULTI,
      .domain = ",\"cpu\":{\"cores\":8}"},
     false},
    /* spec:04-23.1#15 */
    {"/network-spec/queues/as-the-domain-has",
     {.ifaces = IFACE(""),
      .devices = MULTI,
      .domain = ",\"cpu\":{\"cores\":8}",
      .status = ",\"interfaces\":[{\"name\":\"default\",\"infoSource\":\"domain, "
                "guest-agent\",\"queueCount\":1}]"},
     false},
};

static void
test_queues(gconstpointer data)
{
    const struct QueueCase *c = data;
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChNetworkSpec) spec = make_spec(&c->parts, &vmi);

    g_assert_true(ch_network_spec_iface(spec, 0)->is_multi_queue == c->is_multi);
}

/* Absent ones, those without a network and those of other bindings are left out, and all but the
 * first two keep their place among the others. */
static void
test_selection(void)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChNetworkSpec) spec =
        make_spec(&(Parts){.ifaces = "{\"name\":\"gone\",\"bridge\":{},\"state\":\"absent\"},"
                                     "{\"name\":\"none\",\"bridge\":{}},"
                                     "{\"name\":\"default\",\"masquerade\":{}},"
                                     "{\"name\":\"vf\",\"sriov\":{}},"
                                     "{\"name\":\"blue\",\"bridge\":{}},"
                                     "{\"name\":\"secondnetwork\",\"bridge\":{}}",
                           .networks = POD
                           ",{\"name\":\"gone\",\"multus\":{}},{\"name\":\"vf\",\"multus\":{}},"
                           "{\"name\":\"blue\",\"multus\":{}},"
                           "{\"name\":\"secondnetwork\",\"multus\":{}}"},
                  &vmi);
    g_autoptr(ChNetState) hashed = ch_net_state_new();
    g_autoptr(ChNetState) numbered = ch_net_state_new();
    const ChLink net = {.index = 2, .name = "net3"};
    ChNetworkIface *second;

    g_assert_cmpuint(spec->ifaces->len, ==, 3);
    second = ch_network_spec_iface(spec, 2);
    g_assert_cmpuint(second->index, ==, 3);
    g_assert_false(second->is_primary);
    ch_network_spec_name(spec, hashed);
    g_assert_cmpstr(ch_network_spec_iface(spec, 0)->names.pod_link, ==, "eth0");
    g_assert_cmpstr(ch_network_spec_iface(spec, 0)->names.tap, ==, "tap0");
    g_assert_cmpstr(ch_network_spec_iface(spec, 1)->names.pod_link, ==, "pod16477688c0e");
    g_assert_cmpstr(second->names.pod_link, ==, "pod914f438d88d");
    g_assert_cmpstr(second->names.bridge, ==, "k6t-914f438d88d");
    g_assert_cmpstr(second->names.nic, ==, "914f438d88d-nic");
    g_assert_cmpstr(second->names.tap, ==, "tap914f438d88d");
    g_array_append_val(numbered->links, net);
    ch_network_spec_name(spec, numbered);
    g_assert_cmpstr(second->names.pod_link, ==, "net3");
    g_assert_cmpstr(second->names.bridge, ==, "k6t-net3");
    g_assert_cmpstr(second->names.tap, ==, "tap3");
}

static void
test_custom_name(void)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChNetworkSpec) spec = make_spec(
        &(Parts){.ifaces = IFACE(""),
                 .status = ",\"interfaces\":[{\"name\":\"default\",\"podInterfaceName\":\"cust-"
                           "iface\"}]"},
        &vmi);
    g_autoptr(ChNetState) empty = ch_net_state_new();
    const ChNetworkNames *names = &ch_network_spec_iface(spec, 0)->names;

    ch_network_spec_name(spec, empty);
    g_assert_cmpstr(names->pod_link, ==, "cust-iface");
    g_assert_cmpstr(names->bridge, ==, "k6t-cust-iface");
    g_assert_cmpstr(names->nic, ==, "cust-iface-nic");
    g_assert_cmpstr(names->tap, ==, "tap0");
}

/* spec:04-23.1#3 */
static void
test_refusals(void)
{
    static const struct {
        const char *iface, *text;
    } bad[] = {
        {"{\"name\":\"default\"}", "undefined binding method"},
        {"{\"name\":\"default\",\"slirp\":{}}", "undefined binding method"},
        {IFACE(",\"ports\":[{\"port\":70000}]"), "tcp/70000"},
        {IFACE(",\"ports\":[{\"port\":-1}]"), "tcp/-1"},
        {IFACE(",\"ports\":[{\"port\":1,\"protocol\":\"ICMP\"}]"), "icmp/1"},
    };
    g_autoptr(ChJson) elsewhere =
        make_vmi(&(Parts){.ifaces = "{\"name\":\"default\",\"masquerade\":{}}",
                          .networks = "{\"name\":\"default\",\"multus\":{\"default\":true}}"});
    static const char *const names[] = {"..", "a/b", ".x", ""};

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(ChJson) vmi = make_vmi(&(Parts){.ifaces = bad[i].iface});
        g_autoptr(GError) error = NULL;

        g_assert_null(ch_network_spec_new(vmi, CH_NETWORK_RUN_START, NULL, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        g_assert_nonnull(strstr(error->message, bad[i].text));
    }
    g_assert_null(ch_network_spec_new(elsewhere, CH_NETWORK_RUN_START, NULL, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *iface = g_strdup_printf("{\"name\":\"%s\",\"bridge\":{}}", names[i]);
        g_autofree char *network = g_strdup_printf("{\"name\":\"%s\",\"pod\":{}}", names[i]);
        g_autoptr(ChJson) vmi = make_vmi(&(Parts){.ifaces = iface, .networks = network});

        g_assert_null(ch_network_spec_new(vmi, CH_NETWORK_RUN_START, NULL, NULL));
    }
}

static void
test_nothing(void)
{
    g_autoptr(ChJson) vmi = ch_json_parse("{}", -1, NULL);
    g_autoptr(ChNetworkSpec) spec = ch_network_spec_new(vmi, CH_NETWORK_RUN_START, NULL, NULL);

    g_assert_nonnull(spec);
    g_assert_cmpuint(spec->ifaces->len, ==, 0);
    g_assert_false(spec->is_non_root);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network-spec/defaults", test_defaults);
    g_test_add_func("/network-spec/options", test_options);
    g_test_add_func("/network-spec/keeps-the-mac-of-the-status", test_mac_of_status);
    for (gsize i = 0; i < G_N_ELEMENTS(queue_cases); i++)
        g_test_add_data_func(queue_cases[i].path, &queue_cases[i], test_queues);
    g_test_add_func("/network-spec/selects-and-names", test_selection);
    g_test_add_func("/network-spec/custom-primary-name", test_custom_name);
    g_test_add_func("/network-spec/bindings", test_bindings);
    g_test_add_func("/network-spec/port-ranges", test_ranges);
    g_test_add_func("/network-spec/update-of-a-running-vm", test_update);
    g_test_add_func("/network-spec/both-schemes-of-names", test_schemes);
    g_test_add_func("/network-spec/names-that-were-tried", test_missing);
    g_test_add_func("/network-spec/target-without-interface", test_target);
    g_test_add_func("/network-spec/refuses", test_refusals);
    g_test_add_func("/network-spec/a-vmi-without-interfaces", test_nothing);
    return g_test_run();
}
