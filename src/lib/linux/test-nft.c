/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/nft.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/base/errors.h"

static const ChNftChain chains[] = {{"output", true, 3, -100}, {"OWN", false, 0, 0}};

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
    const struct {
        ChNftRule rule;
        const char *text;
    } cases[] = {
        {{.saddr = {ip("10.0.2.2")}, .n_saddr = 1, .verdict = CH_NFT_MASQUERADE},
         "ip saddr 10.0.2.2 counter masquerade"},
        {{.iifname = "eth0", .verdict = CH_NFT_JUMP, .target = "OWN"},
         "iifname \"eth0\" counter jump OWN"},
        {{.oifname = "br", .verdict = CH_NFT_RETURN}, "oifname \"br\" counter return"},
        {{.protocol = IPPROTO_TCP,
          .ports = {49152, 49153},
          .n_ports = 2,
          .saddr = {ip("::1")},
          .n_saddr = 1,
          .verdict = CH_NFT_RETURN},
         "tcp dport { 49152, 49153 } ip6 saddr ::1 counter return"},
        {{.daddr = {ip("127.0.0.1"), ip("10.0.0.1")},
          .n_daddr = 2,
          .protocol = IPPROTO_UDP,
          .ports = {53},
          .n_ports = 1,
          .verdict = CH_NFT_DNAT,
          .to = ip("10.0.2.2")},
         "ip daddr { 127.0.0.1, 10.0.0.1 } udp dport 53 counter dnat to 10.0.2.2"},
        {{.protocol = IPPROTO_TCP,
          .ports = {80, 90},
          .n_ports = 2,
          .is_range = true,
          .verdict = CH_NFT_SNAT,
          .to = ip("10.0.2.1")},
         "tcp dport 80-90 counter snat to 10.0.2.1"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = ch_nft_rule_text(&cases[i].rule);

        g_assert_cmpstr(text, ==, cases[i].text);
    }
}

static void
test_protocols(void)
{
    g_assert_cmpuint(ch_nft_protocol("tcp"), ==, IPPROTO_TCP);
    g_assert_cmpuint(ch_nft_protocol("udp"), ==, IPPROTO_UDP);
    g_assert_cmpuint(ch_nft_protocol("TCP"), ==, 0);
    g_assert_cmpuint(ch_nft_protocol(""), ==, 0);
}

static GByteArray *
compose(bool flushes, gsize max_bytes, GError **error)
{
    const ChNftRule rules[] = {
        {.chain = "output",
         .protocol = IPPROTO_TCP,
         .ports = {1, 2},
         .n_ports = 2,
         .verdict = CH_NFT_RETURN},
        {.chain = "OWN", .verdict = CH_NFT_DNAT, .to = ip("10.0.2.2")},
    };

    return ch_nft_compose(AF_INET,
                          "nat",
                          chains,
                          G_N_ELEMENTS(chains),
                          rules,
                          G_N_ELEMENTS(rules),
                          flushes,
                          max_bytes,
                          error);
}

/* (transfer full): the messages' types, a '!' at those that want an acknowledgement */
static char *
types_of(const GByteArray *bytes)
{
    GString *text = g_string_new(NULL);
    gsize offset = 0;

    while (offset < bytes->len) {
        const struct nlmsghdr *message =
            (const struct nlmsghdr *)(gconstpointer)(bytes->data + offset);

        g_string_append_printf(
            text, "%x%s ", message->nlmsg_type, message->nlmsg_flags & NLM_F_ACK ? "!" : "");
        g_assert_cmpuint(message->nlmsg_len % 4, ==, 0);
        offset += message->nlmsg_len;
    }
    g_assert_cmpuint(offset, ==, bytes->len);
    return g_string_free(text, FALSE);
}

/* begin, table, two chains, set, its elements, two rules, end */
static void
test_transaction(void)
{
    g_autoptr(GByteArray) plain = compose(false, 10000, NULL);
    g_autoptr(GByteArray) flushing = compose(true, 10000, NULL);
    g_autofree char *plain_types = types_of(plain);
    g_autofree char *flushing_types = types_of(flushing);

    g_assert_cmpstr(plain_types, ==, "10 a00 a03 a03 a09 a0c a06 a06! 11 ");
    g_assert_cmpstr(flushing_types, ==, "10 a00 a03 a03 a08 a08 a09 a0c a06 a06! 11 ");
}

static void
test_limit(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(compose(false, 100, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

static void
make_rule(ChNetlinkMessage *message, const char *table, const char *chain)
{
    memset(message, 0, sizeof(*message));
    (void)mnl_nlmsg_put_header(message);
    message->header.nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
    (void)mnl_nlmsg_put_extra_header(&message->header, sizeof(struct nfgenmsg));
    mnl_attr_put_strz(&message->header, NFTA_RULE_TABLE, table);
    mnl_attr_put_strz(&message->header, NFTA_RULE_CHAIN, chain);
}

static void
test_count(void)
{
    ChNftCounts counts = {.table = "nat", .chains = chains, .n_chains = G_N_ELEMENTS(chains)};
    static const char *const others[][2] = {{"nat", "OWNER"}, {"nat", "OW"}, {"filter", "OWN"}};
    ChNetlinkMessage message;

    make_rule(&message, "nat", "OWN");
    g_assert_true(ch_nft_take(&counts, &message.header, NULL));
    g_assert_true(ch_nft_take(&counts, &message.header, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        make_rule(&message, others[i][0], others[i][1]);
        g_assert_true(ch_nft_take(&counts, &message.header, NULL));
    }
    g_assert_cmpuint(counts.counts[0], ==, 0);
    g_assert_cmpuint(counts.counts[1], ==, 2);
    message.header.nlmsg_len = sizeof(struct nlmsghdr) + 1;
    g_assert_false(ch_nft_take(&counts, &message.header, NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/nft/rules-as-people-write-them", test_text);
    g_test_add_func("/nft/knows-protocols", test_protocols);
    g_test_add_func("/nft/one-transaction", test_transaction);
    g_test_add_func("/nft/transaction-has-a-limit", test_limit);
    g_test_add_func("/nft/counts-rules", test_count);
    return g_test_run();
}
