/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/domain-stats.h"

#include "local/launcher/test-golden.h"

typedef struct {
    const char *name;
    guint64 value;
} Number;

/* What libvirt must have said for the golden answer. */
static const Number numbers[] = {
    {"cpu.time", 530000000},      {"cpu.user", 400000000},       {"cpu.system", 130000000},
    {"balloon.current", 131072},  {"balloon.rss", 56440},        {"vcpu.0.time", 180000000},
    {"vcpu.0.wait", 0},           {"vcpu.0.delay", 12851838},    {"net.0.rx.bytes", 110},
    {"net.0.rx.pkts", 1},         {"net.0.rx.errs", 0},          {"net.0.rx.drop", 0},
    {"net.0.tx.bytes", 0},        {"net.0.tx.pkts", 0},          {"net.0.tx.errs", 0},
    {"net.0.tx.drop", 0},         {"block.0.rd.reqs", 1},        {"block.0.rd.bytes", 512},
    {"block.0.rd.times", 128506}, {"block.0.wr.reqs", 0},        {"block.0.wr.bytes", 0},
    {"block.0.wr.times", 0},      {"block.0.fl.reqs", 0},        {"block.0.fl.times", 0},
    {"block.0.allocation", 0},    {"block.0.capacity", 1048576}, {"block.0.physical", 1048576}};

static void
fill(ChParams *params)
{
    int max = 0;

    *params = (ChParams){0};
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        g_assert_cmpint(
            virTypedParamsAddULLong(
                &params->items, &params->n_items, &max, numbers[i].name, numbers[i].value),
            ==,
            0);
    virTypedParamsAddUInt(&params->items, &params->n_items, &max, "vcpu.current", 1);
    virTypedParamsAddInt(&params->items, &params->n_items, &max, "vcpu.0.state", 1);
    virTypedParamsAddUInt(&params->items, &params->n_items, &max, "net.count", 1);
    virTypedParamsAddString(&params->items, &params->n_items, &max, "net.0.name", "tap0");
    virTypedParamsAddUInt(&params->items, &params->n_items, &max, "block.count", 1);
    virTypedParamsAddString(&params->items, &params->n_items, &max, "block.0.name", "vda");
    virTypedParamsAddUInt(&params->items, &params->n_items, &max, "block.0.backingIndex", 1);
    virTypedParamsAddString(
        &params->items,
        &params->n_items,
        &max,
        "block.0.path",
        "/var/run/kubevirt-ephemeral-disks/cloud-init-data/default/vm1/noCloud.iso");
    virTypedParamsAddInt(&params->items, &params->n_items, &max, "dirtyrate.calc_status", 0);
    virTypedParamsAddLLong(&params->items, &params->n_items, &max, "dirtyrate.calc_start_time", 0);
    virTypedParamsAddInt(&params->items, &params->n_items, &max, "dirtyrate.calc_period", 0);
}

static void
test_equals_a_real_launchers_answer(void)
{
    const char *shared = g_getenv("CH_SHARED");
    g_autofree char *path =
        g_build_filename(shared == NULL ? "" : shared, "golden/launcher/GetDomainStats.json", NULL);
    g_autofree char *golden = NULL;
    g_autofree char *xml = golden_read("domain-live.xml");
    g_autoptr(xmlDoc) doc = ch_xml_parse(xml, NULL);
    g_autoptr(ChJson) cpu_map = ch_json_parse("[[true,true]]", -1, NULL);
    ChStatsInput input = {
        .name = "default_vm1",
        .uuid = "5d307ca9-b3ef-428c-8861-06e72d69f223",
        .xml = xmlDocGetRootElement(doc),
        .cpu_map = cpu_map,
    };

    if (!g_file_get_contents(path, &golden, NULL, NULL)) {
        g_test_skip("the golden answer is not here: set CH_SHARED");
        return;
    }
    fill(&input.params);
    g_autoptr(ChJson) json = ch_domain_stats_build(&input);
    g_autofree char *text = ch_json_print(json, NULL);
    g_assert_cmpstr(text, ==, g_strchomp(golden));
    virTypedParamsFree(input.params.items, input.params.n_items);
}

static void
test_counts_are_capped(void)
{
    ChParams params = {0};
    int max = 0;

    virTypedParamsAddULLong(&params.items, &params.n_items, &max, "net.count", G_MAXUINT64);
    g_assert_cmpuint(ch_params_count(&params, "net.", "count"), ==, CH_PARAMS_MAX_COUNT);
    g_assert_cmpuint(ch_params_count(&params, "block.", "count"), ==, 0);
    virTypedParamsFree(params.items, params.n_items);
}

int
main(int argc, char **argv)
{
    ch_xml_init();
    virInitialize();
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/domain-stats/equals-a-real-launchers-answer",
                    test_equals_a_real_launchers_answer);
    g_test_add_func("/domain-stats/counts-are-capped", test_counts_are_capped);
    return g_test_run();
}
