/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/apply.h"

#include <stdio.h>

#include "lib/base/errors.h"
#include "local/cli/resource.h"

/* What somebody most likely wants who wrote a kind that is not known. */
static const char *
advice_for(const char *kind)
{
    if (g_strcmp0(kind, "VirtualMachine") == 0)
        return "there is no controller for it on one machine; make it a VirtualMachineInstance: "
               "its "
               "spec is the VirtualMachine's spec.template.spec";
    return "for VMs, write kind VirtualMachineInstance of kubevirt.io/v1";
}

static bool
check_kinds(const GArray *manifests, const char *path, GError **error)
{
    for (guint i = 0; i < manifests->len; i++) {
        const ChManifest *manifest = &g_array_index(manifests, ChManifest, i);
        const char *version = ch_json_string_at(manifest->object, "apiVersion");
        const char *kind = ch_json_string_at(manifest->object, "kind");

        if (ch_cli_resource_by_kind(version, kind) == NULL)
            return ch_fail(error,
                           CH_ERROR_INVALID,
                           "%s:%zu: %s of %s is not known here: %s",
                           path,
                           manifest->line,
                           kind,
                           version,
                           advice_for(kind));
    }
    return true;
}

GArray *
ch_apply_load(char *const *paths, GError **error)
{
    GArray *all = NULL;

    for (gsize i = 0; paths[i] != NULL; i++) {
        GArray *manifests = ch_manifest_load(paths[i], error);

        if (manifests == NULL || !check_kinds(manifests, paths[i], error)) {
            g_clear_pointer(&manifests, g_array_unref);
            g_clear_pointer(&all, g_array_unref);
            return NULL;
        }
        if (all == NULL) {
            all = manifests;
            continue;
        }
        g_array_append_vals(all, manifests->data, manifests->len);
        g_array_set_clear_func(manifests, NULL); /* the objects moved */
        g_array_unref(manifests);
    }
    return all;
}

static bool
store(ChClient *client, const ChCli *cli, const ChManifest *manifest, GError **error)
{
    const ChJson *object = manifest->object;
    const ChCliResource *resource = ch_cli_resource_by_kind(ch_json_string_at(object, "apiVersion"),
                                                            ch_json_string_at(object, "kind"));
    const char *given = ch_json_string_at(object, "metadata", "namespace");
    const char *namespace_ = given != NULL ? given : cli->namespace_;
    const char *name = ch_json_string_at(object, "metadata", "name");
    g_autofree char *collection = ch_cli_resource_path(resource, namespace_, NULL);
    g_autofree char *path = ch_cli_resource_path(resource, namespace_, name);
    bool is_new = false;
    g_autoptr(ChJson) stored = ch_client_apply(client, collection, path, object, &is_new, error);

    if (stored == NULL) {
        g_prefix_error(error, "%s:%zu: ", manifest->file, manifest->line);
        return false;
    }
    printf("%s \"%s\" %s\n", resource->names[1], name, is_new ? "created" : "configured");
    fflush(stdout);
    return true;
}

bool
ch_apply_store(ChClient *client, const ChCli *cli, const GArray *manifests, GError **error)
{
    for (guint i = 0; i < manifests->len; i++) {
        if (!store(client, cli, &g_array_index(manifests, ChManifest, i), error))
            return false;
    }
    return true;
}
