/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/status-internal.h"
#include "handler/reconcile/test-support.h"

/* 02 §7, trap 21. `guest_only`: behind masquerade with the default network. */
static const struct {
    const char *text;
    ChIpFamily family;
    bool guest_only;
} addresses[] = {
    {"1.2.3.4", CH_IP_V4, false},
    {"10.0.2.2", CH_IP_V4, true},
    {"10.0.3.2", CH_IP_V4, false},
    {"169.254.1.1", CH_IP_V4, true},
    {"169.255.1.1", CH_IP_V4, false},
    {"::ffff:169.254.0.1", CH_IP_V4, true},
    {"::ffff:1.2.3.4", CH_IP_V4, false},
    {"fe80::1", CH_IP_V6, true},
    {"febf::1", CH_IP_V6, true},
    {"fec0::1", CH_IP_V6, false},
    {"fd10:0:2::2", CH_IP_V6, true},
    {"fd10:0:2::102", CH_IP_V6, false},
    {"fd10::2", CH_IP_V6, false},
    {"", CH_IP_NONE, true},
    {"1.2.3", CH_IP_NONE, true},
    {"1.2.3.4/24", CH_IP_NONE, true},
    {"fe80::1%eth0", CH_IP_NONE, true},
    {"::1/128", CH_IP_NONE, true},
    {"x", CH_IP_NONE, true},
};

static void
test_families(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(addresses); i++) {
        g_test_message("%s", addresses[i].text);
        g_assert_cmpint(ch_status_ip_family(addresses[i].text), ==, addresses[i].family);
        g_assert_true(ch_status_ip_is_of_guest_only(addresses[i].text, NULL) ==
                      addresses[i].guest_only);
    }
}

/* A network of the VMI's own takes the place of the default; nonsense has no addresses in it. */
static void
test_own_network(void)
{
    g_autoptr(ChJson) own = parse_json(
        "{'pod':{'vmNetworkCIDR':'172.16.0.0/12','vmIPv6NetworkCIDR':'fd00:1:2:3::/64'}}");
    g_autoptr(ChJson) nonsense =
        parse_json("{'pod':{'vmNetworkCIDR':'10.0.2.0/33','vmIPv6NetworkCIDR':'x'}}");
    g_autoptr(ChJson) all = parse_json("{'pod':{'vmNetworkCIDR':'0.0.0.0/0'}}");

    g_assert_true(ch_status_ip_is_of_guest_only("172.31.255.1", own));
    g_assert_false(ch_status_ip_is_of_guest_only("172.32.0.1", own));
    g_assert_false(ch_status_ip_is_of_guest_only("10.0.2.2", own));
    g_assert_true(ch_status_ip_is_of_guest_only("fd00:1:2:3:4::1", own));
    g_assert_false(ch_status_ip_is_of_guest_only("fd00:1:2:4::1", own));
    g_assert_false(ch_status_ip_is_of_guest_only("10.0.2.2", nonsense));
    g_assert_true(ch_status_ip_is_of_guest_only("8.8.8.8", all));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/status-addresses/families", test_families);
    g_test_add_func("/status-addresses/own-network", test_own_network);
    return g_test_run();
}
