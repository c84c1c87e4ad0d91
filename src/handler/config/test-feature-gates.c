/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/feature-gates.h"

#include "lib/base/errors.h"

static ChFeatureGates *
parse(const char *developer, GError **error)
{
    g_autofree char *text = g_strdelimit(g_strdup(developer), "'", '"');
    g_autoptr(ChJson) json = ch_json_parse(text, -1, NULL);

    g_assert_nonnull(json);
    return ch_feature_gates_parse(json, error);
}

/* spec:08-13.2#40 spec:08-13.1#32 */
static const struct GateCase {
    const char *path;
    const char *developer;
    const char *gate;
    bool is_on;
} cases[] = {
    {"ga", "{}", "LiveMigration", true},
    {"ga-disabled", "{'disabledFeatureGates':['LiveMigration']}", "LiveMigration", true},
    {"beta", "{}", "ImageVolume", true},
    {"beta-disabled", "{'disabledFeatureGates':['ImageVolume']}", "ImageVolume", false},
    {"beta-enabled", "{'featureGates':['ImageVolume']}", "ImageVolume", true},
    {"enabling-wins",
     "{'featureGates':['ImageVolume'],'disabledFeatureGates':['ImageVolume']}",
     "ImageVolume",
     true},
    {"alpha", "{}", "VSOCK", false},
    {"alpha-enabled", "{'featureGates':['VSOCK']}", "VSOCK", true},
    {"alpha-disabled", "{'disabledFeatureGates':['VSOCK']}", "VSOCK", false},
    {"deprecated", "{}", "DisableMDEVConfiguration", false},
    {"deprecated-enabled",
     "{'featureGates':['DisableMDEVConfiguration']}",
     "DisableMDEVConfiguration",
     true},
    {"unknown", "{}", "Unheard", false},
    {"unknown-enabled", "{'featureGates':['Unheard']}", "Unheard", false},
    {"unknown-disabled", "{'disabledFeatureGates':['Unheard']}", "Unheard", false},
    {"names-have-case", "{'featureGates':['vsock']}", "VSOCK", false},
    {"null-lists", "{'featureGates':null,'disabledFeatureGates':null}", "PasstBinding", true},
};

static void
test_gate(gconstpointer data)
{
    const struct GateCase *c = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ChFeatureGates) gates = parse(c->developer, &error);

    g_assert_no_error(error);
    g_assert_true(ch_feature_gates_is_on(gates, c->gate) == c->is_on);
}

/* Spec 08 §6.7: the column "Default". */
static void
test_defaults(void)
{
    static const char *const on[] = {"ImageVolume", "KubevirtSeccompProfile", "PasstBinding"};
    static const char *const off[] = {"CPUManager",
                                      "ConfigurableHypervisor",
                                      "CrossArchitectureVirtualization",
                                      "DisableMDEVConfiguration",
                                      "GraceIOVirtualization",
                                      "IOMMUFD",
                                      "MigrationStallDetection",
                                      "PCINUMAAwareTopology",
                                      "Plugins",
                                      "PortRangesSpec",
                                      "VGPULiveMigration",
                                      "VMStatsCollector",
                                      "VSOCK",
                                      "WorkloadEncryptionTDX",
                                      "VGADisplayForEFIGuests"};
    g_autoptr(ChFeatureGates) gates = ch_feature_gates_new();

    for (gsize i = 0; i < G_N_ELEMENTS(on); i++)
        g_assert_true(ch_feature_gates_is_on(gates, on[i]));
    for (gsize i = 0; i < G_N_ELEMENTS(off); i++)
        g_assert_false(ch_feature_gates_is_on(gates, off[i]));
}

static void
test_lists(void)
{
    g_autoptr(ChFeatureGates) gates =
        parse("{'featureGates':['PersistentReservation','Unheard']}", NULL);

    g_assert_true(ch_feature_gates_lists(gates, "PersistentReservation"));
    g_assert_true(ch_feature_gates_lists(gates, "Unheard"));
    g_assert_false(ch_feature_gates_lists(gates, "LiveMigration")); /* on, and not listed */
}

static void
test_wrong_types(void)
{
    static const char *const bad[] = {
        "{'featureGates':'Plugins'}",
        "{'featureGates':{}}",
        "{'featureGates':[1]}",
        "{'disabledFeatureGates':[null]}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(parse(bad[i], &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/feature-gates/", cases[i].path, NULL);

        g_test_add_data_func(path, &cases[i], test_gate);
    }
    g_test_add_func("/feature-gates/defaults", test_defaults);
    g_test_add_func("/feature-gates/lists", test_lists);
    g_test_add_func("/feature-gates/wrong-types", test_wrong_types);
    return g_test_run();
}
