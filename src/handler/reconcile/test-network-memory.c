/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/network-memory.h"

#include "handler/reconcile/test-support.h"

#define MIB INT64_C(1048576)

/* Plugins: a asks for 100 MiB, b for 50 MiB, others for none. */
static const char config_text[] =
    "{'spec':{'configuration':{'network':{'binding':{"
    "'a':{'computeResourceOverhead':{'requests':{'memory':'100Mi','cpu':'1'}}},"
    "'b':{'computeResourceOverhead':{'requests':{'memory':52428800}}},"
    "'cpu':{'computeResourceOverhead':{'requests':{'cpu':'1'},'limits':{'memory':'1Gi'}}},"
    "'odd':{'computeResourceOverhead':{'requests':{'memory':'much'}}},"
    "'huge':{'computeResourceOverhead':{'requests':{'memory':'9223372036854775807'}}},"
    "'none':{}}}}}}";

#define PLUGIN(name, plugin) "{'name':'" name "','binding':{'name':'" plugin "'}}"
#define PASST(name)          "{'name':'" name "','passtBinding':{}}"

static const struct MemoryCase {
    const char *path;
    const char *interfaces;
    int64_t expect;
} cases[] = {
    /* clang-format off */
    /* spec:04-23.8#2a */
    {"/network-memory/no-interface", "", 0},
    /* spec:04-23.8#2a */
    {"/network-memory/no-plugin", "{'name':'m','masquerade':{}}", 0},
    /* spec:04-23.8#2a */
    {"/network-memory/without-request", PLUGIN("i", "none") "," PLUGIN("j", "cpu"), 0},
    /* spec:04-23.8#2a */
    {"/network-memory/not-registered", PLUGIN("i", "unheard"), 0},
    {"/network-memory/no-quantity", PLUGIN("i", "odd"), 0},
    /* spec:04-23.8#2b spec:04-23.8#2a: what b asks for is unused */
    {"/network-memory/one", PLUGIN("i", "a") ",{'name':'m','bridge':{}}", 100 * MIB},
    /* spec:04-23.8#2b */
    {"/network-memory/twice-the-same", PLUGIN("i", "a") "," PLUGIN("j", "a"), 100 * MIB},
    /* spec:04-23.8#2b */
    {"/network-memory/two", PLUGIN("i", "a") "," PLUGIN("j", "b") "," PLUGIN("k", "unheard"), 150 * MIB},
    /* spec:04-23.8#2c */
    {"/network-memory/passt", PASST("i"), 250 * MIB},
    {"/network-memory/passt-twice", PASST("i") "," PASST("j"), 250 * MIB},
    /* spec:04-23.8#2c */
    {"/network-memory/passt-beside", PASST("i") "," PLUGIN("j", "a"), 350 * MIB},
    {"/network-memory/as-much-as-can-be", PASST("i") "," PLUGIN("j", "huge") "," PLUGIN("k", "a"), G_MAXINT64},
    /* clang-format on */
};

static void
test_memory(gconstpointer data)
{
    const struct MemoryCase *c = data;
    g_autoptr(ChJson) kubevirt = parse_json(config_text);
    g_autoptr(GError) error = NULL;
    g_autoptr(ChClusterConfig) config = ch_cluster_config_parse(kubevirt, "node01", &error);
    g_autofree char *text =
        g_strdup_printf("{'spec':{'domain':{'devices':{'interfaces':[%s]}}}}", c->interfaces);
    g_autoptr(ChJson) vmi = parse_json(text);

    g_assert_no_error(error);
    g_assert_cmpint(ch_network_memory(config, vmi), ==, c->expect);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_memory);
    return g_test_run();
}
