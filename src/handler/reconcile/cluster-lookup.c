/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/cluster-lookup.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"

#define LOOKUP_TIMEOUT_US (30 * CH_SECOND_US)

/* What is no list of VMIs says nothing about a VMI: it must not read as "gone". */
static bool
is_vmi_list(const ChJson *answer)
{
    const ChJson *items = ch_json_at(answer, "items");

    return g_strcmp0(ch_json_string_at(answer, "kind"), "VirtualMachineInstanceList") == 0 &&
           (items == NULL || ch_json_is_array(items));
}

/* (transfer full) (nullable): a server that overlooks the selector must not hand us another VMI */
static ChJson *
find_item(const ChJson *list, const char *name)
{
    const ChJson *items = ch_json_at(list, "items");

    for (gsize i = 0; i < ch_json_length(items); i++) {
        ChJson *item = ch_json_item(items, i);

        if (g_strcmp0(ch_json_string_at(item, "metadata", "name"), name) != 0)
            continue;
        ch_json_set_string(item, "apiVersion", "kubevirt.io/v1");
        ch_json_set_string(item, "kind", "VirtualMachineInstance");
        return ch_json_ref(item);
    }
    return NULL;
}

bool
ch_cluster_lookup_vmi(ChKubeClient *kube,
                      const char *namespace_,
                      const char *name,
                      ChJson **out_document,
                      GError **error)
{
    /* Keys can come from launchers: what is no object name goes into no URL. */
    g_autofree char *namespace_escaped = g_uri_escape_string(namespace_, NULL, FALSE);
    g_autofree char *name_escaped = g_uri_escape_string(name, NULL, FALSE);
    g_autofree char *path =
        g_strdup_printf("/apis/kubevirt.io/v1/namespaces/%s/"
                        "virtualmachineinstances?fieldSelector=metadata.name%%3D%s",
                        namespace_escaped,
                        name_escaped);
    const ChKubeRequest request = {.method = "GET", .path = path, .timeout_us = LOOKUP_TIMEOUT_US};
    g_autoptr(GBytes) answer = NULL;
    g_autoptr(ChJson) list = NULL;
    gsize length;
    const char *text;

    if (namespace_[0] == '\0' || name[0] == '\0') {
        *out_document = NULL; /* no VMI has such a key */
        return true;
    }
    answer = ch_kube_client_request(kube, &request, error);
    if (answer == NULL)
        return false;
    text = g_bytes_get_data(answer, &length);
    list = ch_json_parse(text, (gssize)length, error);
    if (list == NULL)
        return false;
    if (!is_vmi_list(list))
        return ch_fail(
            error, CH_ERROR_INVALID, "the API server's answer to '%s' is no list of VMIs", path);
    *out_document = find_item(list, name);
    return true;
}
