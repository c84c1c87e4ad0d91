/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/vmi-network.h"

#include "lib/base/errors.h"
#include "lib/json/test-text.h"
#include "local/podrunner/multus.h"
#include "local/podrunner/record.h"

#define POD        "\"networks\":[{\"name\":\"default\",\"pod\":{}}]"
#define SPEC(i, n) "{\"spec\":{\"domain\":{\"devices\":{\"interfaces\":[" i "]}}," n "}}"
#define BRIDGE     SPEC("{\"name\":\"default\",\"bridge\":{}}", POD)

static const struct DefaultCase {
    const char *text;
    bool wants;
} defaults[] = {
    {"{\"spec\":{\"domain\":{}}}", true},
    {"{\"spec\":{\"domain\":{\"devices\":{\"autoattachPodInterface\":true,\"interfaces\":[]}}}}",
     true},
    {"{\"spec\":{\"domain\":{\"devices\":{\"autoattachPodInterface\":false}}}}", false},
    {"{\"spec\":{\"domain\":{}," POD "}}", false},
    {BRIDGE, false},
};

static void
test_who_gets_the_default(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(defaults); i++) {
        g_autoptr(ChJson) vmi = parse_json(defaults[i].text);

        g_assert_cmpint(ch_vmi_wants_default_network(vmi), ==, defaults[i].wants);
    }
}

