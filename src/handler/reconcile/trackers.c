/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/trackers.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"

#define TRACKERS_PATH "/apis/backup.kubevirt.io/v1alpha1/namespaces/%s/virtualmachinebackuptrackers"
#define MARK          "{\"status\":{\"checkpointRedefinitionRequired\":true}}"
#define TIMEOUT_US    (30 * CH_SECOND_US)

static bool
has_text(const ChJson *object, const char *key, const char *text)
{
    return g_strcmp0(ch_json_string_at(object, key), text) == 0;
}

bool
ch_tracker_wants_mark(const ChJson *tracker, const char *name)
{
    const ChJson *source = ch_json_at(tracker, "spec", "source");
    const ChJson *status = ch_json_at(tracker, "status");

    return has_text(source, "apiGroup", "kubevirt.io") &&
           has_text(source, "kind", "VirtualMachine") && has_text(source, "name", name) &&
           ch_json_at(status, "latestCheckpoint") != NULL &&
           !ch_json_bool_at(status, false, "checkpointRedefinitionRequired");
}

/* (transfer full) (nullable) */
static ChJson *
list_trackers(ChKubeClient *kube, const char *namespace_, GError **error)
{
    g_autofree char *path = g_strdup_printf(TRACKERS_PATH, namespace_);
    const ChKubeRequest request = {.method = "GET", .path = path, .timeout_us = TIMEOUT_US};
    g_autoptr(GBytes) answer = ch_kube_client_request(kube, &request, error);
    g_autoptr(ChJson) list = NULL;
    const char *text;
    gsize length;

    if (answer == NULL)
        return NULL;
    text = g_bytes_get_data(answer, &length);
    list = ch_json_parse(text, (gssize)length, error);
    if (list != NULL && !has_text(list, "kind", "VirtualMachineBackupTrackerList")) {
        ch_fail(error, CH_ERROR_INVALID, "the API server's answer is no list of backup trackers");
        return NULL;
    }
    return g_steal_pointer(&list);
}

static bool
mark(ChKubeClient *kube, const char *namespace_, const char *name, GError **error)
{
    g_autofree char *escaped = g_uri_escape_string(name, NULL, FALSE);
    g_autofree char *path = g_strdup_printf(TRACKERS_PATH "/%s/status", namespace_, escaped);
    const ChKubeRequest request = {.method = "PATCH",
                                   .path = path,
                                   .content_type = "application/merge-patch+json",
                                   .body = MARK,
                                   .timeout_us = TIMEOUT_US};
    g_autoptr(GBytes) answer = ch_kube_client_request(kube, &request, error);

    if (answer == NULL)
        g_prefix_error(error, "failed to mark tracker %s for checkpoint redefinition: ", name);
    return answer != NULL;
}

bool
ch_trackers_mark(ChKubeClient *kube, const char *namespace_, const char *name, GError **error)
{
    g_autofree char *escaped = g_uri_escape_string(namespace_, NULL, FALSE);
    g_autoptr(GError) reason = NULL;
    g_autoptr(ChJson) list = list_trackers(kube, escaped, &reason);
    const ChJson *items = ch_json_at(list, "items");

    if (g_error_matches(reason, CH_KUBE_ERROR, 404))
        return true; /* no such kind here */
    if (list == NULL) {
        g_propagate_prefixed_error(
            error, g_steal_pointer(&reason), "failed to list backup trackers: ");
        return false;
    }
    for (gsize i = 0; i < ch_json_length(items); i++) {
        const ChJson *tracker = ch_json_item(items, i);
        const char *tracker_name = ch_json_string_at(tracker, "metadata", "name");

        if (tracker_name != NULL && ch_tracker_wants_mark(tracker, name) &&
            !mark(kube, escaped, tracker_name, error))
            return false;
    }
    return true;
}
