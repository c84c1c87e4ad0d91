/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/config.h"

#include <glib/gstdio.h>

#include "lib/base/errors.h"

#define PEM64 "LS0tcGVt" /* "---pem" */

static const char typical[] = "apiVersion: v1\n"
                              "kind: Config\n"
                              "current-context: here\n"
                              "preferences: {}\n"
                              "clusters:\n"
                              "- name: other\n"
                              "  cluster: {server: 'http://wrong'}\n"
                              "- name: c1\n"
                              "  cluster:\n"
                              "    server: https://10.0.0.1:6443/prefix/\n"
                              "    certificate-authority-data: " PEM64 "\n"
                              "    tls-server-name: kube\n"
                              "contexts:\n"
                              "- name: here\n"
                              "  context: {cluster: c1, user: u1, namespace: ns1}\n"
                              "users:\n"
                              "- name: u1\n"
                              "  user:\n"
                              "    token: sesame\n"
                              "    tokenFile: token\n"
                              "    client-certificate-data: " PEM64 "\n"
                              "    client-key-data: " PEM64 "\n";

static ChKubeConfig *
parse(const char *text, const char *master, GError **error)
{
    return ch_kube_config_parse(text, strlen(text), "test", "/etc/kube", master, error);
}

static void
test_typical(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChKubeConfig) config = parse(typical, NULL, &error);

    g_assert_no_error(error);
    g_assert_true(config->is_tls);
    g_assert_cmpstr(config->host, ==, "10.0.0.1");
    g_assert_cmpuint(config->port, ==, 6443);
    g_assert_cmpstr(config->path_prefix, ==, "/prefix");
    g_assert_cmpstr(config->ca_pem, ==, "---pem");
    g_assert_cmpstr(config->cert_pem, ==, "---pem");
    g_assert_cmpstr(config->key_pem, ==, "---pem");
    g_assert_cmpstr(config->server_name, ==, "kube");
    g_assert_false(config->insecure_skip_verify);
    g_assert_cmpstr(config->token, ==, "sesame");
    g_assert_cmpstr(config->token_file, ==, "/etc/kube/token");
    g_assert_cmpstr(config->namespace_, ==, "ns1");
}

static void
test_json_and_aliases(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChKubeConfig) json =
        parse("{\"current-context\":\"a\",\"contexts\":[{\"name\":\"a\",\"context\":{\"cluster\":"
              "\"b\",\"user\":null}}],\"clusters\":[{\"name\":\"b\",\"cluster\":{\"server\":"
              "\"http://[::1]:8001\",\"insecure-skip-tls-verify\":true}}]}",
              NULL,
              &error);
    g_autoptr(ChKubeConfig) alias =
        parse("current-context: &n a\ncontexts: [{name: *n, context: {cluster: *n}}]\n"
              "clusters: [{name: *n, cluster: {server: x.example}}]\n",
              NULL,
              &error);

    g_assert_no_error(error);
    g_assert_false(json->is_tls);
    g_assert_cmpstr(json->host, ==, "::1");
    g_assert_true(json->insecure_skip_verify);
    g_assert_null(json->token);
    g_assert_cmpstr(alias->host, ==, "x.example");
    g_assert_cmpuint(alias->port, ==, 80);
}

static const struct Bad {
    const char *path, *text, *message;
} bad[] = {
    {"/config/no-yaml", "a: [\nb: }", "line 2"},
    {"/config/no-mapping", "- 1\n", "line 1: no mapping"},
    {"/config/no-context", "x: 1\ncurrent-context: a\n", "line 2: no 'a' in 'contexts'"},
    {"/config/no-cluster",
     "current-context: a\ncontexts:\n- name: a\n  context: {cluster: b}\n",
     "line 4: no 'b' in 'clusters'"},
    {"/config/no-server",
     "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
     "clusters: [{name: a, cluster: {}}]\n",
     "no configuration has been provided"},
    {"/config/empty", "", "no configuration has been provided"},
    {"/config/list-is-text", "current-context: a\ncontexts: x\n", "line 2: 'contexts' is no list"},
    {"/config/context-is-list", "current-context: [a]\n", "line 1: 'current-context' is no text"},
    {"/config/exec",
     "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
     "clusters: [{name: a, cluster: {server: h}}]\nusers:\n- name: a\n  user:\n"
     "    exec: {command: x}\n",
     "line 7: 'exec' is not supported"},
    {"/config/proxy",
     "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
     "clusters: [{name: a, cluster: {server: h, proxy-url: x}}]\n",
     "line 3: 'proxy-url' is not supported"},
    {"/config/bool",
     "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
     "clusters: [{name: a, cluster: {server: h, insecure-skip-tls-verify: maybe}}]\n",
     "line 3: 'insecure-skip-tls-verify' is neither"},
    {"/config/base64",
     "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
     "clusters: [{name: a, cluster: {server: h, certificate-authority-data: '***'}}]\n",
     "line 3: no base64"},
    {"/config/missing-file",
     "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
     "clusters: [{name: a, cluster: {server: h, certificate-authority: no/such}}]\n",
     "open '/etc/kube/no/such'"},
    {"/config/insecure-with-ca",
     "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
     "clusters: [{name: a, cluster: {server: h, certificate-authority-data: " PEM64
     ", insecure-skip-tls-verify: true}}]\n",
     "together with insecure-skip-tls-verify"},
    {"/config/certificate-without-key",
     "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
     "clusters: [{name: a, cluster: {server: h}}]\n"
     "users: [{name: a, user: {client-certificate-data: " PEM64 "}}]\n",
     "needs its key"},
};

static void
test_bad(gconstpointer data)
{
    const struct Bad *c = data;
    g_autoptr(GError) error = NULL;

    g_assert_null(parse(c->text, NULL, &error));
    g_assert_nonnull(error);
    if (strstr(error->message, c->message) == NULL)
        g_error("'%s' lacks '%s'", error->message, c->message);
}

