/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pki: a certificate authority, a server certificate and a bearer token of one's own, and the
 * kubeconfig that tells clients of them.
 *
 * Authority and token are made once and kept in the state directory; the server's certificate is
 * made at every start. All files have mode 0600. Thread: any. Blocks: for small files.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    char *ca_pem;
    char *cert_pem;
    char *key_pem;
    char *token;
} ChPki;

/**
 * ch_pki_load:
 * @address: that the server binds; in the certificate beside the loopback names
 * Returns: false with CH_ERROR_FAILED (files, OpenSSL), CH_ERROR_INVALID (a damaged authority)
 */
bool ch_pki_load(const char *state_dir, const char *address, ChPki *out_pki, GError **error);
void ch_pki_clear(ChPki *pki);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChPki, ch_pki_clear)

/* @server: URL. Replaces the file in one step. */
bool
ch_pki_write_kubeconfig(const ChPki *pki, const char *path, const char *server, GError **error);
