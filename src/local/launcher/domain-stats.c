/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/domain-stats.h"

#include "local/launcher/alias.h"

typedef struct {
    const char *key;   /* in the document; KEYSet tells whether the value counts */
    const char *field; /* libvirt's; NULL: never there */
    bool is_text;
} Stat;

/* clang-format off */
static const Stat cpu_stats[] = {
    { "Time",   "time",   false },
    { "User",   "user",   false },
    { "System", "system", false },
};

static const Stat memory_stats[] = {
    { "Unused",        "unused",      false },
    { "Cached",        "disk_caches", false },
    { "Available",     "available",   false },
    { "ActualBalloon", "current",     false },
    { "RSS",           "rss",         false },
    { "SwapIn",        "swap_in",     false },
    { "SwapOut",       "swap_out",    false },
    { "MajorFault",    "major_fault", false },
    { "MinorFault",    "minor_fault", false },
    { "Usable",        "usable",      false },
    { "Total",         "current",     false },
};

/* Filled by migrations alone. */
static const Stat migration_stats[] = {
    { "DataTotal",     NULL, false },
    { "DataProcessed", NULL, false },
    { "MemoryBps",     NULL, false },
    { "DataRemaining", NULL, false },
    { "MemDirtyRate",  NULL, false },
};

static const Stat vcpu_stats[] = {
    { "State", "state", false },
    { "Time",  "time",  false },
    { "Wait",  "wait",  false },
    { "Delay", "delay", false },
};

static const Stat net_stats[] = {
    { "RxBytes", "rx.bytes", false },
    { "RxPkts",  "rx.pkts",  false },
    { "RxErrs",  "rx.errs",  false },
    { "RxDrop",  "rx.drop",  false },
    { "TxBytes", "tx.bytes", false },
    { "TxPkts",  "tx.pkts",  false },
    { "TxErrs",  "tx.errs",  false },
    { "TxDrop",  "tx.drop",  false },
};

static const Stat block_stats[] = {
    { "BackingIndex", "backingIndex", false },
    { "Path",         "path",         true  },
    { "RdReqs",       "rd.reqs",      false },
    { "RdBytes",      "rd.bytes",     false },
    { "RdTimes",      "rd.times",     false },
    { "WrReqs",       "wr.reqs",      false },
    { "WrBytes",      "wr.bytes",     false },
    { "WrTimes",      "wr.times",     false },
    { "FlReqs",       "fl.reqs",      false },
    { "FlTimes",      "fl.times",     false },
    { "Errors",       "errors",       false },
    { "Allocation",   "allocation",   false },
    { "Capacity",     "capacity",     false },
    { "Physical",     "physical",     false },
};

static const Stat dirty_rate_stats[] = {
    { "CalcStatus",         "calc_status",          false },
    { "CalcStartTime",      "calc_start_time",      false },
    { "CalcPeriod",         "calc_period",          false },
    { "MegabytesPerSecond", "megabytes_per_second", false },
};

/* Known to newer agents only. */
static const Stat load_stats[] = {
    { "Load1m",  NULL, false },
    { "Load5m",  NULL, false },
    { "Load15m", NULL, false },
};
/* clang-format on */

static void
set_flag(ChJson *json, const char *key, bool is_set)
{
    g_autofree char *flag = g_strconcat(key, "Set", NULL);

    ch_json_set_bool(json, flag, is_set);
}

static void
add_stat(ChJson *json, const Stat *stat, const ChParams *params, const char *prefix)
{
    guint64 value = 0;

    if (stat->is_text) {
        g_autofree char *text = ch_params_dup_string(params, prefix, stat->field);

        set_flag(json, stat->key, text != NULL);
        ch_json_set_string(json, stat->key, text == NULL ? "" : text);
        return;
    }
    const bool is_set =
        stat->field != NULL && ch_params_get_unsigned(params, prefix, stat->field, &value);
    set_flag(json, stat->key, is_set);
    ch_json_set_int(json, stat->key, (int64_t)MIN(value, G_MAXINT64));
}

static ChJson *
add_stats(
    ChJson *json, const Stat *stats, gsize n_stats, const ChParams *params, const char *prefix)
{
    for (gsize i = 0; i < n_stats; i++)
        add_stat(json, &stats[i], params, prefix);
    return json;
}
#define ADD_STATS(json, stats, params, prefix)                                                     \
    add_stats(json, stats, G_N_ELEMENTS(stats), params, prefix)

