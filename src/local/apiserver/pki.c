/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/pki.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"

#define VALID_S     (10L * 365 * 24 * 3600)
#define BACKDATED_S (3600L) /* for clients whose clock is a little behind */
#define TOKEN_BYTES 32

G_DEFINE_AUTOPTR_CLEANUP_FUNC(X509, X509_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EVP_PKEY, EVP_PKEY_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BIO, BIO_free_all)

static bool
fail_openssl(GError **error, const char *doing)
{
    char reason[256];

    ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
    return ch_fail(error, CH_ERROR_FAILED, "%s: %s", doing, reason);
}

/* --- files ------------------------------------------------------------------------------------ */

/* Never seen half written, never readable by others. */
static bool
write_private(const char *path, const char *text, GError **error)
{
    g_autoptr(GError) cause = NULL;

    if (g_file_set_contents_full(path,
                                 text,
                                 (gssize)strlen(text),
                                 G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                 0600,
                                 &cause))
        return true;
    return ch_fail(error, CH_ERROR_FAILED, "%s", cause->message);
}

/* (transfer full): NULL without @error: it is not there */
static char *
read_file(const char *dir, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) cause = NULL;
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, &cause) &&
        !g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        ch_fail(error, CH_ERROR_FAILED, "%s", cause->message);
    return text;
}

static bool
write_file(const char *dir, const char *name, const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    return write_private(path, text, error);
}

/* --- PEM -------------------------------------------------------------------------------------- */

static char *
take_text(BIO *bio)
{
    char *bytes;
    const long length = BIO_get_mem_data(bio, &bytes);

    return g_strndup(bytes, (gsize)length);
}

static char *
print_cert(X509 *cert)
{
    g_autoptr(BIO) bio = BIO_new(BIO_s_mem());

    return PEM_write_bio_X509(bio, cert) == 1 ? take_text(bio) : NULL;
}

static char *
print_key(EVP_PKEY *key)
{
    g_autoptr(BIO) bio = BIO_new(BIO_s_mem());

    return PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1 ? take_text(bio)
                                                                              : NULL;
}

static X509 *
parse_cert(const char *pem)
{
    g_autoptr(BIO) bio = BIO_new_mem_buf(pem, -1);

    return PEM_read_bio_X509(bio, NULL, NULL, NULL);
}

static EVP_PKEY *
parse_key(const char *pem)
{
    g_autoptr(BIO) bio = BIO_new_mem_buf(pem, -1);

    return PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
}

/* --- certificates ----------------------------------------------------------------------------- */

static bool
add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    bool ok;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ok = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

/* What both kinds of certificate have. @issuer: (nullable): NULL: it is its own */
static X509 *
start_cert(const char *common_name, EVP_PKEY *key, X509 *issuer)
{
    g_autoptr(X509) cert = X509_new();
    unsigned char serial[16];
    X509_NAME *name;
    BIGNUM *number;

    if (cert == NULL || RAND_bytes(serial, sizeof(serial)) != 1)
        return NULL;
    serial[0] &= 0x7f;
    number = BN_bin2bn(serial, sizeof(serial), NULL);
    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    name = X509_get_subject_name(cert);
    if (X509_set_version(cert, X509_VERSION_3) != 1 ||
        X509_gmtime_adj(X509_getm_notBefore(cert), -BACKDATED_S) == NULL ||
        X509_gmtime_adj(X509_getm_notAfter(cert), VALID_S) == NULL ||
        X509_NAME_add_entry_by_txt(
            name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0) != 1 ||
        X509_set_issuer_name(cert, issuer != NULL ? X509_get_subject_name(issuer) : name) != 1 ||
        X509_set_pubkey(cert, key) != 1)
        return NULL;
    return g_steal_pointer(&cert);
}

static X509 *
make_ca(EVP_PKEY *key)
{
    g_autoptr(X509) cert = start_cert("chandler-ca", key, NULL);

    if (cert == NULL || !add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE") ||
        !add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(cert, cert, NID_subject_key_identifier, "hash") ||
        X509_sign(cert, key, EVP_sha256()) == 0)
        return NULL;
    return g_steal_pointer(&cert);
}

static bool
is_loopback_text(const char *address)
{
    return g_str_equal(address, "127.0.0.1") || g_str_equal(address, "::1");
}

