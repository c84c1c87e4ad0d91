/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/cluster-config.h"

#include "lib/base/errors.h"

#include <string.h>

/* @configuration: spec.configuration in single quotes */
static ChClusterConfig *
parse(const char *configuration, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{'metadata':{'resourceVersion':'42'},'spec':{'configuration':%s}}", configuration);
    g_autoptr(GError) parse_error = NULL;
    g_autoptr(ChJson) kubevirt = NULL;

    g_strdelimit(text, "'", '"');
    kubevirt = ch_json_parse(text, -1, &parse_error);
    g_assert_no_error(parse_error);
    return ch_cluster_config_parse(kubevirt, "node01", error);
}

static ChClusterConfig *
parse_valid(const char *configuration)
{
    g_autoptr(GError) error = NULL;
    ChClusterConfig *config = parse(configuration, &error);

    g_assert_no_error(error);
    return config;
}

/* spec:08-13.1#23 */
static void
test_defaults(void)
{
    g_autoptr(ChClusterConfig) config = parse_valid("{}");

    g_assert_cmpstr(config->resource_version, ==, "42");
    g_assert_cmpint(config->verbosity, ==, 2);
    g_assert_cmpfloat(config->qps, ==, 50);
    g_assert_cmpuint(config->burst, ==, 100);
    g_assert_cmpstr(config->smbios.manufacturer, ==, "KubeVirt");
    g_assert_cmpstr(config->smbios.product, ==, "None");
    g_assert_cmpstr(config->smbios.family, ==, "KubeVirt");
    g_assert_cmpuint(config->mem_balloon_stats_period, ==, 10);
    g_assert_false(config->use_emulation);
    g_assert_false(config->free_page_reporting_disabled);
    g_assert_cmpuint(g_strv_length(config->supported_guest_agent_versions), ==, 4);
    g_assert_cmpint(config->pvc_tolerated_percent, ==, 10);
    g_assert_cmpuint(config->reserved_pvc_bytes, ==, 131072);
    g_assert_false(config->has_cluster_profiler);
    g_assert_cmpstr(config->eviction_strategy, ==, "None");
    g_assert_null(config->permitted_mdevs[0]);
    g_assert_null(config->migratable_bindings[0]);
}

/* spec:08-13.1#15
 * 08 §6.2: zero of a plain member means the default, zero of an optional one is kept. */
static void
test_zeros(void)
{
    g_autoptr(ChClusterConfig) config = parse_valid(
        "{'memBalloonStatsPeriod':0,'smbios':{'family':''},'supportedGuestAgentVersions':[],"
        "'developerConfiguration':{'logVerbosity':{'virtHandler':0}},"
        "'virtualMachineOptions':{'disableFreePageReporting':{},'disableSerialConsoleLog':null}}");

    g_assert_cmpuint(config->mem_balloon_stats_period, ==, 0);
    g_assert_cmpstr(config->smbios.family, ==, "KubeVirt");
    g_assert_cmpuint(g_strv_length(config->supported_guest_agent_versions), ==, 4);
    g_assert_cmpint(config->verbosity, ==, 2);
    g_assert_true(config->free_page_reporting_disabled);
    g_assert_false(config->serial_console_log_disabled);
}

