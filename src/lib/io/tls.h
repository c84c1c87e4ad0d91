/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tls: OpenSSL contexts with this project's rules: TLS 1.2 or later, peers verified by chain and by
 * name or address, buffers given back when idle.
 *
 * A context may be shared by connections and threads once it is made. Thread: any.
 */

#pragma once

#include <event2/bufferevent.h>
#include <glib.h>
#include <openssl/ssl.h>
#include <stdbool.h>

/* Code: 1, nothing to match on. The message has OpenSSL's own reason. */
#define CH_TLS_ERROR (ch_tls_error_quark())
GQuark ch_tls_error_quark(void);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(SSL_CTX, SSL_CTX_free)

typedef struct {
    const char *ca_pem;   /* NULL: the system's trust store */
    const char *cert_pem; /* client certificate (chain) and key, both or neither */
    const char *key_pem;
    bool insecure_skip_verify; /* any certificate, any name */
} ChTlsClientOptions;

/* (transfer full): NULL with CH_TLS_ERROR when a PEM text is not usable. */
SSL_CTX *ch_tls_client_context_new(const ChTlsClientOptions *options, GError **error);

/**
 * ch_tls_client_new: one connection's state, ready for the handshake.
 * @server_name: DNS name or numeric address that the certificate must be for; a name is also sent
 *     as SNI
 * @alpn: (nullable): NULL-terminated protocols, the preferred one first ("h2", "http/1.1")
 *
 * Returns: (transfer full): NULL with CH_TLS_ERROR
 */
SSL *ch_tls_client_new(SSL_CTX *context,
                       const char *server_name,
                       const char *const *alpn,
                       GError **error);

/* Why the handshake failed, for messages: the certificate's fault if there is one ("certificate has
 * expired"), else @ssl_error (as bufferevent_get_openssl_error() or ERR_get_error() gave it).
 * (transfer full)
 */
char *ch_tls_describe_failure(const SSL *ssl, unsigned long ssl_error);

/**
 * ch_tls_server_context_new: for servers.
 * @cert_pem: chain, the server's own certificate first
 *
 * Returns: (transfer full): NULL with CH_TLS_ERROR
 */
SSL_CTX *ch_tls_server_context_new(const char *cert_pem, const char *key_pem, GError **error);

/* The same from files. */
SSL_CTX *ch_tls_server_context_load(const char *cert_path, const char *key_path, GError **error);

/**
 * ch_tls_server_want_client_ca: asks clients for a certificate of @ca_pem's.
 * @is_required: false: clients without one get in (and are nobody), wrong ones do not
 */
bool ch_tls_server_want_client_ca(SSL_CTX *context,
                                  const char *ca_pem,
                                  bool is_required,
                                  GError **error);

/* Server side of ALPN: picks the first of @alpn (static storage, NULL-terminated) that the client
 * offers; none in common: the handshake goes on without ALPN. */
void ch_tls_server_set_alpn(SSL_CTX *context, const char *const *alpn);

/**
 * ch_tls_error_of: why a connection broke, in its handshake or later; for plain ones, too.
 * @bev: that reported BEV_EVENT_ERROR
 * @errnum: errno as it was then
 *
 * Returns: (transfer full): CH_HTTP_ERROR TLS (e.g. an alert: TLS 1.3 refuses client certificates
 *     as late as here) or RESET
 */
GError *ch_tls_error_of(struct bufferevent *bev, int errnum);

/* The negotiated protocol ("h2"), (transfer full); NULL: none. */
char *ch_tls_dup_alpn(const SSL *ssl);
