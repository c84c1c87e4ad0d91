/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-nat.h"

#include <netinet/in.h>
#include <string.h>

static ChIp
ip(const char *text)
{
    ChIp ip;

    g_assert_true(ch_ip_parse(text, &ip));
    return ip;
}

static const ChNetworkPort web[] = {{IPPROTO_TCP, 80}, {IPPROTO_UDP, 53}};
static const ChNetworkPort migration[] = {{IPPROTO_TCP, 49152}};
static const ChNetworkPort ssh[] = {{IPPROTO_UDP, 22}, {IPPROTO_TCP, 8080}};
static const ChNetworkPort proxy[] = {{IPPROTO_TCP, 15000}};

static const ChNetworkPort ranges[] = {{IPPROTO_TCP, 1000, 2000}, {IPPROTO_UDP, 1500, 2500}};
static const ChNetworkPort low_ranges[] = {{IPPROTO_UDP, 20, 25}, {IPPROTO_TCP, 14000, 16000}};
static const ChNetworkPort web_and_ssh[] = {{IPPROTO_TCP, 22}, {IPPROTO_TCP, 8080}};
static const ChNetworkPort web_only[] = {{IPPROTO_TCP, 80}, {IPPROTO_TCP, 8080}};

#define FRAME                                                                                      \
    "postrouting: ip saddr 10.0.2.2 counter masquerade\n"                                          \
    "prerouting: iifname \"eth0\" counter jump KUBEVIRT_PREINBOUND\n"                              \
    "postrouting: oifname \"k6t-eth0\" counter jump KUBEVIRT_POSTINBOUND\n"
#define SKIP_PORTS                                                                                 \
    "tcp dport { 15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090 } "