/* spec:08-13.1#1 spec:08-13.1#2 spec:08-13.1#18 spec:08-13.1#24 spec:08-13.1#30 */
static void
test_values(void)
{
    g_autoptr(ChClusterConfig) config = parse_valid(
        "{'smbios':{'manufacturer':'m','product':'p','version':'v','sku':'s','family':'f'},"
        "'developerConfiguration':{'useEmulation':true,'clusterProfiler':true,"
        "'pvcTolerateLessSpaceUpToPercent':5,'minimumReservePVCBytes':4096,"
        "'logVerbosity':{'virtHandler':5}},'memBalloonStatsPeriod':3,"
        "'supportedGuestAgentVersions':['9.*'],"
        "'handlerConfiguration':{'restClient':{'rateLimiter':{'tokenBucketRateLimiter':{'qps':12.5,"
        "'burst':7}}}},"
        "'network':{'binding':{'passt':{'domainAttachmentType':'managedTap'},'plug':{'migration':{}"
        "}}},"
        "'permittedHostDevices':{'mediatedDevices':[{'resourceName':'nvidia.com/"
        "A'},{}]},'evictionStrategy':'"
        "LiveMigrate'}");

    g_assert_cmpstr(config->smbios.manufacturer, ==, "m");
    g_assert_cmpstr(config->smbios.sku, ==, "s");
    g_assert_true(config->use_emulation);
    g_assert_true(config->has_cluster_profiler);
    g_assert_cmpint(config->pvc_tolerated_percent, ==, 5);
    g_assert_cmpuint(config->reserved_pvc_bytes, ==, 4096);
    g_assert_cmpuint(config->mem_balloon_stats_period, ==, 3);
    g_assert_cmpstr(config->supported_guest_agent_versions[0], ==, "9.*");
    g_assert_cmpint(config->verbosity, ==, 5);
    g_assert_cmpfloat(config->qps, ==, 12.5);
    g_assert_cmpuint(config->burst, ==, 7);
    g_assert_cmpstr(
        ch_cluster_config_binding(config, "passt")->domain_attachment, ==, "managedTap");
    g_assert_false(ch_cluster_config_binding(config, "passt")->can_migrate);
    g_assert_null(ch_cluster_config_binding(config, "other"));
    g_assert_cmpstr(config->migratable_bindings[0], ==, "plug");
    g_assert_null(config->migratable_bindings[1]);
    g_assert_cmpstr(config->permitted_mdevs[0], ==, "nvidia.com/A");
    g_assert_null(config->permitted_mdevs[1]);
    g_assert_cmpstr(config->eviction_strategy, ==, "LiveMigrate");
}

static void
test_verbosity_of_this_node(void)
{
    g_autoptr(ChClusterConfig) ours = parse_valid("{'developerConfiguration':{'logVerbosity':{'"
                                                  "virtHandler':5,'nodeVerbosity':{'node01':9}}}}");
    g_autoptr(ChClusterConfig) others =
        parse_valid("{'developerConfiguration':{'logVerbosity':{'virtHandler':5,'nodeVerbosity':{'"
                    "node02':9}}}}");

    g_assert_cmpint(ours->verbosity, ==, 9);
    g_assert_cmpint(others->verbosity, ==, 5);
}

