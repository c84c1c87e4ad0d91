/* SPDX-License-Identifier: Apache-2.0 */

/*
 * config: where the API server is and who we are: kubeconfig, in-cluster, or --master. Spec 01
 * §2.1, 08 §5.1.
 */

#pragma once

#include "lib/io/http-client.h"

typedef struct {
    bool is_tls;
    char *host;
    uint16_t port;
    char *path_prefix; /* "" mostly */
    char *ca_pem;      /* (nullable) */
    char *cert_pem;    /* (nullable) */
    char *key_pem;     /* (nullable) */
    char *server_name; /* (nullable) */
    bool insecure_skip_verify;
    char *token;      /* (nullable): fixed */
    char *token_file; /* (nullable): re-read, wins over token */
    char *namespace_; /* (nullable): of the context, or of the service account */
} ChKubeConfig;

/**
 * ch_kube_config_load:
 * @kubeconfig: (nullable): path; @master: (nullable): URL that overrides the server of it
 * Both NULL or empty: in-cluster (environment and service account directory). Blocks: reads small
 * files.
 */
ChKubeConfig *ch_kube_config_load(const char *kubeconfig, const char *master, GError **error);

/* The text of a kubeconfig. @directory: what relative paths in it are relative to; @name: for
 * messages, which name the line. */
ChKubeConfig *ch_kube_config_parse(const char *text,
                                   gsize length,
                                   const char *name,
                                   const char *directory,
                                   const char *master,
                                   GError **error);
/* In-cluster with the service account's directory, host and port as given; NULL: the real ones. */
ChKubeConfig *ch_kube_config_in_cluster(const char *directory,
                                        const char *host,
                                        const char *port,
                                        GError **error);
void ch_kube_config_free(ChKubeConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChKubeConfig, ch_kube_config_free)