static void
test_deep_and_large(void)
{
    g_autofree char *deep = g_strnfill(200000, '[');
    g_autofree char *indented = g_strnfill(2 * 1000, '-');
    g_autofree char *large = g_strnfill(2 << 20, ' ');
    g_autoptr(GError) error = NULL;

    for (gsize i = 1; i < 2 * 1000; i += 2)
        indented[i] = ' ';
    g_assert_null(parse(deep, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
    g_clear_error(&error);
    g_assert_null(parse(indented, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
    g_clear_error(&error);
    g_assert_null(parse(large, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

/* libyaml compares each anchor with all before it: these would take half a minute. */
static void
test_many_anchors(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < 90000; i++)
        g_string_append_printf(text, "- &a%x\n", i);
    g_assert_null(parse(text->str, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

static const struct Server {
    const char *url; /* as --master */
    bool is_tls;
    const char *host; /* NULL: refused */
    uint16_t port;
    const char *prefix;
} servers[] = {
    {"http://127.0.0.1:8001", false, "127.0.0.1", 8001, ""},
    {"https://h", true, "h", 443, ""},
    {"http://h/", false, "h", 80, ""},
    {"h:8080", false, "h", 8080, ""},
    {"h", false, "h", 80, ""},
    {"https://[fe80::1]:6443/a/b//", true, "fe80::1", 6443, "/a/b"},
    {"ftp://h", false, NULL, 0, NULL},
    {"unix:///x", false, NULL, 0, NULL},
    {"http://", false, NULL, 0, NULL},
    {"http://h:0", false, NULL, 0, NULL},
    {"http://h:99999", false, NULL, 0, NULL},
    {"http://u:p@h", false, NULL, 0, NULL},
    {"http://h/?a=b", false, NULL, 0, NULL},
    {"http://h\r\nx: y", false, NULL, 0, NULL},
};

static void
test_master(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(servers); i++) {
        const struct Server *row = &servers[i];
        g_autoptr(GError) error = NULL;
        g_autoptr(ChKubeConfig) config = ch_kube_config_load(NULL, row->url, &error);

        if (row->host == NULL) {
            g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
            continue;
        }
        g_assert_no_error(error);
        g_assert_cmpint(config->is_tls, ==, row->is_tls);
        g_assert_cmpstr(config->host, ==, row->host);
        g_assert_cmpuint(config->port, ==, row->port);
        g_assert_cmpstr(config->path_prefix, ==, row->prefix);
    }
}

static void
test_master_overrides_the_file(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChKubeConfig) config = parse(typical, "other:1234", &error);

    g_assert_no_error(error);
    g_assert_true(config->is_tls); /* the file has a CA */
    g_assert_cmpstr(config->host, ==, "other");
    g_assert_cmpuint(config->port, ==, 1234);
    g_assert_cmpstr(config->token, ==, "sesame");
}

static char *
put(const char *directory, const char *name, const char *text)
{
    char *path = g_build_filename(directory, name, NULL);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void
test_files(void)
{
    g_autofree char *directory = g_dir_make_tmp("config-XXXXXX", NULL);
    g_autofree char *ca = put(directory, "my-ca.pem", "the ca");
    g_autofree char *file =
        put(directory,
            "config",
            "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
            "clusters: [{name: a, cluster: {server: h, certificate-authority: my-ca.pem}}]\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(ChKubeConfig) config = ch_kube_config_load(file, "", &error);

    g_assert_no_error(error);
    g_assert_cmpstr(config->ca_pem, ==, "the ca");
    g_assert_true(config->is_tls);
    g_remove(ca);
    g_remove(file);
    g_assert_null(ch_kube_config_load(file, NULL, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_rmdir(directory);
}

static void
test_in_cluster(void)
{
    g_autofree char *directory = g_dir_make_tmp("config-XXXXXX", NULL);
    g_autofree char *token = put(directory, "token", "sesame\n");
    g_autofree char *ca = put(directory, "ca.crt", "the ca");
    g_autofree char *ns = put(directory, "namespace", "kubevirt\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(ChKubeConfig) config = ch_kube_config_in_cluster(directory, "fd00::1", "443", &error);

    g_assert_no_error(error);
    g_assert_true(config->is_tls);
    g_assert_cmpstr(config->host, ==, "fd00::1");
    g_assert_cmpuint(config->port, ==, 443);
    g_assert_cmpstr(config->token, ==, "sesame");
    g_assert_cmpstr(config->token_file, ==, token);
    g_assert_cmpstr(config->ca_pem, ==, "the ca");
    g_assert_cmpstr(config->namespace_, ==, "kubevirt");

    g_assert_null(ch_kube_config_in_cluster(directory, "h", "http", &error));
    g_clear_error(&error);
    g_assert_null(ch_kube_config_in_cluster(directory, "", "443", &error));
    g_clear_error(&error);
    g_remove(token);
    g_assert_null(ch_kube_config_in_cluster(directory, "h", "443", &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_remove(ca);
    g_remove(ns);
    g_rmdir(directory);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/config/typical", test_typical);
    g_test_add_func("/config/json-and-aliases", test_json_and_aliases);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_test_add_data_func(bad[i].path, &bad[i], test_bad);
    g_test_add_func("/config/deep-and-large", test_deep_and_large);
    g_test_add_func("/config/many-anchors", test_many_anchors);
    g_test_add_func("/config/master", test_master);
    g_test_add_func("/config/master-overrides", test_master_overrides_the_file);
    g_test_add_func("/config/files", test_files);
    g_test_add_func("/config/in-cluster", test_in_cluster);
    return g_test_run();
}
