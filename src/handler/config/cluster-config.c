/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/cluster-config.h"

#include <math.h>
#include <stdatomic.h>

#include "lib/base/errors.h"

#define MAX_VERBOSITY 100
#define MAX_BURST     1000000

typedef struct {
    ChClusterConfig config;
    atomic_int n_refs;
} Counted;

#define AT(member) offsetof(ChClusterConfig, member)

/* Spec 08 §6.6: what lies below spec.configuration. Four of them are only checked. */
/* clang-format off */
static const ChField fields[] = {
    {"developerConfiguration.useEmulation",      CH_FIELD_BOOL,   AT(use_emulation)},
    {"developerConfiguration.clusterProfiler",   CH_FIELD_BOOL,   AT(has_cluster_profiler)},
    {"developerConfiguration.pvcTolerateLessSpaceUpToPercent", CH_FIELD_INT64, AT(pvc_tolerated_percent), .preset = 10},
    {"developerConfiguration.minimumReservePVCBytes", CH_FIELD_UINT64, AT(reserved_pvc_bytes), .preset = 131072},
    {"developerConfiguration.memoryOvercommit",  CH_FIELD_INT64,  AT(memory_overcommit), .preset = 100},
    {"developerConfiguration.cpuAllocationRatio", CH_FIELD_INT64, AT(cpu_allocation_ratio), .preset = 10},
    {"imagePullPolicy",                          CH_FIELD_STRING, AT(image_pull_policy), .preset_text = "IfNotPresent"},
    {"network.defaultNetworkInterface",          CH_FIELD_STRING, AT(default_network_interface), .preset_text = "bridge"},
    {"evictionStrategy",                         CH_FIELD_STRING, AT(eviction_strategy), true, .preset_text = "None"},
    {"memBalloonStatsPeriod",                    CH_FIELD_UINT32, AT(mem_balloon_stats_period), true, 10},
    {"supportedGuestAgentVersions",              CH_FIELD_STRINGS, AT(supported_guest_agent_versions),
                                                 .preset_text = "2.*,3.*,4.*,5.*"},
    {"additionalGuestMemoryOverheadRatio",       CH_FIELD_STRING, AT(guest_memory_overhead_ratio), true},
    {"smbios.manufacturer",                      CH_FIELD_STRING, AT(smbios.manufacturer), .preset_text = "KubeVirt"},
    {"smbios.product",                           CH_FIELD_STRING, AT(smbios.product), .preset_text = "None"},
    {"smbios.version",                           CH_FIELD_STRING, AT(smbios.version), .preset_text = ""},
    {"smbios.sku",                               CH_FIELD_STRING, AT(smbios.sku), .preset_text = ""},
    {"smbios.family",                            CH_FIELD_STRING, AT(smbios.family), .preset_text = "KubeVirt"},
    {"virtualMachineOptions.disableFreePageReporting", CH_FIELD_PRESENCE, AT(free_page_reporting_disabled)},
    {"virtualMachineOptions.disableSerialConsoleLog",  CH_FIELD_PRESENCE, AT(serial_console_log_disabled)},
    {"ksmConfiguration.nodeLabelSelector",       CH_FIELD_OBJECT, AT(ksm_node_selector)},
    {"confidentialCompute.tdx.attestation.enforced", CH_FIELD_BOOL, AT(tdx.is_attestation_enforced), true},
    {"confidentialCompute.tdx.attestation.qgsSocketPath", CH_FIELD_STRING, AT(tdx.qgs_socket_path),
                                                 .preset_text = "/var/run/tdx-qgs/qgs.socket"},
    {"persistentReservationConfiguration.enabled", CH_FIELD_TRISTATE, AT(persistent_reservation)},

    {"migrations.parallelOutboundMigrationsPerNode", CH_FIELD_UINT32, AT(migrations.parallel_outbound_per_node), true, 2},
    {"migrations.parallelMigrationsPerCluster",  CH_FIELD_UINT32, AT(migrations.parallel_per_cluster), true, 5},
    {"migrations.bandwidthPerMigration",         CH_FIELD_QUANTITY, AT(migrations.bandwidth), true, .preset_text = "0Mi"},
    {"migrations.progressTimeout",               CH_FIELD_INT64,  AT(migrations.progress_timeout), true, 150},
    {"migrations.completionTimeoutPerGiB",       CH_FIELD_INT64,  AT(migrations.completion_timeout_per_gib), true, 150},
    {"migrations.utilityVolumesTimeout",         CH_FIELD_INT64,  AT(migrations.utility_volumes_timeout), true, 150},
    {"migrations.maxDowntimeMs",                 CH_FIELD_UINT64, AT(migrations.max_downtime_ms), true, 900},
    {"migrations.unsafeMigrationOverride",       CH_FIELD_BOOL,   AT(migrations.is_unsafe_allowed), true},
    {"migrations.allowAutoConverge",             CH_FIELD_BOOL,   AT(migrations.allows_auto_converge), true},
    {"migrations.allowPostCopy",                 CH_FIELD_BOOL,   AT(migrations.allows_post_copy), true},
    {"migrations.nodeDrainTaintKey",             CH_FIELD_STRING, AT(migrations.drain_taint_key), true,
                                                 .preset_text = "kubevirt.io/drain"},
    {"migrations.disableTLS",                    CH_FIELD_BOOL,   AT(migrations.has_tls_disabled), true},
    {"migrations.network",                       CH_FIELD_STRING, AT(migrations.network), true, .preset_text = ""},
    {"migrations.matchSELinuxLevelOnMigration",  CH_FIELD_TRISTATE, AT(migrations.matches_selinux_level)},
    {"migrations.experimental.compression",      CH_FIELD_STRING, AT(migrations.compression), true},
};

