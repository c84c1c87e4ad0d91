/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/tls.h"

#include <glib/gstdio.h>
#include <openssl/err.h>
#include <string.h>

#include "lib/io/test-certs.h"

static TestCert ca, other_ca, by_name, by_address, expired, self_signed;

static const char *const h2_or_1[] = {"h2", "http/1.1", NULL};
static const char *const only_1[] = {"http/1.1", NULL};
static const char *const only_odd[] = {"odd", NULL};

typedef struct {
    bool is_done;      /* both sides finished */
    char *why;         /* the client's reason otherwise */
    char *alpn;        /* as the client sees it */
    int version;       /* TLS */
    bool has_identity; /* the server saw a client certificate */
} Outcome;

/* Both sides over memory, until neither can go on. */
static void
shake(SSL *client, SSL *server, Outcome *out)
{
    BIO *ends[2];
    int c = 0, s = 0;
    unsigned long why = 0;

    BIO_new_bio_pair(&ends[0], 0, &ends[1], 0);
    SSL_set_bio(client, ends[0], ends[0]);
    SSL_set_bio(server, ends[1], ends[1]);
    for (int i = 0; i < 20 && !(c == 1 && s == 1); i++) {
        c = SSL_do_handshake(client);
        if (c != 1 && SSL_get_error(client, c) == SSL_ERROR_SSL)
            why = ERR_peek_last_error();
        ERR_clear_error();
        s = SSL_do_handshake(server);
        ERR_clear_error();
    }
    out->is_done = c == 1 && s == 1;
    out->why = out->is_done ? NULL : ch_tls_describe_failure(client, why);
    out->alpn = ch_tls_dup_alpn(client);
    out->version = SSL_version(client);
    out->has_identity = SSL_get0_peer_certificate(server) != NULL;
}

static void
clear(Outcome *out)
{
    g_free(out->why);
    g_free(out->alpn);
}

typedef struct {
    const char *name;
    const TestCert *server;
    const TestCert *ca; /* that the client trusts */
    const char *server_name;
    bool skips_verify;
    const char *why; /* NULL: it works */
} NameCase;

static const NameCase name_cases[] = {
    {"name", &by_name, &ca, "node.example", false, NULL},
    {"wildcard", &by_name, &ca, "a.wild.example", false, NULL},
    {"address", &by_address, &ca, "127.0.0.1", false, NULL},
    {"ipv6-address", &by_address, &ca, "::1", false, NULL},
    {"other-name", &by_name, &ca, "other.example", false, "hostname mismatch"},
    {"subject-is-no-name", &by_name, &ca, "test", false, "hostname mismatch"},
    {"other-address", &by_address, &ca, "127.0.0.2", false, "IP address mismatch"},
    {"address-as-name", &by_address, &ca, "node.example", false, "hostname mismatch"},
    {"expired", &expired, &ca, "node.example", false, "certificate has expired"},
    {"other-ca", &by_name, &other_ca, "node.example", false, "certificate signature failure"},
    {"skip-verify", &expired, &other_ca, "whoever", true, NULL},
};

static void
test_name(gconstpointer data)
{
    const NameCase *c = data;
    const ChTlsClientOptions options = {.ca_pem = c->ca->cert_pem,
                                        .insecure_skip_verify = c->skips_verify};
    g_autoptr(GError) error = NULL;
    g_autoptr(SSL_CTX) client_context = ch_tls_client_context_new(&options, &error);
    g_autoptr(SSL_CTX) server_context =
        ch_tls_server_context_new(c->server->cert_pem, c->server->key_pem, &error);
    SSL *client = ch_tls_client_new(client_context, c->server_name, NULL, &error);
    SSL *server = SSL_new(server_context);
    Outcome out;

    g_assert_no_error(error);
    SSL_set_accept_state(server);
    shake(client, server, &out);
    if (c->why == NULL) {
        g_assert_null(out.why);
        g_assert_true(out.is_done);
    } else {
        g_assert_false(out.is_done);
        g_assert_nonnull(strstr(out.why, c->why));
    }
    clear(&out);
    SSL_free(client);
    SSL_free(server);
}

/* A handshake with usable certificates where only the given things vary. */
static void
shake_with(const ChTlsClientOptions *options,
           SSL_CTX *server_context,
           const char *const *alpn,
           int max_version,
           Outcome *out)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SSL_CTX) client_context = ch_tls_client_context_new(options, &error);
    SSL *client = ch_tls_client_new(client_context, "127.0.0.1", alpn, &error);
    SSL *server = SSL_new(server_context);

    g_assert_no_error(error);
    SSL_set_accept_state(server);
    SSL_set_min_proto_version(server, 0);
    SSL_set_max_proto_version(server, max_version);
    shake(client, server, out);
    SSL_free(client);
    SSL_free(server);
}

static SSL_CTX *
good_server(void)
{
    g_autoptr(GError) error = NULL;
    SSL_CTX *context = ch_tls_server_context_new(by_address.cert_pem, by_address.key_pem, &error);

    g_assert_no_error(error);
    return context;
}

static void
test_alpn(void)
{
    const ChTlsClientOptions options = {.ca_pem = ca.cert_pem};
    g_autoptr(SSL_CTX) server = good_server();
    Outcome out;

    shake_with(&options, server, h2_or_1, 0, &out);
    g_assert_true(out.is_done);
    g_assert_null(out.alpn); /* the server knows nothing of it */
    g_assert_cmpint(out.version, ==, TLS1_3_VERSION);
    clear(&out);
    ch_tls_server_set_alpn(server, h2_or_1);
    shake_with(&options, server, h2_or_1, 0, &out);
    g_assert_cmpstr(out.alpn, ==, "h2");
    clear(&out);
    shake_with(&options, server, only_1, 0, &out);
    g_assert_cmpstr(out.alpn, ==, "http/1.1");
    clear(&out);
    shake_with(&options, server, only_odd, 0, &out);
    g_assert_true(out.is_done);
    g_assert_null(out.alpn);
    clear(&out);
}

