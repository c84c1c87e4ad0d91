/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/dhcp-lease.h"

#include <string.h>

#include "lib/base/errors.h"

#define VMI(i, n)                                                                                  \
    "{\"metadata\":{\"name\":\"vm.lab\"},\"spec\":{\"domain\":{\"devices\":{\"interfaces\":[" i    \
    "]}},\"networks\":[" n "]}}"
#define MASQUERADE                                                                                 \
    VMI("{\"name\":\"default\",\"masquerade\":{}}", "{\"name\":\"default\",\"pod\":{}}")
#define BRIDGE                                                                                     \
    VMI("{\"name\":\"x\",\"sriov\":{}},{\"name\":\"default\",\"bridge\":{}}",                      \
        "{\"name\":\"default\",\"pod\":{}}")

/* As the agent writes it: 04 §4.2. */
#define CACHE(members)                                                                             \
    "{\"Name\":\"\",\"IP\":{\"IP\":\"10.244.0.5\",\"Mask\":\"////AA==\",\"Label\":\"\"},"          \
    "\"MAC\":\"ClgK9AAF\",\"IPAMDisabled\":false," members "}"

static bool
fill(const char *vmi_text, ChDhcpFacts facts, ChDhcpLease *lease, GError **error)
{
    g_autoptr(ChJson) vmi = ch_json_parse(vmi_text, -1, NULL);

    g_assert_nonnull(vmi);
    facts.vmi = vmi;
    facts.interface = "default";
    return ch_dhcp_lease_fill(&facts, lease, error);
}

static void
assert_bytes(const void *a, gsize n_a, const void *b, gsize n_b)
{
    g_assert_cmpuint(n_a, ==, n_b);
    g_assert_cmpint(memcmp(a, b, n_a), ==, 0);
}

static void
assert_ip(const ChIp *ip, const char *expected)
{
    char text[CH_IP_TEXT_SIZE];

    g_assert_cmpint(ip->family, !=, 0);
    g_assert_cmpstr(ch_ip_print(ip, text), ==, expected);
}

static void
test_masquerade(void)
{
    ChDhcpLease lease = {0};

    g_assert_true(fill(MASQUERADE,
                       (ChDhcpFacts){.pod_mac = "0a:58:0a:f4:00:05",
                                     .mtu = 1450,
                                     .resolv_conf = "search a.lab lab\nnameserver fd00::1\n"
                                                    "nameserver 9.9.9.9\n"},
                       &lease,
                       NULL));
    assert_ip(&lease.address, "10.0.2.2");
    assert_ip(&lease.server, "10.0.2.1");
    assert_ip(&lease.gateway, "10.0.2.1");
    g_assert_cmpuint(lease.prefix, ==, 24);
    g_assert_cmpuint(lease.mtu, ==, 1450);
    assert_bytes(lease.mac, 6, "\x0a\x58\x0a\xf4\x00\x05", 6);
    g_assert_cmpuint(lease.n_name_servers, ==, 1);
    assert_ip(&lease.name_servers[0], "9.9.9.9");
    g_assert_cmpstr(lease.search, ==, "a.lab lab");
    g_assert_cmpstr(lease.hostname, ==, "vm");
}

static void
test_masquerade_of_ones_own(void)
{
    ChDhcpLease lease = {0};

    g_assert_true(
        fill(VMI("{\"name\":\"default\",\"masquerade\":{},\"macAddress\":\"02-00-00-AA-bb-01\"}",
                 "{\"name\":\"default\",\"pod\":{\"vmNetworkCIDR\":\"192.168.100.128/30\"}}"),
             (ChDhcpFacts){.pod_mac = "0a:58:0a:f4:00:05"},
             &lease,
             NULL));
    assert_ip(&lease.address, "192.168.100.130");
    assert_ip(&lease.server, "192.168.100.129");
    assert_bytes(lease.mac, 6, "\x02\x00\x00\xaa\xbb\x01", 6);
}

