/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/api.h"

#define HTTP_NOT_FOUND 404
#define HTTP_CONFLICT  409

static GBytes *
request(
    ChKubeClient *kube, const char *method, const char *path, const ChJson *body, GError **error)
{
    g_autofree char *text = body != NULL ? ch_json_print(body, NULL) : NULL;
    const bool is_patch = g_str_equal(method, "PATCH");

    return ch_kube_client_request(
        kube,
        &(ChKubeRequest){.method = method,
                         .path = path,
                         .content_type = is_patch ? "application/merge-patch+json" : NULL,
                         .body = text,
                         .timeout_us = CH_API_TIMEOUT_US},
        error);
}

static ChJson *
request_object(
    ChKubeClient *kube, const char *method, const char *path, const ChJson *object, GError **error)
{
    g_autoptr(GBytes) answer = request(kube, method, path, object, error);
    gsize length = 0;
    const char *text;

    if (answer == NULL)
        return NULL;
    text = g_bytes_get_data(answer, &length);
    return ch_json_parse(text, (gssize)length, error);
}

ChJson *
ch_api_get_kubevirt(ChKubeClient *kube, GError **error)
{
    return request_object(
        kube, "GET", "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt", NULL, error);
}

ChJson *
ch_api_get_network(ChKubeClient *kube, const char *namespace_, const char *name, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("/apis/k8s.cni.cncf.io/v1/namespaces/%s/network-attachment-definitions/%s",
                        namespace_,
                        name);

    return request_object(kube, "GET", path, NULL, error);
}

ChJson *
ch_api_get_claim(ChKubeClient *kube, const char *namespace_, const char *name, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("/api/v1/namespaces/%s/persistentvolumeclaims/%s", namespace_, name);

    return request_object(kube, "GET", path, NULL, error);
}

ChJson *
ch_api_put_claim_status(ChKubeClient *kube, const ChJson *claim, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("/api/v1/namespaces/%s/persistentvolumeclaims/%s/status",
                        ch_json_string_at(claim, "metadata", "namespace"),
                        ch_json_string_at(claim, "metadata", "name"));

    return request_object(kube, "PUT", path, claim, error);
}

ChJson *
ch_api_get_pod(ChKubeClient *kube, const char *namespace_, const char *name, GError **error)
{
    g_autofree char *path = g_strdup_printf("/api/v1/namespaces/%s/pods/%s", namespace_, name);

    return request_object(kube, "GET", path, NULL, error);
}

ChJson *
ch_api_put_vmi(ChKubeClient *kube, const ChJson *vmi, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("/apis/kubevirt.io/v1/namespaces/%s/virtualmachineinstances/%s",
                        ch_json_string_at(vmi, "metadata", "namespace"),
                        ch_json_string_at(vmi, "metadata", "name"));

    return request_object(kube, "PUT", path, vmi, error);
}

ChJson *
ch_api_create_pod(ChKubeClient *kube, const ChJson *pod, GError **error)
{
    g_autofree char *path = g_strdup_printf("/api/v1/namespaces/%s/pods",
                                            ch_json_string_at(pod, "metadata", "namespace"));

    return request_object(kube, "POST", path, pod, error);
}

ChJson *
ch_api_annotate_pod(
    ChKubeClient *kube, const ChJson *pod, const char *key, const char *value, GError **error)
{
    g_autofree char *path = g_strdup_printf("/api/v1/namespaces/%s/pods/%s",
                                            ch_json_string_at(pod, "metadata", "namespace"),
                                            ch_json_string_at(pod, "metadata", "name"));
    g_autoptr(ChJson) patch = ch_json_new_object();

    ch_json_set(ch_json_ensure_object(ch_json_ensure_object(patch, "metadata"), "annotations"),
                key,
                value != NULL ? ch_json_new_string(value) : NULL);
    return request_object(kube, "PATCH", path, patch, error);
}

ChJson *
ch_api_put_pod_status(ChKubeClient *kube, const ChJson *pod, GError **error)
{
    g_autofree char *path = g_strdup_printf("/api/v1/namespaces/%s/pods/%s/status",
                                            ch_json_string_at(pod, "metadata", "namespace"),
                                            ch_json_string_at(pod, "metadata", "name"));

    return request_object(kube, "PUT", path, pod, error);
}

bool
ch_api_delete_pod(
    ChKubeClient *kube, const char *namespace_, const char *name, bool now, GError **error)
{
    g_autofree char *path = g_strdup_printf(
        "/api/v1/namespaces/%s/pods/%s%s", namespace_, name, now ? "?gracePeriodSeconds=0" : "");
    g_autoptr(GError) failure = NULL;
    g_autoptr(GBytes) answer = request(kube, "DELETE", path, NULL, &failure);

    if (answer != NULL || ch_api_is_not_found(failure))
        return true;
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

bool
ch_api_is_not_found(const GError *error)
{
    return g_error_matches(error, CH_KUBE_ERROR, HTTP_NOT_FOUND);
}

bool
ch_api_is_conflict(const GError *error)
{
    return g_error_matches(error, CH_KUBE_ERROR, HTTP_CONFLICT);
}