static const ChField binding_fields[] = {
    {"sidecarImage",                CH_FIELD_STRING, offsetof(ChBindingPlugin, sidecar_image), .preset_text = ""},
    {"networkAttachmentDefinition", CH_FIELD_STRING, offsetof(ChBindingPlugin, attachment_definition), .preset_text = ""},
    {"domainAttachmentType",        CH_FIELD_STRING, offsetof(ChBindingPlugin, domain_attachment), .preset_text = ""},
    {"migration",                   CH_FIELD_PRESENCE, offsetof(ChBindingPlugin, can_migrate)},
    {"migration.method",            CH_FIELD_STRING, offsetof(ChBindingPlugin, migration_method), .preset_text = ""},
    {"downwardAPI",                 CH_FIELD_STRING, offsetof(ChBindingPlugin, downward_api), .preset_text = ""},
    {"computeResourceOverhead",     CH_FIELD_OBJECT, offsetof(ChBindingPlugin, compute_overhead)},
};
/* clang-format on */

static void
binding_free(gpointer binding)
{
    ch_fields_clear(binding_fields, G_N_ELEMENTS(binding_fields), binding);
    g_free(binding);
}

/* Everything that @kubevirt may replace is still missing in gates, devices and bindings. */
static ChClusterConfig *
new_preset(void)
{
    Counted *counted = g_new0(Counted, 1);
    ChClusterConfig *config = &counted->config;

    atomic_init(&counted->n_refs, 1);
    ch_fields_preset(fields, G_N_ELEMENTS(fields), config);
    config->resource_version = g_strdup("");
    config->verbosity = 2;
    config->qps = 50;
    config->burst = 100;
    config->hypervisor = g_strdup("kvm");
    config->bindings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, binding_free);
    return config;
}

ChClusterConfig *
ch_cluster_config_ref(ChClusterConfig *config)
{
    atomic_fetch_add(&((Counted *)config)->n_refs, 1);
    return config;
}

