/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "lib/io/http-message.h"

#define MAX_PEM_BYTES (1u << 20)

G_DEFINE_QUARK(ch - tls - error - quark, ch_tls_error)

G_DEFINE_AUTOPTR_CLEANUP_FUNC(BIO, BIO_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(X509, X509_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EVP_PKEY, EVP_PKEY_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SSL, SSL_free)

static bool G_GNUC_PRINTF(2, 3) fail(GError **error, const char *format, ...)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, CH_TLS_ERROR, 1, "%s: %s", what, reason != NULL ? reason : "not usable");
    ERR_clear_error();
    return false;
}

/* PEM */

static BIO *
open_pem(const char *pem, const char *what, GError **error)
{
    const gsize length = strlen(pem);

    if (length > MAX_PEM_BYTES) {
        fail(error, "%s of more than %u bytes", what, MAX_PEM_BYTES);
        return NULL;
    }
    return BIO_new_mem_buf(pem, (int)length);
}

/* OpenSSL would ask the terminal for the pass phrase of an encrypted key. */
static int
refuse_pass_phrase(char *buffer, int size, int is_writing, void *data)
{
    return -1;
}

/* The end of a PEM text is an error to OpenSSL, too. */
static bool
is_end_of_pem(void)
{
    const unsigned long code = ERR_peek_last_error();
    const bool is_end =
        ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;

    if (is_end)
        ERR_clear_error();
    return is_end;
}

/* Hands every certificate of @pem to @take, which does not get ownership; there must be one. */
static bool
each_certificate(const char *pem,
                 const char *what,
                 bool (*take)(SSL_CTX *context, X509 *cert, int index),
                 SSL_CTX *context,
                 GError **error)
{
    g_autoptr(BIO) bio = open_pem(pem, what, error);
    int n = 0;

    if (bio == NULL)
        return false;
    for (;;) {
        g_autoptr(X509) cert = PEM_read_bio_X509(bio, NULL, refuse_pass_phrase, NULL);

        if (cert == NULL)
            break;
        if (!take(context, cert, n++))
            return fail(error, "%s", what);
    }
    if (!is_end_of_pem() || n == 0)
        return fail(error, "%s", what);
    return true;
}

static bool
trust(SSL_CTX *context, X509 *cert, int index)
{
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), cert) == 1;
}

/* A server tells clients whose certificates it takes. */
static bool
trust_and_announce(SSL_CTX *context, X509 *cert, int index)
{
    return trust(context, cert, index) && SSL_CTX_add_client_CA(context, cert) == 1;
}

static bool
present(SSL_CTX *context, X509 *cert, int index)
{
    if (index == 0)
        return SSL_CTX_use_certificate(context, cert) == 1;
    return SSL_CTX_add1_chain_cert(context, cert) == 1;
}

