/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cluster-config: what the KubeVirt object says to this agent: a counted, immutable value, so that
 * a worker keeps the one it started with while the loop puts a newer one in place. Spec 08 §6.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "handler/config/feature-gates.h"
#include "handler/config/host-devices.h"

/* A network binding plugin, and what a VMI's interface with it is for the guest. */
typedef struct {
    char *sidecar_image;
    char *attachment_definition; /* networkAttachmentDefinition */
    char *domain_attachment;     /* domainAttachmentType: "tap", "managedTap"; "" */
    bool can_migrate;            /* there is a `migration` section, be it empty */
    char *migration_method;      /* "link-refresh"; "" */
    char *downward_api;          /* "device-info"; "" */
    char *compute_overhead;      /* computeResourceOverhead, a JSON object; NULL: none */
} ChBindingPlugin;

/* spec.configuration.migrations, over the defaults */
typedef struct {
    uint32_t parallel_outbound_per_node, parallel_per_cluster;
    ChQuantity bandwidth; /* bytes a second; 0: no limit */
    int64_t progress_timeout, completion_timeout_per_gib, utility_volumes_timeout; /* seconds */
    uint64_t max_downtime_ms;
    bool is_unsafe_allowed, allows_auto_converge, allows_post_copy;
    bool allows_workload_disruption; /* unset: as post-copy */
    char *drain_taint_key;
    bool has_tls_disabled;
    char *network; /* "": the pods' */
    ChTristate matches_selinux_level;
    char *compression; /* experimental.compression; NULL: unset */
} ChMigrationConfig;

typedef struct {
    char *resource_version; /* of the KubeVirt object; "" for the defaults */
    bool use_emulation;     /* developerConfiguration.useEmulation */
    bool has_cluster_profiler;
    int64_t pvc_tolerated_percent; /* by which a PVC may be too small */
    uint64_t reserved_pvc_bytes;
    int verbosity; /* for this node */
    double qps;
    guint burst;
    struct {
        char *manufacturer, *product, *version, *sku, *family;
    } smbios;
    uint32_t mem_balloon_stats_period; /* seconds */
    bool free_page_reporting_disabled;
    bool serial_console_log_disabled;
    bool has_vga_display_annotation;
    char *eviction_strategy;
    char *guest_memory_overhead_ratio;     /* NULL: unset */
    char **supported_guest_agent_versions; /* patterns such as "4.*" */
    ChMigrationConfig migrations;
    ChPermittedDevices permitted_devices;
    char **permitted_mdevs;     /* the resource names of its mediated devices */
    char **migratable_bindings; /* the binding plugins that can migrate */
    ChMediatedDevices *mediated_devices;
    GHashTable *obsolete_cpu_models; /* set of owned names; NULL: the built-in list */
    char *ksm_node_selector;         /* a label selector's JSON; NULL: KSM is not managed */
    struct {
        bool is_attestation_enforced;
        char *qgs_socket_path;
    } tdx;

    /* private: what the functions below tell, and what is only checked */
    GHashTable *bindings; /* name -> ChBindingPlugin */
    ChFeatureGates *gates;
    ChTristate persistent_reservation;
    char *hypervisor;
    int64_t memory_overcommit, cpu_allocation_ratio;
    char *image_pull_policy, *default_network_interface;
} ChClusterConfig;

/* (transfer full): the defaults of v1.9.0 (no KubeVirt object seen yet) */
ChClusterConfig *ch_cluster_config_new_default(void);

/**
 * ch_cluster_config_parse:
 * @kubevirt: a KubeVirt object
 * @node_name: for logVerbosity.nodeVerbosity
 *
 * The object laid over the defaults, and checked (spec 08 §6.2, §6.3). One bad field, of the wrong
 * type or out of its range, and nothing of it counts.
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID
 */
ChClusterConfig *
ch_cluster_config_parse(const ChJson *kubevirt, const char *node_name, GError **error);

ChClusterConfig *ch_cluster_config_ref(ChClusterConfig *config);
void ch_cluster_config_unref(ChClusterConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChClusterConfig, ch_cluster_config_unref)

/* Spec 08 §6.7: see ch_feature_gates_is_on(). */
bool ch_cluster_config_has_gate(const ChClusterConfig *config, const char *gate);

/* Borrowed; NULL: there is no such binding plugin. */
const ChBindingPlugin *ch_cluster_config_binding(const ChClusterConfig *config, const char *name);

/* Whether the pr-helper is offered. Its gate is GA, and all the same only the field counts, or the
 * gate's being listed. */
bool ch_cluster_config_has_persistent_reservation(const ChClusterConfig *config);

/* Whether mediated devices are made and removed here: the field, or else the deprecated gate. */
bool ch_cluster_config_handles_mediated_devices(const ChClusterConfig *config);

/* "kvm", "hyperv-direct"; borrowed. Another than kvm only with the gate. */
const char *ch_cluster_config_hypervisor(const ChClusterConfig *config);