void
ch_cluster_config_unref(ChClusterConfig *config)
{
    if (config == NULL || atomic_fetch_sub(&((Counted *)config)->n_refs, 1) > 1)
        return;
    ch_fields_clear(fields, G_N_ELEMENTS(fields), config);
    g_free(config->resource_version);
    g_free(config->hypervisor);
    g_hash_table_unref(config->bindings);
    g_strfreev(config->permitted_mdevs);
    g_strfreev(config->migratable_bindings);
    g_clear_pointer(&config->obsolete_cpu_models, g_hash_table_unref);
    ch_permitted_devices_clear(&config->permitted_devices);
    ch_mediated_devices_free(config->mediated_devices);
    ch_feature_gates_free(config->gates);
    g_free(config);
}

/* --- what a table does not say */

static bool
fail_object(const char *name, GError **error)
{
    return ch_fail(error, CH_ERROR_INVALID, "'%s' is no object", name);
}

/* A level: absent, null and 0 leave it alone. */
static bool
take_level(const ChJson *value, int *level, GError **error)
{
    int64_t number;

    if (value == NULL)
        return true;
    if (!ch_json_as_int(value, &number) || number < 0)
        return ch_fail(error, CH_ERROR_INVALID, "a level in 'logVerbosity' is no number of one");
    if (number > 0)
        *level = (int)MIN(number, MAX_VERBOSITY);
    return true;
}

static bool
take_verbosity(ChClusterConfig *config,
               const ChJson *developer,
               const char *node_name,
               GError **error)
{
    const ChJson *verbosity = ch_json_at(developer, "logVerbosity");
    const ChJson *nodes = ch_json_at(verbosity, "nodeVerbosity");

    if (verbosity != NULL && !ch_json_is_object(verbosity))
        return fail_object("logVerbosity", error);
    if (nodes != NULL && !ch_json_is_object(nodes))
        return fail_object("nodeVerbosity", error);
    return take_level(ch_json_at(verbosity, "virtHandler"), &config->verbosity, error) &&
           take_level(ch_json_at(nodes, node_name), &config->verbosity, error);
}

/* Where there is a bucket, what it lacks is 0: its members are always written down. */
static bool
take_rate(ChClusterConfig *config, const ChJson *configuration, GError **error)
{
    static const ChField presence[] = {
        {"handlerConfiguration.restClient.rateLimiter.tokenBucketRateLimiter",
         CH_FIELD_PRESENCE,
         0}};
    const ChJson *bucket = ch_json_at(configuration,
                                      "handlerConfiguration",
                                      "restClient",
                                      "rateLimiter",
                                      "tokenBucketRateLimiter");
    const ChJson *qps = ch_json_at(bucket, "qps");
    const ChJson *burst = ch_json_at(bucket, "burst");
    int64_t number = 0;
    bool has_bucket = false;

    if (!ch_fields_read(presence, 1, configuration, &has_bucket, error))
        return false;
    if (!has_bucket)
        return true;
    if ((qps != NULL && !ch_json_is_number(qps)) || !isfinite(ch_json_as_double(qps)) ||
        (burst != NULL && !ch_json_as_int(burst, &number)))
        return ch_fail(error, CH_ERROR_INVALID, "'tokenBucketRateLimiter' has no numbers");
    config->qps = ch_json_as_double(qps);
    config->burst = (guint)CLAMP(number, 0, MAX_BURST);
    return true;
}

static bool
take_binding(ChClusterConfig *config, const char *name, const ChJson *object, GError **error)
{
    ChBindingPlugin *binding = g_new0(ChBindingPlugin, 1);

    ch_fields_preset(binding_fields, G_N_ELEMENTS(binding_fields), binding);
    g_hash_table_replace(config->bindings, g_strdup(name), binding);
    return ch_fields_read(binding_fields, G_N_ELEMENTS(binding_fields), object, binding, error);
}

