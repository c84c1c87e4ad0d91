/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/resource.h"

#include <string.h>

/* clang-format off */
static const ChCliResource resources[] = {
    {{"virtualmachineinstances", "virtualmachineinstance", "vmi", "vmis", "vm", "vms"}, "VirtualMachineInstance", "kubevirt.io/v1", true},
    {{"pods", "pod", "po"},                     "Pod",                   "v1",             true},
    {{"events", "event", "ev"},                 "Event",                 "v1",             true},
    {{"configmaps", "configmap", "cm"},         "ConfigMap",             "v1",             true},
    {{"secrets", "secret"},                     "Secret",                "v1",             true},
    {{"persistentvolumeclaims", "persistentvolumeclaim", "pvc"}, "PersistentVolumeClaim", "v1", true},
    {{"network-attachment-definitions", "network-attachment-definition", "nad", "net-attach-def"},
     "NetworkAttachmentDefinition", "k8s.cni.cncf.io/v1", true},
    {{"nodes", "node", "no"},                   "Node",                  "v1",             false},
    {{"namespaces", "namespace", "ns"},         "Namespace",             "v1",             false},
    {{"kubevirts", "kubevirt", "kv"},           "KubeVirt",              "kubevirt.io/v1", true},
};
/* clang-format on */

const ChCliResource *const ch_cli_vmis = &resources[0];

const ChCliResource *
ch_cli_resource_by_name(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(resources); i++) {
        for (gsize n = 0; n < G_N_ELEMENTS(resources[i].names); n++) {
            if (g_strcmp0(resources[i].names[n], name) == 0)
                return &resources[i];
        }
    }
    return NULL;
}

char *
ch_cli_resource_list(void)
{
    g_autoptr(GString) list = g_string_new(NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(resources); i++) {
        const char *const *names = resources[i].names;

        g_string_append_printf(
            list, "%s%s", i > 0 ? ", " : "", names[2] != NULL ? names[2] : names[1]);
    }
    return g_strdup(list->str);
}

const ChCliResource *
ch_cli_resource_by_kind(const char *api_version, const char *kind)
{
    for (gsize i = 0; i < G_N_ELEMENTS(resources); i++) {
        if (g_strcmp0(resources[i].kind, kind) == 0 &&
            g_strcmp0(resources[i].api_version, api_version) == 0)
            return &resources[i];
    }
    return NULL;
}

char *
ch_cli_resource_path(const ChCliResource *resource, const char *namespace_, const char *name)
{
    const bool is_core = strchr(resource->api_version, '/') == NULL;
    const bool has_namespace = resource->is_namespaced && namespace_ != NULL;
    g_autofree char *escaped = name != NULL ? g_uri_escape_string(name, NULL, FALSE) : NULL;
    g_autofree char *space = has_namespace ? g_uri_escape_string(namespace_, NULL, FALSE) : NULL;

    return g_strconcat(is_core ? "/api/" : "/apis/",
                       resource->api_version,
                       has_namespace ? "/namespaces/" : "",
                       has_namespace ? space : "",
                       "/",
                       resource->names[0],
                       escaped != NULL ? "/" : "",
                       escaped != NULL ? escaped : "",
                       NULL);
}