static const struct ResolvCase {
    const char *path, *text, *search, *server; /* server NULL: none */
} resolv_cases[] = {
    {"/dhcp-lease/resolv/aligned",
     "nameserver \t  9.9.9.9\nsearch   a.lab \t lab\n",
     "a.lab lab",
     "9.9.9.9"},
    {"/dhcp-lease/resolv/carriage-returns",
     "search lab\r\nnameserver 9.9.9.9\r\n",
     "lab",
     "9.9.9.9"},
    {"/dhcp-lease/resolv/the-root", "search .\n", "", NULL},
    {"/dhcp-lease/resolv/no-names", "search a..b -x_ .c lab. $(x) d\xc3\xa4\n", "-x_ lab.", NULL},
    {"/dhcp-lease/resolv/last-counts", "domain old.lab\nsearch lab\n", "lab", NULL},
    {"/dhcp-lease/resolv/comments", "# nameserver 1.1.1.1\n;search x\nnameserver # y\n", "", NULL},
    {"/dhcp-lease/resolv/ipv6", "nameserver fe80::1%eth0\nnameserver fd00::1\n", "", NULL},
};

static void
test_resolv(gconstpointer data)
{
    const struct ResolvCase *c = data;
    ChDhcpLease lease = {0};

    g_assert_true(fill(MASQUERADE,
                       (ChDhcpFacts){.pod_mac = "0a:58:0a:f4:00:05", .resolv_conf = c->text},
                       &lease,
                       NULL));
    g_assert_cmpstr(lease.search, ==, c->search);
    g_assert_cmpuint(lease.n_name_servers, ==, c->server != NULL);
    if (c->server != NULL)
        assert_ip(&lease.name_servers[0], c->server);
}

/* What fits is kept. */
static void
test_long_search(void)
{
    g_autofree char *label = g_strnfill(63, 'a');
    g_autofree char *too_long = g_strnfill(64, 'b');
    g_autofree char *text = g_strdup_printf(
        "search %s %s %s.%s.%s.%s z\n", label, too_long, label, label, label, label);
    g_autofree char *expect = g_strdup_printf("%s z", label);
    ChDhcpLease lease = {0};

    g_assert_true(fill(MASQUERADE,
                       (ChDhcpFacts){.pod_mac = "0a:58:0a:f4:00:05", .resolv_conf = text},
                       &lease,
                       NULL));
    g_assert_cmpstr(lease.search, ==, expect);
}

static void
test_bridge(void)
{
    ChDhcpLease lease = {0};
    g_autoptr(GError) error = NULL;

    g_assert_true(
        fill(BRIDGE,
             (ChDhcpFacts){.cache = CACHE("\"Routes\":[{\"Dst\":null,\"Gw\":\"10.244.0.1\"},"
                                          "{\"Dst\":{\"IP\":\"192.168.1.0\",\"Mask\":\"////AA==\"},"
                                          "\"Gw\":\"10.244.0.254\"},"
                                          "{\"Dst\":{\"IP\":\"10.222.0.0\",\"Mask\":\"//8AAA==\"},"
                                          "\"Gw\":\"\"}],\"Gateway\":\"10.244.0.1\"")},
             &lease,
             &error));
    g_assert_no_error(error);
    assert_ip(&lease.address, "10.244.0.5");
    assert_ip(&lease.gateway, "10.244.0.1");
    assert_ip(&lease.server, "169.254.75.11"); /* by its place in the VMI */
    assert_bytes(lease.mac, 6, "\x0a\x58\x0a\xf4\x00\x05", 6);
    g_assert_cmpuint(lease.n_routes, ==, 3);
    g_assert_cmpuint(lease.routes[0].prefix, ==, 0);
    assert_ip(&lease.routes[1].gateway, "10.244.0.254");
    g_assert_cmpuint(lease.routes[2].prefix, ==, 16);
    g_assert_cmpint(lease.routes[2].gateway.family, ==, 0);
}