static bool
set_identity(SSL_CTX *context, const char *cert_pem, const char *key_pem, GError **error)
{
    g_autoptr(BIO) bio = NULL;
    g_autoptr(EVP_PKEY) key = NULL;

    if (!each_certificate(cert_pem, "certificate", present, context, error))
        return false;
    bio = open_pem(key_pem, "private key", error);
    if (bio == NULL)
        return false;
    key = PEM_read_bio_PrivateKey(bio, NULL, refuse_pass_phrase, NULL);
    if (key == NULL || SSL_CTX_use_PrivateKey(context, key) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return fail(error, "private key");
    return true;
}

/* Contexts */

static SSL_CTX *
new_context(const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);

    if (context == NULL)
        g_error("no TLS context");
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    /* HTTP says itself where a message ends, so that a missing close_notify is a plain end of file
     * (Go's peers leave it out when killed). */
    SSL_CTX_set_options(context,
                        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                            SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* An idle connection gives its 32 KiB of buffers back. */
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return context;
}

SSL_CTX *
ch_tls_client_context_new(const ChTlsClientOptions *options, GError **error)
{
    g_autoptr(SSL_CTX) context = new_context(TLS_client_method());

    g_return_val_if_fail((options->cert_pem == NULL) == (options->key_pem == NULL), NULL);

    if (options->ca_pem == NULL)
        SSL_CTX_set_default_verify_paths(context);
    else if (!each_certificate(options->ca_pem, "CA certificate", trust, context, error))
        return NULL;
    if (options->cert_pem != NULL &&
        !set_identity(context, options->cert_pem, options->key_pem, error))
        return NULL;
    SSL_CTX_set_verify(
        context, options->insecure_skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    return g_steal_pointer(&context);
}

SSL_CTX *
ch_tls_server_context_new(const char *cert_pem, const char *key_pem, GError **error)
{
    g_autoptr(SSL_CTX) context = new_context(TLS_server_method());

    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_num_tickets(context, 0);
    if (!set_identity(context, cert_pem, key_pem, error))
        return NULL;
    return g_steal_pointer(&context);
}

SSL_CTX *
ch_tls_server_context_load(const char *cert_path, const char *key_path, GError **error)
{
    g_autofree char *cert_pem = NULL;
    g_autofree char *key_pem = NULL;
    g_autoptr(GError) cause = NULL;
    SSL_CTX *context;

    if (!g_file_get_contents(cert_path, &cert_pem, NULL, &cause) ||
        !g_file_get_contents(key_path, &key_pem, NULL, &cause)) {
        g_set_error_literal(error, CH_TLS_ERROR, 1, cause->message);
        return NULL;
    }
    context = ch_tls_server_context_new(cert_pem, key_pem, error);
    if (context == NULL)
        g_prefix_error(error, "'%s', '%s': ", cert_path, key_path);
    return context;
}

bool
ch_tls_server_want_client_ca(SSL_CTX *context, const char *ca_pem, bool is_required, GError **error)
{
    if (!each_certificate(ca_pem, "client CA certificate", trust_and_announce, context, error))
        return false;
    SSL_CTX_set_verify(
        context, SSL_VERIFY_PEER | (is_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    return true;
}

static int
select_alpn(SSL *ssl,
            const unsigned char **out,
            unsigned char *out_length,
            const unsigned char *offered,
            unsigned int offered_length,
            void *data)
{
    for (const char *const *wanted = data; *wanted != NULL; wanted++) {
        const gsize length = strlen(*wanted);

        for (unsigned int i = 0; i < offered_length; i += 1u + offered[i]) {
            if (offered[i] == length && memcmp(offered + i + 1, *wanted, length) == 0) {
                *out = offered + i + 1;
                *out_length = offered[i];
                return SSL_TLSEXT_ERR_OK;
            }
        }
    }
    return SSL_TLSEXT_ERR_NOACK;
}

void
ch_tls_server_set_alpn(SSL_CTX *context, const char *const *alpn)
{
    SSL_CTX_set_alpn_select_cb(context, select_alpn, (void *)alpn);
}

/* Connections */

static bool
is_address(const char *name)
{
    struct in6_addr address;

    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

/* Whom the certificate must name. As Go: the subject's CN counts for nothing. */
static bool
set_peer_name(SSL *ssl, const char *name)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    X509_VERIFY_PARAM_set_hostflags(
        param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (is_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    return X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

static void
offer_alpn(SSL *ssl, const char *const *alpn)
{
    g_autoptr(GByteArray) wire = g_byte_array_new(); /* each with its length before it */

    for (; *alpn != NULL; alpn++) {
        const uint8_t length = (uint8_t)strlen(*alpn);

        g_byte_array_append(wire, &length, 1);
        g_byte_array_append(wire, (const uint8_t *)*alpn, length);
    }
    SSL_set_alpn_protos(ssl, wire->data, wire->len);
}

SSL *
ch_tls_client_new(SSL_CTX *context,
                  const char *server_name,
                  const char *const *alpn,
                  GError **error)
{
    g_autoptr(SSL) ssl = SSL_new(context);

    if (ssl == NULL || !set_peer_name(ssl, server_name)) {
        fail(error, "server name '%s'", server_name);
        return NULL;
    }
    if (alpn != NULL)
        offer_alpn(ssl, alpn);
    SSL_set_connect_state(ssl);
    return g_steal_pointer(&ssl);
}

char *
ch_tls_describe_failure(const SSL *ssl, unsigned long ssl_error)
{
    const long verdict = SSL_get_verify_result(ssl);
    const char *reason = ERR_reason_error_string(ssl_error);

    if (verdict != X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE)
        return g_strdup(X509_verify_cert_error_string(verdict));
    return g_strdup(reason != NULL ? reason : "handshake failed");
}

/* libevent also notes results of SSL_get_error() here, which are no error codes. Returns: 0: none
 */
static unsigned long
last_library_error(struct bufferevent *bev)
{
    unsigned long code;

    do
        code = bufferevent_get_openssl_error(bev);
    while (code != 0 && ERR_GET_LIB(code) == 0);
    return code;
}

/* A peer that refuses says why and closes; a write may meet the closing before the reason is read.
 * Returns: its alert as an error code, or 0 */
static unsigned long
read_last_words(SSL *ssl)
{
    unsigned long code;
    char byte;

    ERR_clear_error();
    if (SSL_read(ssl, &byte, 1) > 0)
        return 0;
    code = ERR_peek_error();
    ERR_clear_error();
    return ERR_GET_LIB(code) == ERR_LIB_SSL ? code : 0;
}

GError *
ch_tls_error_of(struct bufferevent *bev, int errnum)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    unsigned long code = ssl != NULL ? last_library_error(bev) : 0;
    g_autofree char *reason = NULL;

    if (ssl != NULL && (code == 0 || ERR_SYSTEM_ERROR(code)) &&
        (errnum == ECONNRESET || errnum == EPIPE)) {
        const unsigned long alert = read_last_words(ssl);

        code = alert != 0 ? alert : code;
    }
    if (ERR_SYSTEM_ERROR(code)) /* a failed read or write */
        return ch_http_error_new_lost(ERR_GET_REASON(code));
    if (code == 0)
        return ch_http_error_new_lost(errnum);
    reason = ch_tls_describe_failure(ssl, code);
    return g_error_new_literal(CH_HTTP_ERROR, CH_HTTP_ERROR_TLS, reason);
}

char *
ch_tls_dup_alpn(const SSL *ssl)
{
    const unsigned char *name;
    unsigned int length;

    SSL_get0_alpn_selected(ssl, &name, &length);
    return length > 0 ? g_strndup((const char *)name, length) : NULL;
}
