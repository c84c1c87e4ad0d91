/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/patch.h"

#include <string.h>

#include "lib/kube/jsonpatch.h"
#include "local/apiserver/strategic.h"

#define JSON_PATCH      "application/json-patch+json"
#define MERGE_PATCH     "application/merge-patch+json"
#define STRATEGIC_PATCH "application/strategic-merge-patch+json"

static ChRefusal *
apply_json(const ChResource *resource, const ChJson *current, const ChJson *patch, ChJson **out)
{
    g_autoptr(GError) error = NULL;

    if (!ch_json_is_array(patch))
        return ch_refuse_bad_request("a JSON patch is an array of operations");
    *out = ch_jsonpatch_apply(current, patch, &error);
    return *out != NULL ? NULL : ch_refuse_patch(error->message);
}

static ChRefusal *
apply_merge(const ChResource *resource, const ChJson *current, const ChJson *patch, ChJson **out)
{
    if (!ch_json_is_object(patch))
        return ch_refuse_bad_request("a merge patch is an object");
    *out = ch_jsonpatch_merge(current, patch);
    return NULL;
}

static ChRefusal *
apply_strategic(const ChResource *resource,
                const ChJson *current,
                const ChJson *patch,
                ChJson **out)
{
    g_autoptr(ChJson) object = ch_json_dup(current);
    g_autofree char *complaint = NULL;

    if (resource->merge_keys == NULL) /* as on a cluster for kinds of CRDs */
        return ch_refuse_media_type(JSON_PATCH ", " MERGE_PATCH);
    if (!ch_json_is_object(patch))
        return ch_refuse_bad_request("a strategic merge patch is an object");
    complaint = ch_strategic_merge(resource->merge_keys, object, patch);
    if (complaint != NULL)
        return ch_refuse_patch(complaint);
    *out = g_steal_pointer(&object);
    return NULL;
}

static const struct {
    const char *content_type;
    ChRefusal *(*apply)(const ChResource *resource,
                        const ChJson *current,
                        const ChJson *patch,
                        ChJson **out);
} kinds[] = {
    {JSON_PATCH, apply_json},
    {MERGE_PATCH, apply_merge},
    {STRATEGIC_PATCH, apply_strategic},
};

ChRefusal *
ch_patch_apply(const ChResource *resource,
               const char *content_type,
               const uint8_t *body,
               gsize length,
               const ChJson *current,
               ChJson **out_object)
{
    g_autofree char *type =
        content_type != NULL ? g_strndup(content_type, strcspn(content_type, "; ")) : g_strdup("");
    g_autoptr(ChJson) patch = NULL;
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_ascii_strcasecmp(kinds[i].content_type, type) != 0)
            continue;
        patch = ch_json_parse((const char *)body, (gssize)length, &error);
        if (patch == NULL)
            return ch_refuse_bad_request("error decoding patch: %s", error->message);
        return kinds[i].apply(resource, current, patch, out_object);
    }
    /* server-side apply too: kubectl then applies on its own side */
    return ch_refuse_media_type(JSON_PATCH ", " MERGE_PATCH ", " STRATEGIC_PATCH);
}