static bool
take_bindings(ChClusterConfig *config, const ChJson *bindings, GError **error)
{
    g_autoptr(GStrvBuilder) migratable = g_strv_builder_new();
    ChJsonIter iter;
    const char *name;
    ChJson *object;

    if (bindings != NULL && !ch_json_is_object(bindings))
        return fail_object("network.binding", error);
    ch_json_iter_init(&iter, bindings);
    while (ch_json_iter_next(&iter, &name, &object)) {
        if (!take_binding(config, name, object, error))
            return false;
        if (ch_cluster_config_binding(config, name)->can_migrate)
            g_strv_builder_add(migratable, name);
    }
    config->migratable_bindings = g_strv_builder_end(migratable);
    return true;
}

static bool
take_permitted_devices(ChClusterConfig *config, const ChJson *object, GError **error)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();

    if (!ch_permitted_devices_read(&config->permitted_devices, object, error))
        return false;
    for (guint i = 0; i < config->permitted_devices.mediated->len; i++) {
        const ChPermittedDevice *device =
            &g_array_index(config->permitted_devices.mediated, ChPermittedDevice, i);

        if (device->resource_name[0] != '\0')
            g_strv_builder_add(names, device->resource_name);
    }
    config->permitted_mdevs = g_strv_builder_end(names);
    return true;
}

/* The names alone count. */
static bool
take_obsolete_models(ChClusterConfig *config, const ChJson *models, GError **error)
{
    ChJsonIter iter;
    const char *name;
    ChJson *value;

    if (models != NULL && !ch_json_is_object(models))
        return fail_object("obsoleteCPUModels", error);
    ch_json_iter_init(&iter, models);
    while (ch_json_iter_next(&iter, &name, &value)) {
        if (value != NULL && !ch_json_is_bool(value))
            return ch_fail(error, CH_ERROR_INVALID, "'obsoleteCPUModels' has no booleans");
        if (config->obsolete_cpu_models == NULL)
            config->obsolete_cpu_models =
                g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_add(config->obsolete_cpu_models, g_strdup(name));
    }
    return true;
}

/* A list that is not empty replaces the default's; its first item lies over that one's. */
static bool
take_hypervisor(ChClusterConfig *config, const ChJson *list, GError **error)
{
    const ChField name[] = {{"name", CH_FIELD_STRING, AT(hypervisor)}};

    if (list != NULL && !ch_json_is_array(list))
        return ch_fail(error, CH_ERROR_INVALID, "'hypervisors' is no list");
    return ch_fields_read(name, 1, ch_json_item(list, 0), config, error);
}

/* Absent, it reads as post-copy does. */
static bool
take_workload_disruption(ChClusterConfig *config, const ChJson *configuration, GError **error)
{
    const ChField field[] = {{"migrations.allowWorkloadDisruption",
                              CH_FIELD_BOOL,
                              AT(migrations.allows_workload_disruption),
                              true}};

    config->migrations.allows_workload_disruption = config->migrations.allows_post_copy;
    return ch_fields_read(field, 1, configuration, config, error);
}

static bool
take_configuration(ChClusterConfig *config,
                   const ChJson *configuration,
                   const char *node_name,
                   GError **error)
{
    const ChJson *developer = ch_json_at(configuration, "developerConfiguration");

    if (!ch_fields_read(fields, G_N_ELEMENTS(fields), configuration, config, error) ||
        !take_verbosity(config, developer, node_name, error) ||
        !take_rate(config, configuration, error) ||
        !take_bindings(config, ch_json_at(configuration, "network", "binding"), error) ||
        !take_obsolete_models(config, ch_json_at(configuration, "obsoleteCPUModels"), error) ||
        !take_hypervisor(config, ch_json_at(configuration, "hypervisors"), error) ||
        !take_workload_disruption(config, configuration, error) ||
        !take_permitted_devices(config, ch_json_at(configuration, "permittedHostDevices"), error))
        return false;
    config->mediated_devices =
        ch_mediated_devices_parse(ch_json_at(configuration, "mediatedDevicesConfiguration"), error);
    if (config->mediated_devices == NULL)
        return false;
    config->gates = ch_feature_gates_parse(developer, error);
    return config->gates != NULL;
}

