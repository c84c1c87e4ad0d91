/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/pki.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "local/apiserver/test-support.h"

static X509 *
parse_cert(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    BIO_free(bio);
    g_assert_nonnull(cert);
    return cert;
}

static void
test_server_certificate_is_for_its_names(void)
{
    g_autofree char *dir = g_dir_make_tmp("chandler-pki-XXXXXX", NULL);
    g_auto(ChPki) pki = {0};
    g_autoptr(GError) error = NULL;
    X509 *ca, *cert;
    EVP_PKEY *key;

    ch_pki_load(dir, "10.1.2.3", &pki, &error);
    g_assert_no_error(error);
    ca = parse_cert(pki.ca_pem);
    cert = parse_cert(pki.cert_pem);
    key = X509_get_pubkey(ca);
    g_assert_cmpint(X509_verify(cert, key), ==, 1);
    g_assert_cmpint(X509_check_issued(ca, cert), ==, X509_V_OK);
    g_assert_cmpint(X509_check_ca(ca), ==, 1);
    g_assert_cmpint(X509_check_ca(cert), ==, 0);
    g_assert_cmpint(X509_check_ip_asc(cert, "127.0.0.1", 0), ==, 1);
    g_assert_cmpint(X509_check_ip_asc(cert, "10.1.2.3", 0), ==, 1);
    g_assert_cmpint(X509_check_host(cert, "localhost", 0, 0, NULL), ==, 1);
    g_assert_cmpint(X509_check_host(cert, "example.com", 0, 0, NULL), ==, 0);
    EVP_PKEY_free(key);
    X509_free(cert);
    X509_free(ca);
    test_remove_dir(dir);
}

static void
test_authority_and_token_stay(void)
{
    static const char *const names[] = {"ca.crt", "ca.key", "server.crt", "server.key", "token"};
    g_autofree char *dir = g_dir_make_tmp("chandler-pki-XXXXXX", NULL);
    g_auto(ChPki) first = {0};
    g_auto(ChPki) second = {0};

    g_assert_true(ch_pki_load(dir, "127.0.0.1", &first, NULL));
    g_assert_true(ch_pki_load(dir, "127.0.0.1", &second, NULL));
    g_assert_cmpstr(first.ca_pem, ==, second.ca_pem);
    g_assert_cmpstr(first.token, ==, second.token);
    g_assert_cmpuint(strlen(first.token), ==, 64);
    g_assert_cmpstr(first.key_pem, !=, second.key_pem);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);
        struct stat about;

        g_assert_cmpint(stat(path, &about), ==, 0);
        g_assert_cmpint(about.st_mode & 0777, ==, 0600);
    }
    test_remove_dir(dir);
}

static void
test_damaged_authority_is_an_error(void)
{
    g_autofree char *dir = g_dir_make_tmp("chandler-pki-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "ca.crt", NULL);
    g_auto(ChPki) first = {0};
    g_auto(ChPki) second = {0};
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_pki_load(dir, "127.0.0.1", &first, NULL));
    g_assert_true(g_file_set_contents(path, "garbage", -1, NULL));
    g_assert_false(ch_pki_load(dir, "127.0.0.1", &second, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_null(second.token);
    test_remove_dir(dir);
}

static void
test_kubeconfig_tells_all(void)
{
    g_autofree char *dir = g_dir_make_tmp("chandler-pki-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "kubeconfig", NULL);
    g_autofree char *text = NULL;
    g_auto(ChPki) pki = {0};
    struct stat about;

    g_assert_true(ch_pki_load(dir, "127.0.0.1", &pki, NULL));
    g_assert_true(ch_pki_write_kubeconfig(&pki, path, "https://127.0.0.1:6443", NULL));
    g_assert_cmpint(stat(path, &about), ==, 0);
    g_assert_cmpint(about.st_mode & 0777, ==, 0600);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "    server: https://127.0.0.1:6443\n"));
    g_assert_nonnull(strstr(text, pki.token));
    g_unlink(path);
    test_remove_dir(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pki/server-certificate", test_server_certificate_is_for_its_names);
    g_test_add_func("/pki/authority-and-token-stay", test_authority_and_token_stay);
    g_test_add_func("/pki/damaged-authority", test_damaged_authority_is_an_error);
    g_test_add_func("/pki/kubeconfig", test_kubeconfig_tells_all);
    return g_test_run();
}
