/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/ip.h"

static ChIp
ip(const char *text)
{
    ChIp ip;

    g_assert_true(ch_ip_parse(text, &ip));
    return ip;
}

static void
test_text(void)
{
    static const struct {
        const char *given, *printed;
    } good[] = {
        {"10.0.2.1", "10.0.2.1"},
        {"fd10:0:2::1", "fd10:0:2::1"},
        {"FD10:0:0:0::1", "fd10::1"},
        {"::ffff:10.0.2.1", "10.0.2.1"},
    };
    static const char *const bad[] = {
        "", "10.0.2", "10.0.2.256", "10.0.2.1/24", "fe80::1%eth0", "x", "10.0.2.1 "};
    char text[CH_IP_TEXT_SIZE];
    ChIp parsed;

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_assert_true(ch_ip_parse(good[i].given, &parsed));
        g_assert_cmpstr(ch_ip_print(&parsed, text), ==, good[i].printed);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ch_ip_parse(bad[i], &parsed));
    g_assert_cmpstr(ch_ip_print(&(ChIp){0}, text), ==, "");
}

static void
test_global_unicast(void)
{
    static const char *const global[] = {
        "10.244.0.5", "192.168.1.1", "8.8.8.8", "100.64.0.1", "fd10::1", "2001:db8::1"};
    static const char *const local[] = {"0.0.0.0",
                                        "127.0.0.1",
                                        "169.254.75.10",
                                        "224.0.0.1",
                                        "239.1.2.3",
                                        "255.255.255.255",
                                        "::",
                                        "::1",
                                        "fe80::1",
                                        "ff02::1"};
    ChIp parsed;

    for (gsize i = 0; i < G_N_ELEMENTS(global); i++)
        g_assert_true(ch_ip_parse(global[i], &parsed) && ch_ip_is_global_unicast(&parsed));
    for (gsize i = 0; i < G_N_ELEMENTS(local); i++)
        g_assert_true(ch_ip_parse(local[i], &parsed) && !ch_ip_is_global_unicast(&parsed));
    g_assert_false(ch_ip_is_global_unicast(&(ChIp){0}));
}

static void
test_networks(void)
{
    static const char *const bad[] = {"10.0.2.0",
                                      "10.0.2.0/33",
                                      "10.0.2.0/-1",
                                      "10.0.2.0/",
                                      "/24",
                                      "fd10::/129",
                                      "x/8",
                                      "1.1.1.1/8/8"};
    char text[CH_IP_TEXT_SIZE];
    uint8_t prefix = 0;
    ChIp network;

    g_assert_true(ch_ip_parse_network("10.0.2.77/24", &network, &prefix));
    g_assert_cmpstr(ch_ip_print(&network, text), ==, "10.0.2.0");
    g_assert_cmpuint(prefix, ==, 24);
    g_assert_true(ch_ip_parse_network("fd10:0:2::ff/121", &network, &prefix));
    g_assert_cmpstr(ch_ip_print(&network, text), ==, "fd10:0:2::80");
    g_assert_true(ch_ip_parse_network("1.2.3.4/0", &network, &prefix));
    g_assert_cmpstr(ch_ip_print(&network, text), ==, "0.0.0.0");
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ch_ip_parse_network(bad[i], &network, &prefix));
}

static void
test_sums(void)
{
    const ChIp low = ip("10.0.1.254");
    const ChIp high = ip("fd10::ffff:ffff");
    const ChIp sum = ip("10.0.2.1");
    const ChIp network = ip("10.0.1.0");
    ChIp got = ch_ip_plus(&low, 3);

    g_assert_true(ch_ip_equal(&got, &sum));
    got = ch_ip_plus(&high, 1);
    g_assert_true(ch_ip_equal(&got, &(const ChIp){AF_INET6, {0xfd, 0x10, [11] = 1}}));
    g_assert_true(ch_ip_is_network_of(&network, &low, 24));
    g_assert_false(ch_ip_is_network_of(&network, &low, 16));
    g_assert_false(ch_ip_is_network_of(&network, &high, 24));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ip/reads-and-prints", test_text);
    g_test_add_func("/ip/knows-global-unicast", test_global_unicast);
    g_test_add_func("/ip/reads-networks", test_networks);
    g_test_add_func("/ip/counts-on", test_sums);
    return g_test_run();
}