static void
test_old_versions_are_refused(void)
{
    const ChTlsClientOptions options = {.ca_pem = ca.cert_pem};
    g_autoptr(SSL_CTX) server = good_server();
    Outcome out;

    shake_with(&options, server, NULL, TLS1_2_VERSION, &out);
    g_assert_true(out.is_done);
    clear(&out);
    shake_with(&options, server, NULL, TLS1_1_VERSION, &out);
    g_assert_false(out.is_done);
    clear(&out);
}

static void
test_client_certificate(void)
{
    const ChTlsClientOptions nobody = {.ca_pem = ca.cert_pem};
    const ChTlsClientOptions known = {
        .ca_pem = ca.cert_pem, .cert_pem = by_name.cert_pem, .key_pem = by_name.key_pem};
    const ChTlsClientOptions stranger = {
        .ca_pem = ca.cert_pem, .cert_pem = self_signed.cert_pem, .key_pem = self_signed.key_pem};
    g_autoptr(GError) error = NULL;
    g_autoptr(SSL_CTX) optional = good_server();
    g_autoptr(SSL_CTX) required = good_server();
    Outcome out;

    g_assert_true(ch_tls_server_want_client_ca(optional, ca.cert_pem, false, &error));
    g_assert_true(ch_tls_server_want_client_ca(required, ca.cert_pem, true, &error));
    shake_with(&nobody, optional, NULL, 0, &out);
    g_assert_true(out.is_done && !out.has_identity);
    clear(&out);
    shake_with(&nobody, required, NULL, 0, &out);
    g_assert_false(out.is_done);
    clear(&out);
    shake_with(&known, required, NULL, 0, &out);
    g_assert_true(out.is_done && out.has_identity);
    clear(&out);
    shake_with(&stranger, optional, NULL, 0, &out);
    g_assert_false(out.is_done);
    clear(&out);
}

static void
test_unusable_pem(void)
{
    g_autofree char *broken = g_strconcat(ca.cert_pem, ca.cert_pem, NULL);
    g_autofree char *huge = g_strnfill(2 << 20, 'x');
    const char *bad[] = {"", "no PEM", broken, huge};

    memcpy(broken + strlen(ca.cert_pem) + 40, "????", 4); /* in the second one */
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        const ChTlsClientOptions options = {.ca_pem = bad[i]};
        g_autoptr(GError) error = NULL;
        g_autoptr(GError) server_error = NULL;

        g_assert_null(ch_tls_client_context_new(&options, &error));
        g_assert_error(error, CH_TLS_ERROR, 1);
        g_assert_null(ch_tls_server_context_new(by_name.cert_pem, bad[i], &server_error));
        g_assert_error(server_error, CH_TLS_ERROR, 1);
    }
}

static void
test_key_of_another(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_tls_server_context_new(by_name.cert_pem, by_address.key_pem, &error));
    g_assert_error(error, CH_TLS_ERROR, 1);
}

static void
test_files(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = g_dir_make_tmp("test-tls-XXXXXX", &error);
    g_autofree char *cert = g_build_filename(dir, "tls.crt", NULL);
    g_autofree char *key = g_build_filename(dir, "tls.key", NULL);
    g_autoptr(SSL_CTX) context = NULL;

    g_assert_null(ch_tls_server_context_load(cert, key, &error));
    g_assert_error(error, CH_TLS_ERROR, 1);
    g_clear_error(&error);
    g_assert_true(g_file_set_contents(cert, by_name.cert_pem, -1, &error));
    g_assert_true(g_file_set_contents(key, by_name.key_pem, -1, &error));
    context = ch_tls_server_context_load(cert, key, &error);
    g_assert_no_error(error);
    g_assert_nonnull(context);
    g_unlink(cert);
    g_unlink(key);
    g_rmdir(dir);
}

int
main(int argc, char **argv)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    test_cert_init(&ca, NULL, NULL, 3600);
    test_cert_init(&other_ca, NULL, NULL, 3600);
    test_cert_init(&self_signed, NULL, NULL, 3600);
    test_cert_init(&by_name, &ca, "DNS:node.example,DNS:*.wild.example", 3600);
    test_cert_init(&by_address, &ca, "IP:127.0.0.1,IP:::1", 3600);
    test_cert_init(&expired, &ca, "DNS:node.example", -60);
    for (gsize i = 0; i < G_N_ELEMENTS(name_cases); i++) {
        g_autofree char *path = g_strdup_printf("/tls/verify/%s", name_cases[i].name);

        g_test_add_data_func(path, &name_cases[i], test_name);
    }
    g_test_add_func("/tls/alpn", test_alpn);
    g_test_add_func("/tls/old-versions-are-refused", test_old_versions_are_refused);
    g_test_add_func("/tls/client-certificate", test_client_certificate);
    g_test_add_func("/tls/unusable-pem", test_unusable_pem);
    g_test_add_func("/tls/key-of-another", test_key_of_another);
    g_test_add_func("/tls/files", test_files);
    status = g_test_run();
    test_cert_clear(&ca);
    test_cert_clear(&other_ca);
    test_cert_clear(&self_signed);
    test_cert_clear(&by_name);
    test_cert_clear(&by_address);
    test_cert_clear(&expired);
    return status;
}