static void
test_wrong_types(void)
{
    static const char *const bad[] = {
        "[]",
        "{'smbios':{'family':1}}",
        "{'smbios':7}",
        "{'evictionStrategy':{}}",
        "{'developerConfiguration':7}",
        "{'developerConfiguration':{'featureGates':'Plugins'}}",
        "{'developerConfiguration':{'featureGates':[1]}}",
        "{'developerConfiguration':{'logVerbosity':7}}",
        "{'developerConfiguration':{'logVerbosity':{'virtHandler':-1}}}",
        "{'developerConfiguration':{'logVerbosity':{'nodeVerbosity':{'node01':'x'}}}}",
        "{'handlerConfiguration':{'restClient':{'rateLimiter':{'tokenBucketRateLimiter':7}}}}",
        "{'handlerConfiguration':{'restClient':{'rateLimiter':{'tokenBucketRateLimiter':"
        "{'qps':'x','burst':1}}}}}",
        "{'handlerConfiguration':{'restClient':{'rateLimiter':{'tokenBucketRateLimiter':"
        "{'qps':1e999,'burst':1}}}}}",
        "{'handlerConfiguration':{'restClient':{'rateLimiter':{'tokenBucketRateLimiter':"
        "{'qps':1,'burst':1.5}}}}}",
        "{'developerConfiguration':{'logVerbosity':{'nodeVerbosity':[]}}}",
        "{'handlerConfiguration':7}",
        "{'handlerConfiguration':{'restClient':{'rateLimiter':[]}}}",
        "{'permittedHostDevices':7}",
        "{'network':{'binding':[]}}",
        "{'network':{'binding':{'x':7}}}",
        "{'obsoleteCPUModels':[]}",
        "{'obsoleteCPUModels':{'x':1}}",
        "{'hypervisors':{}}",
        "{'hypervisors':[{'name':1}]}",
        "{'migrations':{'bandwidthPerMigration':'fast'}}",
        "{'migrations':{'allowWorkloadDisruption':1}}",
        "{'permittedHostDevices':{'usb':7}}",
        "{'mediatedDevicesConfiguration':{'enabled':1}}",
        "{'memBalloonStatsPeriod':4294967296}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(parse(bad[i], &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

/* Spec 08 §6.3. spec:08-13.1#5 spec:08-13.1#6 spec:08-13.1#12 spec:08-13.1#13: where the original
 * answers with a default, that is its last good configuration. */
static const struct ValidationCase {
    const char *configuration;
    const char *message; /* NULL: it is valid */
} validation_cases[] = {
    {"{'imagePullPolicy':'Always'}", NULL},
    {"{'imagePullPolicy':'Never'}", NULL},
    {"{'imagePullPolicy':'IfNotPresent'}", NULL},
    {"{'imagePullPolicy':''}", NULL},
    {"{'imagePullPolicy':'invalid'}", "invalid dev.imagePullPolicy in config: invalid"},
    {"{'developerConfiguration':{'memoryOvercommit':150}}", NULL},
    {"{'developerConfiguration':{'memoryOvercommit':0}}", NULL},
    {"{'developerConfiguration':{'memoryOvercommit':-150}}",
     "invalid memoryOvercommit in ConfigMap: -150"},
    {"{'developerConfiguration':{'cpuAllocationRatio':0}}", NULL},
    {"{'developerConfiguration':{'cpuAllocationRatio':-150}}",
     "invalid cpu allocation ratio in ConfigMap: -150"},
    {"{'developerConfiguration':{'pvcTolerateLessSpaceUpToPercent':100}}", NULL},
    {"{'developerConfiguration':{'pvcTolerateLessSpaceUpToPercent':101}}",
     "invalid lessPVCSpaceToleration in ConfigMap: 101"},
    {"{'developerConfiguration':{'pvcTolerateLessSpaceUpToPercent':-1}}",
     "invalid lessPVCSpaceToleration in ConfigMap: -1"},
    {"{'network':{'defaultNetworkInterface':'masquerade'}}", NULL},
    {"{'network':{'defaultNetworkInterface':'slirp'}}", NULL},
    {"{'network':{'defaultNetworkInterface':''}}", NULL},
    {"{'network':{'defaultNetworkInterface':'invalid'}}",
     "invalid default-network-interface in config: invalid"},
};

static void
test_validation(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(validation_cases); i++) {
        const struct ValidationCase *c = &validation_cases[i];
        g_autoptr(GError) error = NULL;
        g_autoptr(ChClusterConfig) config = parse(c->configuration, &error);

        g_assert_true((config != NULL) == (c->message == NULL));
        g_assert_cmpstr(error != NULL ? error->message : NULL, ==, c->message);
    }
}

/* spec:08-13.1#20 */
static void
test_migration_defaults(void)
{
    g_autoptr(ChClusterConfig) config = parse_valid("{'migrations':{'allowPostCopy':true}}");
    const ChMigrationConfig *migrations = &config->migrations;

    g_assert_cmpuint(migrations->parallel_outbound_per_node, ==, 2);
    g_assert_cmpuint(migrations->parallel_per_cluster, ==, 5);
    g_assert_true(migrations->bandwidth.nano == 0);
    g_assert_cmpint(migrations->progress_timeout, ==, 150);
    g_assert_cmpint(migrations->completion_timeout_per_gib, ==, 150);
    g_assert_cmpint(migrations->utility_volumes_timeout, ==, 150);
    g_assert_cmpuint(migrations->max_downtime_ms, ==, 900);
    g_assert_false(migrations->is_unsafe_allowed);
    g_assert_false(migrations->allows_auto_converge);
    g_assert_true(migrations->allows_post_copy);
    g_assert_true(migrations->allows_workload_disruption); /* as post-copy */
    g_assert_cmpstr(migrations->drain_taint_key, ==, "kubevirt.io/drain");
    g_assert_false(migrations->has_tls_disabled);
    g_assert_cmpstr(migrations->network, ==, "");
    g_assert_cmpint(migrations->matches_selinux_level, ==, CH_TRISTATE_UNSET);
    g_assert_null(migrations->compression);
}

/* spec:08-13.1#19 */
static void
test_migration_values(void)
{
    g_autoptr(ChClusterConfig) config = parse_valid(
        "{'migrations':{'parallelOutboundMigrationsPerNode':0,'parallelMigrationsPerCluster':9,"
        "'bandwidthPerMigration':'64Mi','progressTimeout':0,'completionTimeoutPerGiB':7,"
        "'utilityVolumesTimeout':8,'maxDowntimeMs':0,'unsafeMigrationOverride':true,"
        "'allowAutoConverge':true,'allowPostCopy':true,'allowWorkloadDisruption':false,"
        "'nodeDrainTaintKey':'k','disableTLS':true,'network':'ns/net',"
        "'matchSELinuxLevelOnMigration':false,'experimental':{'compression':'zstd'}}}");
    const ChMigrationConfig *migrations = &config->migrations;
    g_autofree char *bandwidth = ch_quantity_print(&migrations->bandwidth);

    g_assert_cmpuint(migrations->parallel_outbound_per_node, ==, 0);
    g_assert_cmpuint(migrations->parallel_per_cluster, ==, 9);
    g_assert_cmpstr(bandwidth, ==, "64Mi");
    g_assert_cmpint(migrations->progress_timeout, ==, 0);
    g_assert_cmpint(migrations->completion_timeout_per_gib, ==, 7);
    g_assert_cmpint(migrations->utility_volumes_timeout, ==, 8);
    g_assert_cmpuint(migrations->max_downtime_ms, ==, 0);
    g_assert_true(migrations->is_unsafe_allowed);
    g_assert_true(migrations->allows_auto_converge);
    g_assert_true(migrations->allows_post_copy);
    g_assert_false(migrations->allows_workload_disruption);
    g_assert_cmpstr(migrations->drain_taint_key, ==, "k");
    g_assert_true(migrations->has_tls_disabled);
    g_assert_cmpstr(migrations->network, ==, "ns/net");
    g_assert_cmpint(migrations->matches_selinux_level, ==, CH_TRISTATE_NO);
    g_assert_cmpstr(migrations->compression, ==, "zstd");
}

/* What is there serves what comes later; what is absent counts as zero. */
static void
test_rate(void)
{
#define BUCKET(members)                                                                            \
    "{'handlerConfiguration':{'restClient':{'rateLimiter':{'tokenBucketRateLimiter':{" members     \
    "}}}}}"
    static const struct {
        const char *configuration;
        double qps;
        guint burst;
    } rates[] = {
        {"{'handlerConfiguration':{'restClient':{'rateLimiter':null}}}", 50, 100},
        {BUCKET("'qps':5"), 5, 0},
        {BUCKET("'burst':5"), 0, 5},
        {BUCKET("'qps':0,'burst':0"), 0, 0},
        {BUCKET("'qps':-1,'burst':-1"), -1, 0},
        {BUCKET("'qps':1e3,'burst':99999999999"), 1000, 1000000},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rates); i++) {
        g_autoptr(ChClusterConfig) config = parse_valid(rates[i].configuration);

        g_assert_cmpfloat(config->qps, ==, rates[i].qps);
        g_assert_cmpuint(config->burst, ==, rates[i].burst);
    }
}