/* The name the VMI gives to the device behind @target: its alias without libvirt's mark. */
static char *
dup_alias(const xmlNode *xml, const char *element, const char *target)
{
    xmlNode *device = ch_xml_child(ch_xml_child(xml, "devices"), element);

    for (; device != NULL; device = ch_xml_next(device)) {
        g_autofree char *dev = ch_xml_dup_attribute(ch_xml_child(device, "target"), "dev");
        g_autofree char *alias = ch_xml_dup_attribute(ch_xml_child(device, "alias"), "name");

        const char *name = ch_alias_user_name(alias);

        if (g_strcmp0(dev, target) == 0 && alias != NULL)
            return g_strdup(name != NULL ? name : alias);
    }
    return NULL;
}

static ChJson *
build_vcpus(const ChParams *params)
{
    const guint n_vcpus = ch_params_count(params, "vcpu.", "current");
    ChJson *list = ch_json_new_array();

    for (guint i = 0; i < n_vcpus; i++) {
        g_autofree char *prefix = g_strdup_printf("vcpu.%u.", i);

        ch_json_append(list, ADD_STATS(ch_json_new_object(), vcpu_stats, params, prefix));
    }
    return list;
}

static ChJson *
build_nets(const ChStatsInput *input)
{
    const guint n_nets = ch_params_count(&input->params, "net.", "count");
    ChJson *list = ch_json_new_array();

    for (guint i = 0; i < n_nets; i++) {
        g_autofree char *prefix = g_strdup_printf("net.%u.", i);
        g_autofree char *name = ch_params_dup_string(&input->params, prefix, "name");
        g_autofree char *alias = dup_alias(input->xml, "interface", name);
        ChJson *net = ch_json_new_object();

        set_flag(net, "Name", name != NULL);
        ch_json_set_string(net, "Name", name == NULL ? "" : name);
        set_flag(net, "Alias", alias != NULL);
        ch_json_set_string(net, "Alias", alias == NULL ? "" : alias);
        ch_json_append(list, ADD_STATS(net, net_stats, &input->params, prefix));
    }
    return list;
}

static ChJson *
build_blocks(const ChStatsInput *input)
{
    const guint n_blocks = ch_params_count(&input->params, "block.", "count");
    ChJson *list = ch_json_new_array();

    for (guint i = 0; i < n_blocks; i++) {
        g_autofree char *prefix = g_strdup_printf("block.%u.", i);
        g_autofree char *name = ch_params_dup_string(&input->params, prefix, "name");
        g_autofree char *alias = dup_alias(input->xml, "disk", name);
        ChJson *block = ch_json_new_object();

        set_flag(block, "Name", name != NULL);
        ch_json_set_string(block, "Name", name == NULL ? "" : name);
        ch_json_set_string(block, "Alias", alias == NULL ? "" : alias);
        ch_json_append(list, ADD_STATS(block, block_stats, &input->params, prefix));
    }
    return list;
}

ChJson *
ch_domain_stats_build(const ChStatsInput *input)
{
    const ChParams *params = &input->params;
    ChJson *json = ch_json_new_object();

    ch_json_set_string(json, "Name", input->name);
    ch_json_set_string(json, "UUID", input->uuid);
    ADD_STATS(ch_json_ensure_object(json, "Cpu"), cpu_stats, params, "cpu.");
    ADD_STATS(ch_json_ensure_object(json, "Memory"), memory_stats, params, "balloon.");
    ADD_STATS(ch_json_ensure_object(json, "MigrateDomainJobInfo"), migration_stats, params, "");
    ch_json_set(json, "Vcpu", build_vcpus(params));
    ch_json_set(json, "Net", build_nets(input));
    ch_json_set(json, "Block", build_blocks(input));
    ch_json_set_bool(json, "CPUMapSet", input->cpu_map != NULL);
    ch_json_set(json, "CPUMap", input->cpu_map == NULL ? NULL : ch_json_dup(input->cpu_map));
    ADD_STATS(ch_json_ensure_object(json, "DirtyRate"), dirty_rate_stats, params, "dirtyrate.");
    ADD_STATS(ch_json_ensure_object(json, "Load"), load_stats, params, "");
    return json;
}
