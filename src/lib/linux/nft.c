/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/nft.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/base/errors.h"

#define MESSAGE_BYTES 4096 /* of one rule or set; the largest of ours are below 1 kB */

/* The nft tool's numbers of its data types, by which it prints a set's elements. */
#define TYPE_IPV4 7
#define TYPE_IPV6 8
#define TYPE_PORT 13

static const struct {
    const char *name;
    uint8_t number;
} protocols[] = {
    {"tcp", IPPROTO_TCP},
    {"udp", IPPROTO_UDP},
    {"sctp", IPPROTO_SCTP},
    {"dccp", IPPROTO_DCCP},
    {"udplite", IPPROTO_UDPLITE},
};

uint8_t
ch_nft_protocol(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(protocols); i++)
        if (g_str_equal(protocols[i].name, name))
            return protocols[i].number;
    return 0;
}

static const char *
protocol_name(uint8_t number)
{
    for (gsize i = 0; i < G_N_ELEMENTS(protocols); i++)
        if (protocols[i].number == number)
            return protocols[i].name;
    return "unknown";
}

/* --- text */

static void
append_ips(GString *text, const char *field, const ChIp ips[], unsigned n)
{
    char address[CH_IP_TEXT_SIZE];

    if (n == 0)
        return;
    g_string_append_printf(text, "%s %s ", ips[0].family == AF_INET ? "ip" : "ip6", field);
    if (n == 1) {
        g_string_append_printf(text, "%s ", ch_ip_print(&ips[0], address));
        return;
    }
    g_string_append(text, "{ ");
    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", ch_ip_print(&ips[i], address));
    g_string_append(text, " } ");
}

static void
append_ports(GString *text, const ChNftRule *rule)
{
    if (rule->n_ports == 0)
        return;
    g_string_append_printf(text, "%s dport ", protocol_name(rule->protocol));
    if (rule->is_range) {
        g_string_append_printf(text, "%u-%u ", rule->ports[0], rule->ports[1]);
    } else if (rule->n_ports == 1) {
        g_string_append_printf(text, "%u ", rule->ports[0]);
    } else {
        for (unsigned i = 0; i < rule->n_ports; i++)
            g_string_append_printf(text, "%s%u", i > 0 ? ", " : "{ ", rule->ports[i]);
        g_string_append(text, " } ");
    }
}

static void
append_verdict(GString *text, const ChNftRule *rule)
{
    char address[CH_IP_TEXT_SIZE];

    switch (rule->verdict) {
    case CH_NFT_MASQUERADE:
        g_string_append(text, "masquerade");
        return;
    case CH_NFT_RETURN:
        g_string_append(text, "return");
        return;
    case CH_NFT_JUMP:
        g_string_append_printf(text, "jump %s", rule->target);
        return;
    case CH_NFT_DNAT:
    case CH_NFT_SNAT:
        g_string_append_printf(text,
                               "%s to %s",
                               rule->verdict == CH_NFT_DNAT ? "dnat" : "snat",
                               ch_ip_print(&rule->to, address));
        return;
    case CH_NFT_VERDICT_INVALID:
    case CH_NFT_VERDICT_N:
        break;
    }
    g_assert_not_reached();
}

char *
ch_nft_rule_text(const ChNftRule *rule)
{
    GString *text = g_string_new(NULL);

    if (rule->iifname != NULL)
        g_string_append_printf(text, "iifname \"%s\" ", rule->iifname);
    if (rule->oifname != NULL)
        g_string_append_printf(text, "oifname \"%s\" ", rule->oifname);
    append_ips(text, "daddr", rule->daddr, rule->n_daddr);
    append_ports(text, rule);
    append_ips(text, "saddr", rule->saddr, rule->n_saddr);
    g_string_append(text, "counter ");
    append_verdict(text, rule);
    return g_string_free(text, FALSE);
}

/* --- messages */

typedef struct {
    GByteArray *bytes;
    uint8_t family; /* AF_*: the numbers are netfilter's too */
    const char *table;
    uint32_t n_sets; /* made so far: their numbers within the transaction */
} Batch;

/* A message in a buffer of its own, which is then appended. Returns: its header */
static struct nlmsghdr *
start(const Batch *batch, void *buffer, uint16_t type, uint16_t flags)
{
    return nftnl_nlmsg_build_hdr(buffer, type, batch->family, (uint16_t)(NLM_F_REQUEST | flags), 0);
}

static void
finish(Batch *batch, const struct nlmsghdr *message)
{
    g_byte_array_append(batch->bytes, (const guint8 *)message, message->nlmsg_len);
}

static void
add_border(Batch *batch, bool is_begin)
{
    char buffer[sizeof(struct nlmsghdr) + sizeof(struct nfgenmsg)] __attribute__((aligned(8)));

    if (is_begin)
        (void)nftnl_batch_begin(buffer, 0);
    else
        (void)nftnl_batch_end(buffer, 0);
    finish(batch, (const struct nlmsghdr *)(gpointer)buffer);
}