/* spec:08-13.1#31 spec:08-13.1#34 */
static void
test_fields_over_gates(void)
{
#define GATE(gate) "'developerConfiguration':{'featureGates':['" gate "']}"
#define RESERVED   "'persistentReservationConfiguration':"
#define MEDIATED   "'mediatedDevicesConfiguration':"
    static const struct {
        const char *configuration;
        bool reserves, handles_mediated;
    } switches[] = {
        {"{}", false, true},
        {"{" RESERVED "{'enabled':false}," MEDIATED "{'enabled':false}}", false, false},
        {"{" RESERVED "{}," MEDIATED "{}}", false, true},
        {"{" RESERVED "{'enabled':true}," MEDIATED "{'enabled':true}}", true, true},
        {"{" GATE("PersistentReservation") "}", true, true},
        {"{" GATE("PersistentReservation") "," RESERVED "{'enabled':false}}", false, true},
        {"{" GATE("PersistentReservation") "," RESERVED "{}}", true, true},
        {"{" GATE("DisableMDEVConfiguration") "}", false, false},
        {"{" GATE("DisableMDEVConfiguration") "," MEDIATED "{}}", false, false},
        {"{" GATE("DisableMDEVConfiguration") "," MEDIATED "{'enabled':true}}", false, true},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(switches); i++) {
        g_autoptr(ChClusterConfig) config = parse_valid(switches[i].configuration);

        g_assert_true(ch_cluster_config_has_persistent_reservation(config) == switches[i].reserves);
        g_assert_true(ch_cluster_config_handles_mediated_devices(config) ==
                      switches[i].handles_mediated);
    }
}