/* --- spec 08 §6.3 */

static bool
is_one_of(const char *text, const char *const *values)
{
    return text[0] == '\0' || g_strv_contains(values, text);
}

static bool
fail_number(const char *what, int64_t number, GError **error)
{
    return ch_fail(
        error, CH_ERROR_INVALID, "invalid %s in ConfigMap: %" G_GINT64_FORMAT, what, number);
}

static bool
validate(const ChClusterConfig *config, GError **error)
{
    static const char *const policies[] = {"Always", "Never", "IfNotPresent", NULL};
    static const char *const interfaces[] = {"bridge", "slirp", "masquerade", NULL};

    if (!is_one_of(config->image_pull_policy, policies))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "invalid dev.imagePullPolicy in config: %s",
                       config->image_pull_policy);
    if (config->memory_overcommit <= 0)
        return fail_number("memoryOvercommit", config->memory_overcommit, error);
    if (config->cpu_allocation_ratio <= 0)
        return fail_number("cpu allocation ratio", config->cpu_allocation_ratio, error);
    if (config->pvc_tolerated_percent < 0 || config->pvc_tolerated_percent > 100)
        return fail_number("lessPVCSpaceToleration", config->pvc_tolerated_percent, error);
    if (!is_one_of(config->default_network_interface, interfaces))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "invalid default-network-interface in config: %s",
                       config->default_network_interface);
    return true;
}

ChClusterConfig *
ch_cluster_config_parse(const ChJson *kubevirt, const char *node_name, GError **error)
{
    const ChJson *configuration = ch_json_at(kubevirt, "spec", "configuration");
    const char *version = ch_json_string_at(kubevirt, "metadata", "resourceVersion");
    g_autoptr(ChClusterConfig) config = new_preset();

    if (configuration != NULL && !ch_json_is_object(configuration)) {
        fail_object("spec.configuration", error);
        return NULL;
    }
    if (!take_configuration(config, configuration, node_name, error) || !validate(config, error))
        return NULL;
    if (version != NULL) {
        g_free(config->resource_version);
        config->resource_version = g_strdup(version);
    }
    config->has_vga_display_annotation =
        ch_json_at(kubevirt, "metadata", "annotations", "kubevirt.io/vga-display-efi-x86") != NULL;
    return g_steal_pointer(&config);
}

ChClusterConfig *
ch_cluster_config_new_default(void)
{
    g_autoptr(GError) error = NULL;
    ChClusterConfig *config = ch_cluster_config_parse(NULL, "", &error);

    g_assert_no_error(error); /* nothing is laid over them */
    return config;
}

bool
ch_cluster_config_has_gate(const ChClusterConfig *config, const char *gate)
{
    return ch_feature_gates_is_on(config->gates, gate);
}

const ChBindingPlugin *
ch_cluster_config_binding(const ChClusterConfig *config, const char *name)
{
    return g_hash_table_lookup(config->bindings, name);
}

bool
ch_cluster_config_has_persistent_reservation(const ChClusterConfig *config)
{
    if (config->persistent_reservation != CH_TRISTATE_UNSET)
        return config->persistent_reservation == CH_TRISTATE_YES;
    return ch_feature_gates_lists(config->gates, "PersistentReservation");
}

bool
ch_cluster_config_handles_mediated_devices(const ChClusterConfig *config)
{
    const ChTristate enabled = ch_mediated_devices_is_enabled(config->mediated_devices);

    if (enabled != CH_TRISTATE_UNSET)
        return enabled == CH_TRISTATE_YES;
    return !ch_cluster_config_has_gate(config, "DisableMDEVConfiguration");
}

const char *
ch_cluster_config_hypervisor(const ChClusterConfig *config)
{
    return ch_cluster_config_has_gate(config, "ConfigurableHypervisor") ? config->hypervisor
                                                                        : "kvm";
}