static void
add_table(Batch *batch)
{
    char buffer[MESSAGE_BYTES] __attribute__((aligned(8)));
    struct nlmsghdr *message = start(batch, buffer, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    struct nftnl_table *table = nftnl_table_alloc();

    nftnl_table_set_str(table, NFTNL_TABLE_NAME, batch->table);
    nftnl_table_nlmsg_build_payload(message, table);
    nftnl_table_free(table);
    finish(batch, message);
}

static void
add_chain(Batch *batch, const ChNftChain *described)
{
    char buffer[MESSAGE_BYTES] __attribute__((aligned(8)));
    struct nlmsghdr *message = start(batch, buffer, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    struct nftnl_chain *chain = nftnl_chain_alloc();

    nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, batch->table);
    nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, described->name);
    if (described->is_base) {
        nftnl_chain_set_u32(chain, NFTNL_CHAIN_HOOKNUM, described->hook);
        nftnl_chain_set_s32(chain, NFTNL_CHAIN_PRIO, described->priority);
        nftnl_chain_set_str(chain, NFTNL_CHAIN_TYPE, "nat");
    }
    nftnl_chain_nlmsg_build_payload(message, chain);
    nftnl_chain_free(chain);
    finish(batch, message);
}

static void
flush_chain(Batch *batch, const char *name)
{
    char buffer[MESSAGE_BYTES] __attribute__((aligned(8)));
    struct nlmsghdr *message = start(batch, buffer, NFT_MSG_DELRULE, 0);
    struct nftnl_rule *rule = nftnl_rule_alloc();

    nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, batch->table);
    nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, name);
    nftnl_rule_nlmsg_build_payload(message, rule);
    nftnl_rule_free(rule);
    finish(batch, message);
}

/* A constant set without a name of its own ("__set%d": the kernel puts a number in). Returns: its
 * number within the transaction */
static uint32_t
add_set(Batch *batch, uint32_t type, gsize n_bytes, const void *items, unsigned n)
{
    char buffer[MESSAGE_BYTES] __attribute__((aligned(8)));
    struct nlmsghdr *message = start(batch, buffer, NFT_MSG_NEWSET, NLM_F_CREATE);
    struct nftnl_set *set = nftnl_set_alloc();

    nftnl_set_set_str(set, NFTNL_SET_TABLE, batch->table);
    nftnl_set_set_str(set, NFTNL_SET_NAME, "__set%d");
    nftnl_set_set_u32(set, NFTNL_SET_ID, ++batch->n_sets);
    nftnl_set_set_u32(set, NFTNL_SET_FLAGS, NFT_SET_ANONYMOUS | NFT_SET_CONSTANT);
    nftnl_set_set_u32(set, NFTNL_SET_KEY_TYPE, type);
    nftnl_set_set_u32(set, NFTNL_SET_KEY_LEN, (uint32_t)n_bytes);
    nftnl_set_set_u32(set, NFTNL_SET_DESC_SIZE, n);
    for (unsigned i = 0; i < n; i++) {
        struct nftnl_set_elem *element = nftnl_set_elem_alloc();

        nftnl_set_elem_set(
            element, NFTNL_SET_ELEM_KEY, (const char *)items + i * n_bytes, (uint32_t)n_bytes);
        nftnl_set_elem_add(set, element);
    }
    nftnl_set_nlmsg_build_payload(message, set);
    finish(batch, message);
    message = start(batch, buffer, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
    nftnl_set_elems_nlmsg_build_payload(message, set);
    finish(batch, message);
    nftnl_set_free(set);
    return batch->n_sets;
}

/* --- expressions; everything goes through register 1 */

static struct nftnl_expr *
add_expr(struct nftnl_rule *rule, const char *name)
{
    struct nftnl_expr *expr = nftnl_expr_alloc(name);

    nftnl_rule_add_expr(rule, expr);
    return expr;
}

static void
load_meta(struct nftnl_rule *rule, uint32_t key)
{
    struct nftnl_expr *expr = add_expr(rule, "meta");

    nftnl_expr_set_u32(expr, NFTNL_EXPR_META_KEY, key);
    nftnl_expr_set_u32(expr, NFTNL_EXPR_META_DREG, NFT_REG_1);
}

static void
load_payload(struct nftnl_rule *rule, uint32_t base, uint32_t offset, gsize n_bytes)
{
    struct nftnl_expr *expr = add_expr(rule, "payload");

    nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_BASE, base);
    nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
    nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_LEN, (uint32_t)n_bytes);
    nftnl_expr_set_u32(expr, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
}