static void
test_router_says_it_all(void)
{
    ChDhcpLease lease = {0};

    g_assert_true(
        fill(BRIDGE,
             (ChDhcpFacts){.cache = CACHE("\"Routes\":[{\"Dst\":null,\"Gw\":\"10.244.0.1\"}"
                                          "],\"Gateway\":\"10.244.0.1\"")},
             &lease,
             NULL));
    assert_ip(&lease.gateway, "10.244.0.1");
    g_assert_cmpuint(lease.n_routes, ==, 0);
}

static void
test_bridge_without_addresses(void)
{
    ChDhcpLease lease = {0};

    g_assert_true(
        fill(BRIDGE,
             (ChDhcpFacts){.cache = "{\"MAC\":null,\"Routes\":null,\"IPAMDisabled\":true}"},
             &lease,
             NULL));
    g_assert_cmpint(lease.address.family, ==, 0);
}

static const struct BadCase {
    const char *path, *vmi, *cache, *mac;
} bad_cases[] = {
    {"/dhcp-lease/bad/no-file", BRIDGE, NULL, NULL},
    {"/dhcp-lease/bad/no-json", BRIDGE, "x", NULL},
    {"/dhcp-lease/bad/empty", BRIDGE, "{}", NULL},
    {"/dhcp-lease/bad/short-mac",
     BRIDGE,
     "{\"IP\":{\"IP\":\"10.0.0.1\",\"Mask\":\"////AA==\"},\"MAC\":\"AAAA\"}",
     NULL},
    {"/dhcp-lease/bad/mask-with-holes",
     BRIDGE,
     "{\"IP\":{\"IP\":\"10.0.0.1\",\"Mask\":\"/wD/AA==\"},\"MAC\":\"ClgK9AAF\"}",
     NULL},
    {"/dhcp-lease/bad/ipv6",
     BRIDGE,
     "{\"IP\":{\"IP\":\"fd00::1\",\"Mask\":\"////AA==\"},\"MAC\":\"ClgK9AAF\"}",
     NULL},
    {"/dhcp-lease/bad/gateway", BRIDGE, CACHE("\"Gateway\":\"x\""), NULL},
    {"/dhcp-lease/bad/route",
     BRIDGE,
     CACHE("\"Routes\":[{\"Dst\":{\"IP\":\"x\"},\"Gw\":\"\"}]"),
     NULL},
    {"/dhcp-lease/bad/no-mac", MASQUERADE, NULL, NULL},
    {"/dhcp-lease/bad/odd-mac", MASQUERADE, NULL, "0a:58:0a:f4:00:5"},
    {"/dhcp-lease/bad/cidr",
     VMI("{\"name\":\"default\",\"masquerade\":{}}",
         "{\"name\":\"default\",\"pod\":{\"vmNetworkCIDR\":\"10.0.2.0/31\"}}"),
     NULL,
     "0a:58:0a:f4:00:05"},
};

static void
test_bad(gconstpointer data)
{
    const struct BadCase *c = data;
    g_autoptr(GError) error = NULL;
    ChDhcpLease lease = {0};

    g_assert_false(
        fill(c->vmi, (ChDhcpFacts){.cache = c->cache, .pod_mac = c->mac}, &lease, &error));
    g_assert_nonnull(error);
    g_assert_cmpint(lease.address.family, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dhcp-lease/masquerade", test_masquerade);
    g_test_add_func("/dhcp-lease/masquerade-of-ones-own", test_masquerade_of_ones_own);
    g_test_add_func("/dhcp-lease/bridge", test_bridge);
    g_test_add_func("/dhcp-lease/router-says-it-all", test_router_says_it_all);
    g_test_add_func("/dhcp-lease/bridge-without-addresses", test_bridge_without_addresses);
    g_test_add_func("/dhcp-lease/long-search", test_long_search);
    for (gsize i = 0; i < G_N_ELEMENTS(resolv_cases); i++)
        g_test_add_data_func(resolv_cases[i].path, &resolv_cases[i], test_resolv);
    for (gsize i = 0; i < G_N_ELEMENTS(bad_cases); i++)
        g_test_add_data_func(bad_cases[i].path, &bad_cases[i], test_bad);
    return g_test_run();
}