static X509 *
make_server_cert(const char *address, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key)
{
    g_autoptr(X509) cert = start_cert("chandler-apiserver", key, ca);
    g_autofree char *names = g_strconcat(
        "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
        "IP:127.0.0.1,IP:::1",
        is_loopback_text(address) ? "" : ",IP:",
        is_loopback_text(address) ? "" : address,
        NULL);

    if (cert == NULL || !add_extension(cert, ca, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(cert, ca, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(cert, ca, NID_ext_key_usage, "serverAuth") ||
        !add_extension(cert, ca, NID_authority_key_identifier, "keyid") ||
        !add_extension(cert, ca, NID_subject_alt_name, names) ||
        X509_sign(cert, ca_key, EVP_sha256()) == 0)
        return NULL;
    return g_steal_pointer(&cert);
}

/* The authority from the state directory, or a new one. */
static bool
load_ca(const char *dir, X509 **out_cert, EVP_PKEY **out_key, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *cert_pem = read_file(dir, "ca.crt", &cause);
    g_autofree char *key_pem = cause == NULL ? read_file(dir, "ca.key", &cause) : NULL;
    g_autoptr(X509) cert = NULL;
    g_autoptr(EVP_PKEY) key = NULL;

    if (cause != NULL) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return false;
    }
    if (cert_pem != NULL && key_pem != NULL) {
        cert = parse_cert(cert_pem);
        key = parse_key(key_pem);
        if (cert == NULL || key == NULL || X509_check_private_key(cert, key) != 1)
            return ch_fail(error,
                           CH_ERROR_INVALID,
                           "'%s/ca.crt' and 'ca.key' are damaged; remove both for new ones",
                           dir);
    } else {
        key = EVP_EC_gen("P-256");
        cert = key != NULL ? make_ca(key) : NULL;
        if (cert == NULL)
            return fail_openssl(error, "make a certificate authority");
        g_free(cert_pem);
        g_free(key_pem);
        cert_pem = print_cert(cert);
        key_pem = print_key(key);
        if (!write_file(dir, "ca.key", key_pem, error) ||
            !write_file(dir, "ca.crt", cert_pem, error))
            return false;
    }
    *out_cert = g_steal_pointer(&cert);
    *out_key = g_steal_pointer(&key);
    return true;
}

static bool
load_token(const char *dir, char **out_token, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *token = read_file(dir, "token", &cause);
    unsigned char random[TOKEN_BYTES];
    g_autoptr(GString) text = NULL;

    if (cause != NULL) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return false;
    }
    if (token != NULL && strlen(g_strstrip(token)) >= 16) {
        *out_token = g_steal_pointer(&token);
        return true;
    }
    if (RAND_bytes(random, sizeof(random)) != 1)
        return fail_openssl(error, "draw a token");
    text = g_string_new(NULL);
    for (gsize i = 0; i < sizeof(random); i++)
        g_string_append_printf(text, "%02x", random[i]);
    if (!write_file(dir, "token", text->str, error))
        return false;
    *out_token = g_string_free(g_steal_pointer(&text), FALSE);
    return true;
}

bool
ch_pki_load(const char *state_dir, const char *address, ChPki *out_pki, GError **error)
{
    g_auto(ChPki) pki = {0};
    g_autoptr(X509) ca = NULL;
    g_autoptr(EVP_PKEY) ca_key = NULL;
    g_autoptr(X509) cert = NULL;
    g_autoptr(EVP_PKEY) key = NULL;

    if (!load_ca(state_dir, &ca, &ca_key, error) || !load_token(state_dir, &pki.token, error))
        return false;
    key = EVP_EC_gen("P-256");
    cert = key != NULL ? make_server_cert(address, key, ca, ca_key) : NULL;
    if (cert == NULL)
        return fail_openssl(error, "make the server's certificate");
    pki.ca_pem = print_cert(ca);
    pki.cert_pem = print_cert(cert);
    pki.key_pem = print_key(key);
    if (!write_file(state_dir, "server.crt", pki.cert_pem, error) ||
        !write_file(state_dir, "server.key", pki.key_pem, error))
        return false;
    *out_pki = pki;
    pki = (ChPki){0};
    return true;
}

void
ch_pki_clear(ChPki *pki)
{
    g_free(pki->ca_pem);
    g_free(pki->cert_pem);
    g_free(pki->key_pem);
    g_free(pki->token);
    *pki = (ChPki){0};
}

bool
ch_pki_write_kubeconfig(const ChPki *pki, const char *path, const char *server, GError **error)
{
    g_autofree char *ca = g_base64_encode((const guchar *)pki->ca_pem, strlen(pki->ca_pem));
    g_autofree char *text = g_strdup_printf("apiVersion: v1\n"
                                            "kind: Config\n"
                                            "current-context: chandler\n"
                                            "clusters:\n"
                                            "- name: chandler\n"
                                            "  cluster:\n"
                                            "    server: %s\n"
                                            "    certificate-authority-data: %s\n"
                                            "users:\n"
                                            "- name: chandler\n"
                                            "  user:\n"
                                            "    token: %s\n"
                                            "contexts:\n"
                                            "- name: chandler\n"
                                            "  context:\n"
                                            "    cluster: chandler\n"
                                            "    user: chandler\n"
                                            "    namespace: default\n",
                                            server,
                                            ca,
                                            pki->token);

    return write_private(path, text, error);
}
