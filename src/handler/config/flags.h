/* SPDX-License-Identifier: Apache-2.0 */

/*
 * flags: virt-handler's command line. Every flag of v1.9.0 with its default. Spec 08 §1.1.
 *
 * Pure but for nothing: no exit, no printing. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int verbosity;
    char *kubeconfig;
    char *master;
    char *listen;
    int port;
    int console_server_port;
    int vmstats_server_port;
    char *hostname_override;
    char *pod_ip_address;
    char *kubevirt_share_dir;
    char *kubevirt_private_dir;
    char *kubelet_pods_dir;
    char *kubelet_root;
    char *ca_configmap_name;
    char *client_cert_file;
    char *client_key_file;
    char *migration_client_cert_file;
    char *migration_client_key_file;
    char *vsock_client_cert_file;
    char *vsock_client_key_file;
    char *tls_cert_file;
    char *tls_key_file;
    bool externally_managed;
    int64_t watchdog_timeout_us;
    int max_devices;
    int max_metric_requests;
    int domain_resync_period_seconds;
    int graceful_shutdown_seconds;
    bool enable_node_labeller;
    GPtrArray *migration_cn_types;
    /* Flags that were given and whose feature is not built yet: borrowed names, for one line in the
     * log. */
    GPtrArray *not_built;
} ChFlags;

typedef enum {
    CH_FLAGS_OK,
    CH_FLAGS_HELP,  /* --help: print the usage, exit status 0 */
    CH_FLAGS_ERROR, /* print the usage and the error, exit status 2 */
} ChFlagsOutcome;

/**
 * ch_flags_parse:
 * @argv: NULL-terminated, with the program's name first
 * @out_flags: (out) (transfer full): written on CH_FLAGS_OK
 * @error: set on CH_FLAGS_ERROR
 *
 * GNU style: `--name value`, `--name=value`, `-v 3`, `-v3`; flags and operands may be mixed,
 * operands are ignored, `--` ends the flags.
 */
ChFlagsOutcome ch_flags_parse(const char *const *argv, ChFlags **out_flags, GError **error);
void ch_flags_free(ChFlags *flags);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChFlags, ch_flags_free)

/* (transfer full): the usage text, first line "Usage of <program>:" */
char *ch_flags_usage(const char *program);