static const struct Case {
    const char *path;
    uint8_t family;
    bool is_istio, reserves;
    const ChNetworkPort *ports;
    guint n_ports;
    const char *rules;
} cases[] = {
    /* spec:04-23.3#2 */
    {"/network-nat/all-ports",
     AF_INET,
     false,
     false,
     NULL,
     0,
     FRAME "KUBEVIRT_PREINBOUND: counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: ip saddr 127.0.0.1 counter snat to 10.0.2.1\n"
           "output: ip daddr 127.0.0.1 counter dnat to 10.0.2.2\n"},
    /* spec:04-23.3#2 */
    {"/network-nat/all-ports-v6",
     AF_INET6,
     false,
     false,
     NULL,
     0,
     "postrouting: ip6 saddr fd10:0:2::2 counter masquerade\n"
     "prerouting: iifname \"eth0\" counter jump KUBEVIRT_PREINBOUND\n"
     "postrouting: oifname \"k6t-eth0\" counter jump KUBEVIRT_POSTINBOUND\n"
     "KUBEVIRT_PREINBOUND: counter dnat to fd10:0:2::2\n"
     "KUBEVIRT_POSTINBOUND: ip6 saddr ::1 counter snat to fd10:0:2::1\n"
     "output: ip6 daddr ::1 counter dnat to fd10:0:2::2\n"},
    /* spec:04-23.3#3 */
    {"/network-nat/migration-ports-come-first",
     AF_INET,
     false,
     true,
     web,
     2,
     FRAME "output: tcp dport { 49152, 49153 } ip saddr 127.0.0.1 counter return\n"
           "KUBEVIRT_POSTINBOUND: tcp dport { 49152, 49153 } ip saddr 127.0.0.1 counter return\n"
           "KUBEVIRT_PREINBOUND: tcp dport 80 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: tcp dport 80 ip saddr 127.0.0.1 counter snat to 10.0.2.1\n"
           "output: ip daddr 127.0.0.1 tcp dport 80 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_PREINBOUND: udp dport 53 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: udp dport 53 ip saddr 127.0.0.1 counter snat to 10.0.2.1\n"
           "output: ip daddr 127.0.0.1 udp dport 53 counter dnat to 10.0.2.2\n"},
    /* field:FR-H16: only the loopback address is the migration's; the guest has the port otherwise
     */
    {"/network-nat/migration-port-of-the-guest",
     AF_INET,
     false,
     true,
     migration,
     1,
     FRAME "output: tcp dport { 49152, 49153 } ip saddr 127.0.0.1 counter return\n"
           "KUBEVIRT_POSTINBOUND: tcp dport { 49152, 49153 } ip saddr 127.0.0.1 counter return\n"
           "KUBEVIRT_PREINBOUND: tcp dport 49152 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: tcp dport 49152 ip saddr 127.0.0.1 counter snat to 10.0.2.1\n"
           "output: ip daddr 127.0.0.1 tcp dport 49152 counter dnat to 10.0.2.2\n"},
    /* spec:04-23.3#7 */
    {"/network-nat/istio",
     AF_INET,
     true,
     false,
     NULL,
     0,
     FRAME "output: " SKIP_PORTS "ip saddr 127.0.0.1 counter return\n"
           "KUBEVIRT_POSTINBOUND: " SKIP_PORTS "ip saddr 127.0.0.1 counter return\n"
           "KUBEVIRT_PREINBOUND: tcp dport 22 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: ip saddr { 127.0.0.1, 127.0.0.6 } counter snat to 10.0.2.1\n"
           "output: ip daddr { 127.0.0.1, 10.244.0.5 } counter dnat to 10.0.2.2\n"},
    {"/network-nat/istio-ports",
     AF_INET,
     true,
     false,
     ssh,
     2,
     FRAME "KUBEVIRT_PREINBOUND: tcp dport 22 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: udp dport 22 ip saddr { 127.0.0.1, 127.0.0.6 } counter snat to "
           "10.0.2.1\n"
           "output: ip daddr { 127.0.0.1, 10.244.0.5 } udp dport 22 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: tcp dport 8080 ip saddr { 127.0.0.1, 127.0.0.6 } counter snat to "
           "10.0.2.1\n"
           "output: ip daddr { 127.0.0.1, 10.244.0.5 } tcp dport 8080 counter dnat to 10.0.2.2\n"},
    /* spec:04-23.3#11 */
    {"/network-nat/istios-own-port-is-not-skipped",
     AF_INET,
     true,
     false,
     proxy,
     1,
     FRAME "KUBEVIRT_POSTINBOUND: tcp dport 15000 ip saddr { 127.0.0.1, 127.0.0.6 } counter snat "
           "to 10.0.2.1\n"
           "output: ip daddr { 127.0.0.1, 10.244.0.5 } tcp dport 15000 counter dnat to 10.0.2.2\n"},
    /* spec:04-23.3#5 spec:04-23.3#6 */
    {"/network-nat/ranges-may-overlap",
     AF_INET,
     false,
     false,
     ranges,
     2,
     FRAME "KUBEVIRT_PREINBOUND: tcp dport 1000-2000 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: tcp dport 1000-2000 ip saddr 127.0.0.1 counter snat to 10.0.2.1\n"
           "output: ip daddr 127.0.0.1 tcp dport 1000-2000 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_PREINBOUND: udp dport 1500-2500 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: udp dport 1500-2500 ip saddr 127.0.0.1 counter snat to 10.0.2.1\n"
           "output: ip daddr 127.0.0.1 udp dport 1500-2500 counter dnat to 10.0.2.2\n"},
    /* spec:04-23.3#12 */
    {"/network-nat/istio-ranges",
     AF_INET,
     true,
     false,
     low_ranges,
     2,
     FRAME
     "KUBEVIRT_PREINBOUND: tcp dport 22 counter dnat to 10.0.2.2\n"
     "KUBEVIRT_POSTINBOUND: udp dport 20-25 ip saddr { 127.0.0.1, 127.0.0.6 } counter snat to "
     "10.0.2.1\n"
     "output: ip daddr { 127.0.0.1, 10.244.0.5 } udp dport 20-25 counter dnat to 10.0.2.2\n"
     "KUBEVIRT_POSTINBOUND: tcp dport 14000-16000 ip saddr { 127.0.0.1, 127.0.0.6 } counter "
     "snat to 10.0.2.1\n"
     "output: ip daddr { 127.0.0.1, 10.244.0.5 } tcp dport 14000-16000 counter dnat to "
     "10.0.2.2\n"},
    /* spec:04-23.3#10 */
    {"/network-nat/istio-ssh",
     AF_INET,
     true,
     false,
     web_and_ssh,
     1,
     FRAME "KUBEVIRT_PREINBOUND: tcp dport 22 counter dnat to 10.0.2.2\n"
           "KUBEVIRT_POSTINBOUND: tcp dport 22 ip saddr { 127.0.0.1, 127.0.0.6 } counter snat to "
           "10.0.2.1\n"
           "output: ip daddr { 127.0.0.1, 10.244.0.5 } tcp dport 22 counter dnat to 10.0.2.2\n"},
    /* spec:04-23.3#8 */
    {"/network-nat/istio-ports-and-migration",
     AF_INET6,
     true,
     true,
     web_only,
     1,
     "postrouting: ip6 saddr fd10:0:2::2 counter masquerade\n"
     "prerouting: iifname \"eth0\" counter jump KUBEVIRT_PREINBOUND\n"
     "postrouting: oifname \"k6t-eth0\" counter jump KUBEVIRT_POSTINBOUND\n"
     "output: tcp dport { 49152, 49153 } ip6 saddr ::1 counter return\n"
     "KUBEVIRT_POSTINBOUND: tcp dport { 49152, 49153 } ip6 saddr ::1 counter return\n"
     "KUBEVIRT_POSTINBOUND: tcp dport 80 ip6 saddr ::1 counter snat to fd10:0:2::1\n"
     "output: ip6 daddr ::1 tcp dport 80 counter dnat to fd10:0:2::2\n"},
    /* spec:04-23.3#9 */
    {"/network-nat/istio-ports-without-migration",
     AF_INET,
     true,
     false,
     web_only,
     1,
     FRAME "KUBEVIRT_POSTINBOUND: tcp dport 80 ip saddr { 127.0.0.1, 127.0.0.6 } counter snat to "
           "10.0.2.1\n"
           "output: ip daddr { 127.0.0.1, 10.244.0.5 } tcp dport 80 counter dnat to 10.0.2.2\n"},
};

