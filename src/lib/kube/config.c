/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/config.h"

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/kube/kubeconfig.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define MAX_FILE_BYTES  (1u << 20)
#define NO_CONFIG                                                                                  \
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER "    \
    "environment variable"

void
ch_kube_config_free(ChKubeConfig *config)
{
    if (config == NULL)
        return;
    g_free(config->host);
    g_free(config->path_prefix);
    g_free(config->ca_pem);
    g_free(config->cert_pem);
    g_free(config->key_pem);
    g_free(config->server_name);
    g_free(config->token);
    g_free(config->token_file);
    g_free(config->namespace_);
    g_free(config);
}

/* ---- the server's URL ---- */

/* Puts scheme, host, port and prefix of @url into @config. client-go's rule for "host" and
 * "host:port": https if there is anything of TLS in the rest of the configuration. */
static bool
set_server(ChKubeConfig *config, const char *url, GError **error)
{
    const bool has_scheme = strstr(url, "://") != NULL;
    const bool has_tls =
        config->ca_pem != NULL || config->cert_pem != NULL || config->insecure_skip_verify;
    g_autofree char *whole =
        has_scheme ? g_strdup(url) : g_strconcat(has_tls ? "https://" : "http://", url, NULL);
    g_autoptr(GUri) uri = g_uri_parse(whole, G_URI_FLAGS_ENCODED, NULL);
    const char *scheme = uri != NULL ? g_uri_get_scheme(uri) : "";
    const bool is_https = g_str_equal(scheme, "https");
    gsize length;

    if (!is_https && !g_str_equal(scheme, "http"))
        return ch_fail(error, CH_ERROR_INVALID, "server '%s' is no http or https URL", url);
    if (g_uri_get_host(uri) == NULL || *g_uri_get_host(uri) == '\0' ||
        g_uri_get_userinfo(uri) != NULL || g_uri_get_query(uri) != NULL ||
        g_uri_get_fragment(uri) != NULL || g_uri_get_port(uri) == 0)
        return ch_fail(
            error, CH_ERROR_INVALID, "server '%s' must be scheme, host, port and path only", url);
    config->is_tls = is_https;
    config->host = g_strdup(g_uri_get_host(uri));
    config->port = (uint16_t)(g_uri_get_port(uri) > 0 ? g_uri_get_port(uri) : is_https ? 443 : 80);
    config->path_prefix = g_strdup(g_uri_get_path(uri));
    length = strlen(config->path_prefix);
    while (length > 0 && config->path_prefix[length - 1] == '/')
        config->path_prefix[--length] = '\0';
    return true;
}

/* ---- kubeconfig ---- */

static char *
resolve(const char *directory, const char *path)
{
    return g_path_is_absolute(path) ? g_strdup(path) : g_build_filename(directory, path, NULL);
}

/* A PEM text that is given in place (base64; wins) or as a file's name. NULL: neither, or @error is
 * set. */
static char *
load_pem(const ChKubeconfigText *data,
         const ChKubeconfigText *file,
         const char *directory,
         GError **error)
{
    g_autofree char *path = NULL;
    g_autofree guchar *bytes = NULL;
    gsize length;

    if (data->text != NULL) {
        bytes = g_base64_decode(data->text, &length);
        if (length == 0 || memchr(bytes, '\0', length) != NULL) {
            ch_fail(error, CH_ERROR_INVALID, "line %zu: no base64 of a PEM text", data->line);
            return NULL;
        }
        return g_strndup((const char *)bytes, length);
    }
    if (file->text == NULL)
        return NULL;
    path = resolve(directory, file->text);
    return ch_small_file_read(path, MAX_FILE_BYTES, NULL, error);
}

/* The certificates and how the server is checked. */
static bool
set_tls(ChKubeConfig *config, const ChKubeconfig *chosen, const char *directory, GError **error)
{
    g_autoptr(GError) inner = NULL;

    config->insecure_skip_verify = chosen->insecure_skip_verify;
    config->server_name = g_strdup(chosen->server_name.text);
    config->ca_pem = load_pem(&chosen->ca_data, &chosen->ca_file, directory, &inner);
    if (inner == NULL)
        config->cert_pem = load_pem(&chosen->cert_data, &chosen->cert_file, directory, &inner);
    if (inner == NULL)
        config->key_pem = load_pem(&chosen->key_data, &chosen->key_file, directory, &inner);
    if (inner != NULL) {
        g_propagate_error(error, g_steal_pointer(&inner));
        return false;
    }
    if ((config->cert_pem == NULL) != (config->key_pem == NULL))
        return ch_fail(error, CH_ERROR_INVALID, "a client certificate needs its key, and a key it");
    if (config->insecure_skip_verify && config->ca_pem != NULL)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "a certificate authority together with insecure-skip-tls-verify");
    return true;
}

