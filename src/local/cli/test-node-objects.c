/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/node-objects.h"

static const ChNodeFacts facts = {.name = "box",
                                  .architecture = "amd64",
                                  .kernel = "6.1",
                                  .os_image = "Debian",
                                  .n_cpus = 2,
                                  .memory_kib = 1024};

static void
test_node(void)
{
    g_autoptr(ChJson) node = ch_node_object_new(&facts, 0);

    g_assert_cmpstr(ch_json_string_at(node, "metadata", "name"), ==, "box");
    g_assert_false(ch_json_has(ch_json_at(node, "metadata"), "namespace"));
    g_assert_cmpstr(ch_json_string_at(node, "status", "allocatable", "memory"), ==, "1024Ki");
    g_assert_cmpstr(ch_json_string_at(node, "status", "nodeInfo", "architecture"), ==, "amd64");
}

static void
test_kubevirt(void)
{
    g_autoptr(ChJson) kubevirt = ch_kubevirt_object_new(true);

    g_assert_true(ch_json_bool_at(
        kubevirt, false, "spec", "configuration", "developerConfiguration", "useEmulation"));
    /* the agent takes no other's word */
    g_assert_cmpstr(ch_json_string_at(kubevirt, "status", "phase"), ==, "Deployed");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/node-objects/node", test_node);
    g_test_add_func("/node-objects/kubevirt", test_kubevirt);
    return g_test_run();
}