static void
compare(struct nftnl_rule *rule, uint32_t op, const void *data, gsize n_bytes)
{
    struct nftnl_expr *expr = add_expr(rule, "cmp");

    nftnl_expr_set_u32(expr, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
    nftnl_expr_set_u32(expr, NFTNL_EXPR_CMP_OP, op);
    nftnl_expr_set(expr, NFTNL_EXPR_CMP_DATA, data, (uint32_t)n_bytes);
}

static void
look_up(struct nftnl_rule *rule, uint32_t set_number)
{
    struct nftnl_expr *expr = add_expr(rule, "lookup");

    nftnl_expr_set_u32(expr, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
    nftnl_expr_set_str(expr, NFTNL_EXPR_LOOKUP_SET, "__set%d");
    nftnl_expr_set_u32(expr, NFTNL_EXPR_LOOKUP_SET_ID, set_number);
}

static void
match_link(struct nftnl_rule *rule, uint32_t key, const char *name)
{
    char padded[IFNAMSIZ] = "";

    g_strlcpy(padded, name, sizeof(padded));
    load_meta(rule, key);
    compare(rule, NFT_CMP_EQ, padded, sizeof(padded));
}

static void
match_ips(Batch *batch, struct nftnl_rule *rule, bool is_source, const ChIp ips[], unsigned n)
{
    const bool is_v4 = batch->family == AF_INET;
    const gsize n_bytes = is_v4 ? 4 : 16;
    const uint32_t offset = is_v4 ? (is_source ? 12 : 16) : (is_source ? 8 : 24);
    char items[CH_NFT_MAX_IPS * 16];

    if (n == 0)
        return;
    for (unsigned i = 0; i < n; i++)
        memcpy(items + i * n_bytes, ips[i].bytes, n_bytes);
    load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, offset, n_bytes);
    if (n == 1)
        compare(rule, NFT_CMP_EQ, items, n_bytes);
    else
        look_up(rule, add_set(batch, is_v4 ? TYPE_IPV4 : TYPE_IPV6, n_bytes, items, n));
}

static void
match_ports(Batch *batch, struct nftnl_rule *rule, const ChNftRule *described)
{
    uint16_t ports[CH_NFT_MAX_PORTS];

    if (described->n_ports == 0)
        return;
    for (unsigned i = 0; i < described->n_ports; i++)
        ports[i] = htons(described->ports[i]);
    load_meta(rule, NFT_META_L4PROTO);
    compare(rule, NFT_CMP_EQ, &described->protocol, 1);
    load_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(ports[0]));
    if (described->is_range) {
        compare(rule, NFT_CMP_GTE, &ports[0], sizeof(ports[0]));
        compare(rule, NFT_CMP_LTE, &ports[1], sizeof(ports[0]));
    } else if (described->n_ports == 1) {
        compare(rule, NFT_CMP_EQ, &ports[0], sizeof(ports[0]));
    } else {
        look_up(rule, add_set(batch, TYPE_PORT, sizeof(ports[0]), ports, described->n_ports));
    }
}

static void
decide(struct nftnl_rule *rule, uint32_t verdict, const char *target)
{
    struct nftnl_expr *expr = add_expr(rule, "immediate");

    nftnl_expr_set_u32(expr, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
    nftnl_expr_set_u32(expr, NFTNL_EXPR_IMM_VERDICT, verdict);
    if (target != NULL)
        nftnl_expr_set_str(expr, NFTNL_EXPR_IMM_CHAIN, target);
}

static void
translate(const Batch *batch, struct nftnl_rule *rule, uint32_t type, const ChIp *to)
{
    struct nftnl_expr *expr = add_expr(rule, "immediate");

    nftnl_expr_set_u32(expr, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
    nftnl_expr_set(expr, NFTNL_EXPR_IMM_DATA, to->bytes, (uint32_t)ch_ip_n_bytes(to));
    expr = add_expr(rule, "nat");
    nftnl_expr_set_u32(expr, NFTNL_EXPR_NAT_TYPE, type);
    nftnl_expr_set_u32(expr, NFTNL_EXPR_NAT_FAMILY, batch->family);
    nftnl_expr_set_u32(expr, NFTNL_EXPR_NAT_REG_ADDR_MIN, NFT_REG_1);
}

static void
add_verdict(const Batch *batch, struct nftnl_rule *rule, const ChNftRule *described)
{
    switch (described->verdict) {
    case CH_NFT_MASQUERADE:
        (void)add_expr(rule, "masq");
        return;
    case CH_NFT_RETURN:
        decide(rule, (uint32_t)NFT_RETURN, NULL);
        return;
    case CH_NFT_JUMP:
        decide(rule, (uint32_t)NFT_JUMP, described->target);
        return;
    case CH_NFT_DNAT:
        translate(batch, rule, NFT_NAT_DNAT, &described->to);
        return;
    case CH_NFT_SNAT:
        translate(batch, rule, NFT_NAT_SNAT, &described->to);
        return;
    case CH_NFT_VERDICT_INVALID:
    case CH_NFT_VERDICT_N:
        break;
    }
    g_assert_not_reached();
}

static void
add_rule(Batch *batch, const ChNftRule *described, bool is_last)
{
    char buffer[MESSAGE_BYTES] __attribute__((aligned(8)));
    struct nftnl_rule *rule = nftnl_rule_alloc();
    struct nlmsghdr *message;

    nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, batch->table);
    nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, described->chain);
    nftnl_rule_set_u32(rule, NFTNL_RULE_FAMILY, batch->family);
    if (described->iifname != NULL)
        match_link(rule, NFT_META_IIFNAME, described->iifname);
    if (described->oifname != NULL)
        match_link(rule, NFT_META_OIFNAME, described->oifname);
    match_ips(batch, rule, false, described->daddr, described->n_daddr);
    match_ports(batch, rule, described);
    match_ips(batch, rule, true, described->saddr, described->n_saddr);
    (void)add_expr(rule, "counter");
    add_verdict(batch, rule, described);

    message = start(batch,
                    buffer,
                    NFT_MSG_NEWRULE,
                    (uint16_t)(NLM_F_CREATE | NLM_F_APPEND | (is_last ? NLM_F_ACK : 0)));
    nftnl_rule_nlmsg_build_payload(message, rule);
    nftnl_rule_free(rule);
    finish(batch, message);
}

