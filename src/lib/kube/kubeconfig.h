/* SPDX-License-Identifier: Apache-2.0 */

/*
 * kubeconfig: the YAML (or JSON) document that kubectl uses, reduced to what its current context
 * says.
 *
 * Pure: no file is read, also none that it names. Messages name the line. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#define CH_KUBECONFIG_MAX_BYTES (1u << 20)

typedef struct {
    char *text; /* (nullable) owned: not there, or empty */
    gsize line; /* from 1 */
} ChKubeconfigText;

typedef struct {
    ChKubeconfigText server, server_name, ca_data, ca_file;
    bool insecure_skip_verify;
    ChKubeconfigText token, token_file, cert_data, cert_file, key_data, key_file;
    ChKubeconfigText namespace_;
} ChKubeconfig;

/**
 * ch_kubeconfig_parse:
 * Without a current-context the result is empty, as kubectl has it.
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID (syntax, a name that leads nowhere, a way to
 * log in that this program does not have) or CH_ERROR_LIMIT
 */
ChKubeconfig *ch_kubeconfig_parse(const char *text, gsize length, GError **error);
void ch_kubeconfig_free(ChKubeconfig *kubeconfig);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChKubeconfig, ch_kubeconfig_free)