static void
test_default(void)
{
    static const char *const bindings[][2] = {
        {NULL, "bridge"}, {"", "bridge"}, {"bridge", "bridge"}, {"masquerade", "masquerade"}};
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) other = parse_json("{}");

    for (gsize i = 0; i < G_N_ELEMENTS(bindings); i++) {
        g_autoptr(ChJson) vmi = parse_json("{}");
        g_autofree char *text =
            g_strdup_printf(SPEC("{\"name\":\"default\",\"%s\":{}}", POD), bindings[i][1]);
        g_autoptr(ChJson) expected = parse_json(text);

        g_assert_true(ch_vmi_add_default_network(vmi, bindings[i][0], NULL));
        g_assert_true(ch_json_equal(vmi, expected));
        g_assert_cmpstr(ch_vmi_pod_network(vmi), ==, "default");
        g_assert_true(ch_vmi_check_networks(vmi, NULL));
    }
    g_assert_false(ch_vmi_add_default_network(other, "slirp", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_what_cannot_be_had(void)
{
    static const char *const texts[] = {
        SPEC("{\"name\":\"a\",\"bridge\":{}}", POD),
        SPEC("{\"name\":\"default\",\"sriov\":{}}", POD),
        SPEC("{\"name\":\"default\"}", POD),
        SPEC("{\"bridge\":{}}", POD),
        SPEC("", "\"networks\":[{\"name\":\"a\",\"multus\":{\"networkName\":\"X y\"}}]"),
        SPEC("", "\"networks\":[{\"name\":\"a\",\"multus\":{}}]"),
        SPEC("",
             "\"networks\":[{\"name\":\"a\",\"multus\":{\"networkName\":\"x\","
             "\"default\":true}}]"),
        SPEC("{\"name\":\"a\",\"masquerade\":{}}",
             "\"networks\":[{\"name\":\"a\",\"multus\":{\"networkName\":\"x\"}}]"),
        SPEC("", "\"networks\":[{\"name\":\"a\"}]"),
        SPEC("",
             "\"networks\":[{\"name\":\"a\",\"multus\":{\"networkName\":\"x\"}},"
             "{\"name\":\"a\",\"multus\":{\"networkName\":\"y\"}}]"),
        SPEC("{\"name\":\"default\",\"bridge\":{}},{\"name\":\"default\",\"bridge\":{}}", POD),
        SPEC("", "\"networks\":[{\"pod\":{}}]"),
        SPEC("", "\"networks\":[{\"multus\":{\"networkName\":\"x\"}}]"),
        SPEC("{\"name\":\"../a\",\"bridge\":{}}", "\"networks\":[{\"name\":\"../a\",\"pod\":{}}]"),
        SPEC("{\"name\":\"default\",\"bridge\":{},\"macAddress\":\"02:00\"}", POD),
        SPEC("{\"name\":\"default\",\"bridge\":{},\"macAddress\":\"02:00:00:00:00:01;K8S_POD_NAME="
             "x\"}",
             POD),
        SPEC("", "\"networks\":[{\"name\":\"a\",\"pod\":{}},{\"name\":\"b\",\"pod\":{}}]"),
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChJson) vmi = parse_json(texts[i]);

        g_assert_false(ch_vmi_check_networks(vmi, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static void
test_secondary_network(void)
{
    g_autoptr(ChJson) vmi =
        parse_json(SPEC("{\"name\":\"a\",\"bridge\":{},\"macAddress\":\"02-00-00-00-00-0A\"}",
                        "\"networks\":[{\"name\":\"a\",\"multus\":{\"networkName\":\"lab/x\"}}]"));
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_vmi_check_networks(vmi, &error));
    g_assert_no_error(error);
    g_assert_null(ch_vmi_pod_network(vmi));
}

static void
test_too_many_secondary_networks(void)
{
    g_autoptr(ChJson) vmi = parse_json("{\"spec\":{\"networks\":[]}}");
    ChJson *networks = ch_json_at(vmi, "spec", "networks");

    for (guint i = 0; i <= CH_MULTUS_MAX_NETWORKS; i++) {
        g_autofree char *text =
            g_strdup_printf("{\"name\":\"n%u\",\"multus\":{\"networkName\":\"x\"}}", i);

        g_assert_cmpint(ch_vmi_check_networks(vmi, NULL), ==, true);
        ch_json_append(networks, parse_json(text));
    }
    g_assert_false(ch_vmi_check_networks(vmi, NULL));
}

static void
test_absent_interface_needs_no_network(void)
{
    g_autoptr(ChJson) vmi =
        parse_json(SPEC("{\"name\":\"default\",\"bridge\":{},\"state\":\"absent\"}", POD));

    g_assert_null(ch_vmi_pod_network(vmi));
}

#define SECONDARY                                                                                  \
    SPEC("{\"name\":\"a\",\"bridge\":{}}",                                                         \
         "\"networks\":[{\"name\":\"a\",\"multus\":{\"networkName\":\"lab/x\"}}]")

/* What was begun must come to an end, or the VM would have no network for its life. */
static void
test_who_is_to_be_connected(void)
{
    static const struct {
        const char *text, *state;
        bool needs;
    } cases[] = {
        {BRIDGE, NULL, true},
        {BRIDGE, CH_RECORD_NETWORK_BEGUN, true},
        {BRIDGE, CH_RECORD_NETWORK_UP, false},
        {SECONDARY, NULL, true},
        {SPEC("", "\"networks\":[]"), NULL, false},
        {SPEC("", "\"networks\":[]"), CH_RECORD_NETWORK_BEGUN, true},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ChJson) vmi = parse_json(cases[i].text);

        g_assert_cmpint(ch_vmi_needs_network(vmi, cases[i].state), ==, cases[i].needs);
    }
}

static ChJson *
with_ports(const char *text, const char *annotation)
{
    ChJson *vmi = parse_json(text);

    ch_json_set_string(ch_json_ensure_object(ch_json_ensure_object(vmi, "metadata"), "annotations"),
                       CH_HOST_PORTS_ANNOTATION,
                       annotation);
    return vmi;
}

static void
test_host_ports(void)
{
    g_autoptr(ChJson) none = parse_json(BRIDGE);
    g_autoptr(ChJson) two = with_ports(BRIDGE, " 8080:80,, 53:5353/UDP ");
    g_autoptr(GArray) no_ports = ch_vmi_host_ports(none, NULL);
    g_autoptr(GArray) ports = ch_vmi_host_ports(two, NULL);
    const ChHostPort *port;

    g_assert_cmpuint(no_ports->len, ==, 0);
    g_assert_cmpuint(ports->len, ==, 2);
    port = &g_array_index(ports, ChHostPort, 1);
    g_assert_cmpuint(port->host, ==, 53);
    g_assert_cmpuint(port->guest, ==, 5353);
    g_assert_cmpstr(port->protocol, ==, "udp");
}

static void
test_bad_host_ports(void)
{
    static const char *const texts[] = {"80",
                                        "80:",
                                        ":80",
                                        "0:80",
                                        "80:65536",
                                        "-1:80",
                                        "80:80/sctp",
                                        "80/tcp:80",
                                        "a:b",
                                        "1.2.3.4:80:80",
                                        "80:80;reboot"};

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChJson) vmi = with_ports(BRIDGE, texts[i]);

        g_assert_null(ch_vmi_host_ports(vmi, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

/* Of two ways out of one port the kernel would take one. */
static void
test_host_port_twice(void)
{
    g_autoptr(ChJson) twice = with_ports(BRIDGE, "8080:80,8081:81/tcp, 8080:82/TCP");
    g_autoptr(ChJson) both_protocols = with_ports(BRIDGE, "53:53,53:53/udp");
    g_autoptr(GArray) ports = ch_vmi_host_ports(both_protocols, NULL);
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(ports);
    g_assert_cmpuint(ports->len, ==, 2);
    g_assert_null(ch_vmi_host_ports(twice, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_nonnull(strstr(error->message, "8080:82/TCP"));
}

static void
test_too_many_host_ports(void)
{
    g_autoptr(GString) text = g_string_new("1:1");
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) vmi = NULL;

    for (int i = 0; i < CH_HOST_PORTS_MAX; i++)
        g_string_append(text, ",1:1");
    vmi = with_ports(BRIDGE, text->str);
    g_assert_null(ch_vmi_host_ports(vmi, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_host_ports_must_be_let_in(void)
{
    static const char masquerade[] =
        SPEC("{\"name\":\"default\",\"masquerade\":{},\"ports\":[{\"port\":80},"
             "{\"port\":53,\"protocol\":\"UDP\"}]}",
             POD);
    static const struct {
        const char *ports;
        bool is_good;
    } cases[] = {{"8080:80", true}, {"53:53/udp", true}, {"8080:81", false}, {"53:53", false}};
    g_autoptr(ChJson) without = with_ports("{}", "8080:80");

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ChJson) vmi = with_ports(masquerade, cases[i].ports);
        g_autoptr(GArray) ports = ch_vmi_host_ports(vmi, NULL);

        g_assert_cmpint(ports != NULL, ==, cases[i].is_good);
    }
    g_assert_null(ch_vmi_host_ports(without, NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vmi-network/who-gets-the-default", test_who_gets_the_default);
    g_test_add_func("/vmi-network/default", test_default);
    g_test_add_func("/vmi-network/what-cannot-be-had", test_what_cannot_be_had);
    g_test_add_func("/vmi-network/secondary-network", test_secondary_network);
    g_test_add_func("/vmi-network/too-many-secondary-networks", test_too_many_secondary_networks);
    g_test_add_func("/vmi-network/absent-interface-needs-no-network",
                    test_absent_interface_needs_no_network);
    g_test_add_func("/vmi-network/who-is-to-be-connected", test_who_is_to_be_connected);
    g_test_add_func("/vmi-network/host-ports", test_host_ports);
    g_test_add_func("/vmi-network/bad-host-ports", test_bad_host_ports);
    g_test_add_func("/vmi-network/host-port-twice", test_host_port_twice);
    g_test_add_func("/vmi-network/too-many-host-ports", test_too_many_host_ports);
    g_test_add_func("/vmi-network/host-ports-must-be-let-in", test_host_ports_must_be_let_in);
    return g_test_run();
}
