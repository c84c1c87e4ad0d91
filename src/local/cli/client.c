/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/client.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "local/cli/lock.h"

#define HTTP_NOT_FOUND 404
#define HTTP_CONFLICT  409
#define HTTP_TOO_LARGE 413
#define MERGE_PATCH    "application/merge-patch+json"
#define QPS            100
#define BURST          200

#define MAX_BODY_BYTES (3u << 20) /* as the server, which ends the connection beyond it */

struct ChClient {
    ChLoop *loop;
    ChKubeClient *kube;
    char *state_dir;
    bool is_running; /* the loop's thread */
};

static bool
check_kubeconfig(const ChCli *cli, const char *path, GError **error)
{
    if (g_file_test(path, G_FILE_TEST_EXISTS) && access(path, R_OK) == 0)
        return true;
    if (geteuid() != 0)
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "'%s' cannot be read: use sudo, or --state for another chandler",
                       path);
    return ch_fail(error,
                   CH_ERROR_NOT_FOUND,
                   "chandler was never started in '%s': start it with 'chandler up'",
                   cli->state_dir);
}

/* On the loop's thread, before the request's answer. */
static void
on_warning(gpointer data, const char *text)
{
    fprintf(stderr, "Warning: %s\n", text);
}

ChClient *
ch_client_new(const ChCli *cli, GError **error)
{
    g_autoptr(ChClient) client = g_new0(ChClient, 1);
    g_autofree char *path = ch_cli_path(cli, "kubeconfig");
    g_autoptr(ChKubeConfig) config = NULL;

    if (!check_kubeconfig(cli, path, error))
        return NULL;
    config = ch_kube_config_load(path, NULL, error);
    if (config == NULL)
        return NULL;
    client->state_dir = g_strdup(cli->state_dir);
    client->loop = ch_loop_new();
    client->kube = ch_kube_client_new(client->loop, config, error);
    if (client->kube == NULL)
        return NULL;
    ch_kube_client_set_warning_func(client->kube, on_warning, NULL);
    ch_kube_client_set_rate(client->kube, QPS, BURST); /* the server is on this machine */
    ch_loop_start(client->loop, "client");
    client->is_running = true;
    return g_steal_pointer(&client);
}

void
ch_client_free(ChClient *client)
{
    if (client == NULL)
        return;
    if (client->is_running) {
        ch_loop_stop(client->loop);
        ch_loop_join(client->loop);
    }
    ch_kube_client_free(client->kube);
    ch_loop_free(client->loop);
    g_free(client->state_dir);
    g_free(client);
}

static bool
check_size(gsize n_bytes, GError **error)
{
    if (n_bytes <= MAX_BODY_BYTES)
        return true;
    g_set_error(error,
                CH_KUBE_ERROR,
                HTTP_TOO_LARGE,
                "the object is too large: %zu bytes as JSON, of at most %u (3 MiB)",
                n_bytes,
                MAX_BODY_BYTES);
    return false;
}

ChJson *
ch_client_request(ChClient *client, const ChClientRequest *request, GError **error)
{
    gsize n_bytes = 0;
    g_autofree char *body = request->body != NULL ? ch_json_print(request->body, &n_bytes) : NULL;
    g_autoptr(GBytes) answer = NULL;
    gsize length = 0;
    const char *text;

    if (!check_size(n_bytes, error))
        return NULL;
    answer = ch_kube_client_request(client->kube,
                                    &(ChKubeRequest){
                                        .method = request->method,
                                        .path = request->path,
                                        .content_type = request->content_type,
                                        .accept = request->accept,
                                        .body = body,
                                        .timeout_us = CH_CLIENT_TIMEOUT_US,
                                    },
                                    error);
    if (answer == NULL) {
        if (error != NULL && (*error)->domain != CH_KUBE_ERROR)
            g_prefix_error(error,
                           "the API server does not answer (%s): ",
                           ch_lock_is_held(client->state_dir, NULL)
                               ? "chandler is up and starts it again: try once more"
                               : "is chandler running? 'chandler up' starts it");
        return NULL;
    }
    text = g_bytes_get_data(answer, &length);
    return ch_json_parse(text, (gssize)length, error);
}

ChJson *
ch_client_get(ChClient *client, const char *path, GError **error)
{
    return ch_client_request(client, &(ChClientRequest){.method = "GET", .path = path}, error);
}

bool
ch_client_is_not_found(const GError *error)
{
    return g_error_matches(error, CH_KUBE_ERROR, HTTP_NOT_FOUND);
}

ChJson *
ch_client_apply(ChClient *client,
                const char *collection_path,
                const char *object_path,
                const ChJson *object,
                bool *out_is_new,
                GError **error)
{
    g_autoptr(GError) failure = NULL;
    ChJson *stored = ch_client_request(
        client,
        &(ChClientRequest){.method = "POST", .path = collection_path, .body = object},
        &failure);

    if (out_is_new != NULL)
        *out_is_new = stored != NULL;
    if (stored != NULL)
        return stored;
    if (!g_error_matches(failure, CH_KUBE_ERROR, HTTP_CONFLICT)) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return NULL;
    }
    return ch_client_request(
        client,
        &(ChClientRequest){
            .method = "PATCH", .path = object_path, .body = object, .content_type = MERGE_PATCH},
        error);
}
