/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/resource.h"

static void
test_paths(void)
{
    static const struct {
        const char *type, *namespace_, *name, *path;
    } cases[] = {
        {"vmi", "lab", "vm", "/apis/kubevirt.io/v1/namespaces/lab/virtualmachineinstances/vm"},
        {"vmi", NULL, NULL, "/apis/kubevirt.io/v1/virtualmachineinstances"},
        {"vm", NULL, NULL, "/apis/kubevirt.io/v1/virtualmachineinstances"},
        {"no", "lab", "n1", "/api/v1/nodes/n1"},
        {"pods", "a/b", "../x?y", "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3Fy"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = ch_cli_resource_path(
            ch_cli_resource_by_name(cases[i].type), cases[i].namespace_, cases[i].name);

        g_assert_cmpstr(path, ==, cases[i].path);
    }
}

static void
test_look_up(void)
{
    g_autofree char *list = ch_cli_resource_list();
    g_auto(GStrv) names = g_strsplit(list, ", ", -1);

    g_assert_cmpstr(names[0], ==, "vmi");
    for (gsize i = 0; names[i] != NULL; i++)
        g_assert_nonnull(ch_cli_resource_by_name(names[i]));
    g_assert_null(ch_cli_resource_by_name("virtualmachine"));
    g_assert_null(ch_cli_resource_by_kind("v1", "VirtualMachineInstance"));
    g_assert_true(ch_cli_resource_by_kind("kubevirt.io/v1", "VirtualMachineInstance") ==
                  ch_cli_vmis);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/resource/paths", test_paths);
    g_test_add_func("/resource/look-up", test_look_up);
    return g_test_run();
}
