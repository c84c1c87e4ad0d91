/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/feature-gates.h"

#include "handler/config/json-fields.h"

typedef enum {
    GATE_ALPHA,
    GATE_BETA,
    GATE_GA,
    GATE_DEPRECATED, /* off unless listed, as alpha; on its way out */
} GateStage;

/* Those that this agent asks for, and those that are always on. */
static const struct {
    const char *name;
    GateStage stage;
} gates_of_release[] = {
    {"CPUManager", GATE_ALPHA},
    {"ConfigurableHypervisor", GATE_ALPHA},
    {"CrossArchitectureVirtualization", GATE_ALPHA},
    {"DisableMDEVConfiguration", GATE_DEPRECATED},
    {"GraceIOVirtualization", GATE_ALPHA},
    {"IOMMUFD", GATE_ALPHA},
    {"ImageVolume", GATE_BETA},
    {"KubevirtSeccompProfile", GATE_BETA},
    {"MigrationStallDetection", GATE_ALPHA},
    {"PCINUMAAwareTopology", GATE_ALPHA},
    {"PasstBinding", GATE_BETA},
    {"Plugins", GATE_ALPHA},
    {"PortRangesSpec", GATE_ALPHA},
    {"VGADisplayForEFIGuests", GATE_ALPHA},
    {"VGPULiveMigration", GATE_ALPHA},
    {"VMStatsCollector", GATE_ALPHA},
    {"VSOCK", GATE_ALPHA},
    {"WorkloadEncryptionTDX", GATE_ALPHA},

    {"AutoResourceLimitsGate", GATE_GA},
    {"BochsDisplayForEFIGuests", GATE_GA},
    {"CPUNodeDiscovery", GATE_GA},
    {"ClusterProfiler", GATE_GA},
    {"CommonInstancetypesDeploymentGate", GATE_GA},
    {"DisableCustomSELinuxPolicy", GATE_GA},
    {"DynamicPodInterfaceNaming", GATE_GA},
    {"EnableVirtioFsConfigVolumes", GATE_GA},
    {"ExpandDisks", GATE_GA},
    {"GPU", GATE_GA},
    {"HotplugNICs", GATE_GA},
    {"InstancetypeReferencePolicy", GATE_GA},
    {"LiveMigration", GATE_GA},
    {"LiveUpdateNADRef", GATE_GA},
    {"MigrationPriorityQueue", GATE_GA},
    {"NUMA", GATE_GA},
    {"NetworkBindingPlugins", GATE_GA},
    {"NonRoot", GATE_GA},
    {"PSA", GATE_GA},
    {"PanicDevices", GATE_GA},
    {"PersistentReservation", GATE_GA}, /* but see ch_cluster_config_has_persistent_reservation() */
    {"SRIOVLiveMigration", GATE_GA},
    {"SecureExecution", GATE_GA},
    {"VMExport", GATE_GA},
    {"VMLiveUpdateFeatures", GATE_GA},
    {"VMPersistentState", GATE_GA},
    {"VideoConfig", GATE_GA},
    {"VolumeMigration", GATE_GA},
    {"VolumesUpdateStrategy", GATE_GA},
};

struct ChFeatureGates {
    char **enabled, **disabled;
};

ChFeatureGates *
ch_feature_gates_new(void)
{
    ChFeatureGates *gates = g_new(ChFeatureGates, 1);

    *gates = (ChFeatureGates){g_new0(char *, 1), g_new0(char *, 1)};
    return gates;
}

void
ch_feature_gates_free(ChFeatureGates *gates)
{
    if (gates == NULL)
        return;
    g_strfreev(gates->enabled);
    g_strfreev(gates->disabled);
    g_free(gates);
}

ChFeatureGates *
ch_feature_gates_parse(const ChJson *developer, GError **error)
{
    g_auto(GStrv) enabled =
        ch_json_strings(ch_json_at(developer, "featureGates"), "featureGates", error);
    g_auto(GStrv) disabled = NULL;
    ChFeatureGates *gates;

    if (enabled == NULL)
        return NULL;
    disabled = ch_json_strings(
        ch_json_at(developer, "disabledFeatureGates"), "disabledFeatureGates", error);
    if (disabled == NULL)
        return NULL;
    gates = g_new(ChFeatureGates, 1);
    *gates = (ChFeatureGates){g_steal_pointer(&enabled), g_steal_pointer(&disabled)};
    return gates;
}

bool
ch_feature_gates_lists(const ChFeatureGates *gates, const char *gate)
{
    return g_strv_contains((const char *const *)gates->enabled, gate);
}

bool
ch_feature_gates_is_on(const ChFeatureGates *gates, const char *gate)
{
    for (gsize i = 0; i < G_N_ELEMENTS(gates_of_release); i++) {
        if (!g_str_equal(gates_of_release[i].name, gate))
            continue;
        if (gates_of_release[i].stage == GATE_GA || ch_feature_gates_lists(gates, gate))
            return true;
        return gates_of_release[i].stage == GATE_BETA &&
               !g_strv_contains((const char *const *)gates->disabled, gate);
    }
    return false;
}