GByteArray *
ch_nft_compose(uint8_t family,
               const char *table,
               const ChNftChain chains[],
               gsize n_chains,
               const ChNftRule rules[],
               gsize n_rules,
               bool flushes,
               gsize max_bytes,
               GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    Batch batch = {.bytes = bytes, .family = family, .table = table};

    add_border(&batch, true);
    add_table(&batch);
    for (gsize i = 0; i < n_chains; i++)
        add_chain(&batch, &chains[i]);
    for (gsize i = 0; flushes && i < n_chains; i++)
        flush_chain(&batch, chains[i].name);
    for (gsize i = 0; i < n_rules; i++)
        add_rule(&batch, &rules[i], i + 1 == n_rules);
    add_border(&batch, false);
    if (bytes->len > max_bytes) {
        ch_fail(error,
                CH_ERROR_LIMIT,
                "%zu rules take %u bytes, more than the %zu of a transaction",
                n_rules,
                bytes->len,
                max_bytes);
        return NULL;
    }
    return g_steal_pointer(&bytes);
}

/* --- what is there */

static const ChNetlinkRule rule_policy[] = {
    [NFTA_RULE_TABLE] = {1, NFT_TABLE_MAXNAMELEN},
    [NFTA_RULE_CHAIN] = {1, NFT_CHAIN_MAXNAMELEN},
};

static bool
text_is(const struct nlattr *attribute, const char *text)
{
    const gsize length = strlen(text);

    return attribute != NULL && mnl_attr_get_payload_len(attribute) == length + 1 &&
           memcmp(mnl_attr_get_payload(attribute), text, length + 1) == 0;
}

bool
ch_nft_take(gpointer data, const struct nlmsghdr *message, GError **error)
{
    ChNftCounts *counts = data;
    const struct nlattr *found[G_N_ELEMENTS(rule_policy)];

    if (message->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE))
        return true;
    if (mnl_nlmsg_get_payload_len(message) < sizeof(struct nfgenmsg))
        return ch_fail(error, CH_ERROR_INVALID, "netlink rule is cut off");
    if (!ch_netlink_parse(mnl_nlmsg_get_payload_offset(message, sizeof(struct nfgenmsg)),
                          mnl_nlmsg_get_payload_len(message) - sizeof(struct nfgenmsg),
                          rule_policy,
                          G_N_ELEMENTS(rule_policy),
                          found,
                          error))
        return false;
    for (gsize i = 0; i < counts->n_chains && text_is(found[NFTA_RULE_TABLE], counts->table); i++)
        if (text_is(found[NFTA_RULE_CHAIN], counts->chains[i].name))
            counts->counts[i]++;
    return true;
}

bool
ch_nft_count(ChNetlink *netlink, uint8_t family, ChNftCounts *counts, GError **error)
{
    ChNetlinkMessage request = {0};
    struct nlmsghdr *message = nftnl_nlmsg_build_hdr(
        request.bytes, NFT_MSG_GETRULE, family, NLM_F_REQUEST | NLM_F_DUMP, 0);

    mnl_attr_put_strz(message, NFTA_RULE_TABLE, counts->table);
    memset(counts->counts, 0, sizeof(counts->counts));
    return ch_netlink_dump(netlink, &request, ch_nft_take, counts, error);
}