/* spec:08-13.1#37 */
static void
test_hypervisor(void)
{
#define HYPERVISOR_GATE GATE("ConfigurableHypervisor") ","
    static const struct {
        const char *configuration;
        const char *name;
    } hypervisors[] = {
        {"{}", "kvm"},
        {"{'hypervisors':[{'name':'kvm'}]}", "kvm"},
        {"{'hypervisors':[{'name':'hyperv-direct'}]}", "kvm"},
        {"{" HYPERVISOR_GATE "'hypervisors':[]}", "kvm"},
        {"{" HYPERVISOR_GATE "'hypervisors':[{}]}", "kvm"},
        {"{" HYPERVISOR_GATE "'hypervisors':[{'name':''}]}", "kvm"},
        {"{" HYPERVISOR_GATE "'hypervisors':[{'name':'kvm'}]}", "kvm"},
        {"{" HYPERVISOR_GATE "'hypervisors':[{'name':'hyperv-direct'}]}", "hyperv-direct"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(hypervisors); i++) {
        g_autoptr(ChClusterConfig) config = parse_valid(hypervisors[i].configuration);

        g_assert_cmpstr(ch_cluster_config_hypervisor(config), ==, hypervisors[i].name);
    }
}

/* spec:08-13.1#36 */
static void
test_tdx(void)
{
#define TDX(attestation) "{'confidentialCompute':{'tdx':" attestation "}}"
    static const struct {
        const char *configuration;
        bool is_enforced;
        const char *path;
    } settings[] = {
        {"{}", false, "/var/run/tdx-qgs/qgs.socket"},
        {"{'confidentialCompute':{}}", false, "/var/run/tdx-qgs/qgs.socket"},
        {TDX("{'attestation':{'enforced':true}}"), true, "/var/run/tdx-qgs/qgs.socket"},
        {TDX("{'attestation':{'enforced':false,'qgsSocketPath':'/q'}}"), false, "/q"},
        {TDX("{'attestation':{'enforced':true,'qgsSocketPath':'/q'}}"), true, "/q"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_autoptr(ChClusterConfig) config = parse_valid(settings[i].configuration);

        g_assert_true(config->tdx.is_attestation_enforced == settings[i].is_enforced);
        g_assert_cmpstr(config->tdx.qgs_socket_path, ==, settings[i].path);
    }
}

static void
test_node_services(void)
{
    g_autoptr(ChClusterConfig) unset = parse_valid("{'obsoleteCPUModels':{}}");
    g_autoptr(ChClusterConfig) set = parse_valid(
        "{'obsoleteCPUModels':{'486':true,'pentium':false},'ksmConfiguration':{'nodeLabelSelector':"
        "{'matchLabels':{'a':'b'}}},'additionalGuestMemoryOverheadRatio':'1.5'}");
    g_autoptr(ChClusterConfig) all = parse_valid("{'ksmConfiguration':{'nodeLabelSelector':{}}}");

    g_assert_null(unset->obsolete_cpu_models);
    g_assert_null(unset->ksm_node_selector);
    g_assert_null(unset->guest_memory_overhead_ratio);
    g_assert_cmpuint(g_hash_table_size(set->obsolete_cpu_models), ==, 2); /* the name counts */
    g_assert_true(g_hash_table_contains(set->obsolete_cpu_models, "pentium"));
    g_assert_cmpstr(set->ksm_node_selector, ==, "{\"matchLabels\":{\"a\":\"b\"}}");
    g_assert_cmpstr(set->guest_memory_overhead_ratio, ==, "1.5");
    g_assert_cmpstr(all->ksm_node_selector, ==, "{}"); /* all nodes */
}

static void
test_annotation(void)
{
    g_autoptr(ChJson) kubevirt = ch_json_parse(
        "{\"metadata\":{\"annotations\":{\"kubevirt.io/vga-display-efi-x86\":\"\"}}}", -1, NULL);
    g_autoptr(ChClusterConfig) config = ch_cluster_config_parse(kubevirt, "node01", NULL);

    g_assert_true(config->has_vga_display_annotation);
    g_assert_cmpstr(config->resource_version, ==, "");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cluster-config/defaults", test_defaults);
    g_test_add_func("/cluster-config/zeros", test_zeros);
    g_test_add_func("/cluster-config/values", test_values);
    g_test_add_func("/cluster-config/verbosity-of-this-node", test_verbosity_of_this_node);
    g_test_add_func("/cluster-config/wrong-types", test_wrong_types);
    g_test_add_func("/cluster-config/validation", test_validation);
    g_test_add_func("/cluster-config/migration-defaults", test_migration_defaults);
    g_test_add_func("/cluster-config/migration-values", test_migration_values);
    g_test_add_func("/cluster-config/rate", test_rate);
    g_test_add_func("/cluster-config/fields-over-gates", test_fields_over_gates);
    g_test_add_func("/cluster-config/hypervisor", test_hypervisor);
    g_test_add_func("/cluster-config/tdx", test_tdx);
    g_test_add_func("/cluster-config/node-services", test_node_services);
    g_test_add_func("/cluster-config/annotation", test_annotation);
    return g_test_run();
}