static GArray *
make_rules(const struct Case *c)
{
    const bool is_v4 = c->family == AF_INET;
    static ChNetworkNat nat;

    nat = (ChNetworkNat){.family = c->family,
                         .pod_link = "eth0",
                         .bridge = "k6t-eth0",
                         .gateway = ip(is_v4 ? "10.0.2.1" : "fd10:0:2::1"),
                         .guest = ip(is_v4 ? "10.0.2.2" : "fd10:0:2::2"),
                         .pod_ip = ip(is_v4 ? "10.244.0.5" : "fd10:244::5"),
                         .is_istio = c->is_istio,
                         .reserves_migration_ports = c->reserves,
                         .ports = c->ports,
                         .n_ports = c->n_ports};
    return ch_network_nat_rules(&nat);
}

static void
test_rules(gconstpointer data)
{
    const struct Case *c = data;
    g_autoptr(GArray) rules = make_rules(c);
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < rules->len; i++) {
        const ChNftRule *rule = &g_array_index(rules, ChNftRule, i);
        g_autofree char *line = ch_nft_rule_text(rule);

        g_string_append_printf(text, "%s: %s\n", rule->chain, line);
    }
    g_assert_cmpstr(text->str, ==, c->rules);
}

static void
test_judge(void)
{
    g_autoptr(GArray) rules = make_rules(&cases[0]);
    ChNftCounts counts = {.table = "nat"};
    const ChNftChain *chains = ch_network_nat_chains(&counts.n_chains);

    counts.chains = chains;
    g_assert_cmpuint(counts.n_chains, ==, 6);
    g_assert_cmpint(ch_network_nat_judge(rules, &counts, false), ==, CH_NETWORK_NAT_ADD);
    /* in each chain what is wanted: prerouting 1, output 1, postrouting 2, the two of ours 1 each
     */
    memcpy(counts.counts, (const unsigned[]){1, 0, 1, 2, 1, 1}, 6 * sizeof(unsigned));
    g_assert_cmpint(ch_network_nat_judge(rules, &counts, false), ==, CH_NETWORK_NAT_DONE);
    counts.counts[0]++; /* somebody else's */
    g_assert_cmpint(ch_network_nat_judge(rules, &counts, true), ==, CH_NETWORK_NAT_DONE);
    counts.counts[3] = 1;
    g_assert_cmpint(ch_network_nat_judge(rules, &counts, false), ==, CH_NETWORK_NAT_REDO);
    /* Others' rules in a fresh pod are no trace of ours; after a set-up that was begun they may be.
     */
    memcpy(counts.counts, (const unsigned[]){1, 0, 0, 1, 0, 0}, 6 * sizeof(unsigned));
    g_assert_cmpint(ch_network_nat_judge(rules, &counts, false), ==, CH_NETWORK_NAT_ADD);
    g_assert_cmpint(ch_network_nat_judge(rules, &counts, true), ==, CH_NETWORK_NAT_REDO);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_rules);
    g_test_add_func("/network-nat/judges-by-number", test_judge);
    return g_test_run();
}