static ChKubeConfig *
config_of(const ChKubeconfig *chosen, const char *directory, const char *master, GError **error)
{
    g_autoptr(ChKubeConfig) config = g_new0(ChKubeConfig, 1);
    const bool has_master = master != NULL && *master != '\0';
    const char *server = has_master ? master : chosen->server.text;

    if (server == NULL) {
        ch_fail(error, CH_ERROR_INVALID, NO_CONFIG);
        return NULL;
    }
    if (!set_tls(config, chosen, directory, error) || !set_server(config, server, error))
        return NULL;
    config->namespace_ = g_strdup(chosen->namespace_.text);
    config->token = g_strdup(chosen->token.text);
    if (chosen->token_file.text != NULL)
        config->token_file = resolve(directory, chosen->token_file.text);
    return g_steal_pointer(&config);
}

ChKubeConfig *
ch_kube_config_parse(const char *text,
                     gsize length,
                     const char *name,
                     const char *directory,
                     const char *master,
                     GError **error)
{
    g_autoptr(ChKubeconfig) chosen = ch_kubeconfig_parse(text, length, error);
    ChKubeConfig *config = chosen != NULL ? config_of(chosen, directory, master, error) : NULL;

    if (config == NULL)
        g_prefix_error(error, "kubeconfig '%s': ", name);
    return config;
}

static ChKubeConfig *
load_file(const char *path, const char *master, GError **error)
{
    g_autofree char *directory = g_path_get_dirname(path);
    g_autofree char *text = NULL;
    gsize length;

    text = ch_small_file_read(path, MAX_FILE_BYTES, &length, error);
    if (text == NULL) {
        g_prefix_error(error, "kubeconfig: ");
        return NULL;
    }
    return ch_kube_config_parse(text, length, path, directory, master, error);
}

/* ---- in-cluster ---- */

static bool
is_set(const char *text)
{
    return text != NULL && *text != '\0';
}

/* (nullable) a file that may be missing */
static char *
read_optional(const char *directory, const char *name)
{
    g_autofree char *path = g_build_filename(directory, name, NULL);
    g_autoptr(GError) error = NULL;
    char *text = ch_small_file_read(path, MAX_FILE_BYTES, NULL, &error);

    if (text == NULL)
        ch_log_verbose(3, NULL, "ignoring the service account's %s: %s", name, error->message);
    return text;
}

ChKubeConfig *
ch_kube_config_in_cluster(const char *directory, const char *host, const char *port, GError **error)
{
    g_autoptr(ChKubeConfig) config = g_new0(ChKubeConfig, 1);
    g_autofree char *namespace_ = NULL;
    guint64 number = 0;

    if (directory == NULL)
        directory = SERVICE_ACCOUNT;
    if (host == NULL)
        host = g_getenv("KUBERNETES_SERVICE_HOST");
    if (port == NULL)
        port = g_getenv("KUBERNETES_SERVICE_PORT");
    if (!is_set(host) || !is_set(port)) {
        ch_fail(error,
                CH_ERROR_NOT_FOUND,
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set");
        return NULL;
    }
    if (!g_ascii_string_to_unsigned(port, 10, 1, G_MAXUINT16, &number, NULL)) {
        ch_fail(error, CH_ERROR_INVALID, "KUBERNETES_SERVICE_PORT '%s' is no port", port);
        return NULL;
    }
    config->token_file = g_build_filename(directory, "token", NULL);
    config->token = ch_small_file_read(config->token_file, MAX_FILE_BYTES, NULL, error);
    if (config->token == NULL)
        return NULL;
    g_strstrip(config->token);
    config->is_tls = true;
    config->host = g_strdup(host);
    config->port = (uint16_t)number;
    config->path_prefix = g_strdup("");
    config->ca_pem = read_optional(directory, "ca.crt"); /* none: the system's roots */
    namespace_ = read_optional(directory, "namespace");
    if (namespace_ != NULL && *g_strstrip(namespace_) != '\0')
        config->namespace_ = g_steal_pointer(&namespace_);
    return g_steal_pointer(&config);
}

ChKubeConfig *
ch_kube_config_load(const char *kubeconfig, const char *master, GError **error)
{
    static const ChKubeconfig nothing = {0};
    g_autoptr(GError) why = NULL;
    ChKubeConfig *config;

    if (is_set(kubeconfig))
        return load_file(kubeconfig, master, error);
    if (is_set(master))
        return config_of(&nothing, ".", master, error);
    config = ch_kube_config_in_cluster(NULL, NULL, NULL, &why);
    if (config == NULL)
        ch_fail(error, CH_ERROR_NOT_FOUND, NO_CONFIG " (in-cluster: %s)", why->message);
    return config;
}
