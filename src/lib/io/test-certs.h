/* SPDX-License-Identifier: Apache-2.0 */

/* test-certs: certificates made on the spot, for tests. */

#pragma once

#include <glib.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

typedef struct {
    X509 *cert;
    EVP_PKEY *key;
    char *cert_pem;
    char *key_pem;
} TestCert;

static inline char *
test_cert_take_text(BIO *bio)
{
    char *bytes;
    const long length = BIO_get_mem_data(bio, &bytes);
    char *text = g_strndup(bytes, (gsize)length);

    BIO_free(bio);
    return text;
}

static inline void
test_cert_extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    g_assert_nonnull(extension);
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
}

/* @issuer: NULL: a CA. @names: e.g. "DNS:localhost,IP:127.0.0.1". Valid from an hour ago until
 * @seconds from now. */
static inline void
test_cert_init(TestCert *c, const TestCert *issuer, const char *names, long seconds)
{
    static long serial;
    X509_NAME *subject;
    BIO *bio;

    c->key = EVP_EC_gen("P-256");
    c->cert = X509_new();
    X509_set_version(c->cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c->cert), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(c->cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(c->cert), seconds);
    X509_set_pubkey(c->cert, c->key);
    subject = X509_get_subject_name(c->cert);
    X509_NAME_add_entry_by_txt(subject,
                               "CN",
                               MBSTRING_ASC,
                               (const unsigned char *)(issuer == NULL ? "test CA" : "test"),
                               -1,
                               -1,
                               0);
    X509_set_issuer_name(c->cert, X509_get_subject_name(issuer == NULL ? c->cert : issuer->cert));
    if (issuer == NULL)
        test_cert_extend(c->cert, c->cert, NID_basic_constraints, "critical,CA:TRUE");
    else
        test_cert_extend(c->cert, issuer->cert, NID_subject_alt_name, names);
    X509_sign(c->cert, issuer == NULL ? c->key : issuer->key, EVP_sha256());

    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, c->cert);
    c->cert_pem = test_cert_take_text(bio);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, c->key, NULL, NULL, 0, NULL, NULL);
    c->key_pem = test_cert_take_text(bio);
}

static inline void
test_cert_clear(TestCert *c)
{
    X509_free(c->cert);
    EVP_PKEY_free(c->key);
    g_free(c->cert_pem);
    g_free(c->key_pem);
}
