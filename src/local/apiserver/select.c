/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/select.h"

#include "lib/kube/selector.h"

/* Every kind can be selected by these. */
static const char *const common_fields[] = {"metadata.name", "metadata.namespace", NULL};

struct ChSelect {
    ChSelector *labels; /* NULL: all */
    ChSelector *fields; /* NULL: all */
};

void
ch_select_free(ChSelect *select)
{
    if (select == NULL)
        return;
    g_clear_pointer(&select->labels, ch_selector_free);
    g_clear_pointer(&select->fields, ch_selector_free);
    g_free(select);
}

static ChRefusal *
check_fields(const ChResource *resource, const ChSelector *fields)
{
    const char *key;

    for (guint i = 0; (key = ch_selector_key(fields, i)) != NULL; i++) {
        if (!g_strv_contains(common_fields, key) &&
            (resource->fields == NULL || !g_strv_contains(resource->fields, key)))
            return ch_refuse_bad_request("field label not supported: %s", key);
    }
    return NULL;
}

ChRefusal *
ch_select_parse(const ChResource *resource,
                const char *labels,
                const char *fields,
                ChSelect **out_select)
{
    g_autoptr(ChSelect) select = g_new0(ChSelect, 1);
    g_autoptr(GError) error = NULL;
    ChRefusal *refusal;

    if (labels != NULL && *labels != '\0') {
        select->labels = ch_selector_parse_labels(labels, &error);
        if (select->labels == NULL)
            return ch_refuse_bad_request("unable to parse labelSelector: %s", error->message);
    }
    if (fields != NULL && *fields != '\0') {
        select->fields = ch_selector_parse_fields(fields, &error);
        if (select->fields == NULL)
            return ch_refuse_bad_request("unable to parse fieldSelector: %s", error->message);
        refusal = check_fields(resource, select->fields);
        if (refusal != NULL)
            return refusal;
    }
    *out_select = g_steal_pointer(&select);
    return NULL;
}

bool
ch_select_is_all(const ChSelect *select)
{
    return select->labels == NULL && select->fields == NULL;
}

bool
ch_select_matches(const ChSelect *select, const ChJson *object)
{
    return (select->labels == NULL || ch_selector_matches(select->labels, object)) &&
           (select->fields == NULL || ch_selector_matches(select->fields, object));
}

static void
copy_field(ChJson *traits, const ChJson *object, const char *path)
{
    const ChJson *value = ch_resource_lookup(object, path);
    g_auto(GStrv) steps = NULL;

    if (value == NULL)
        return;
    steps = g_strsplit(path, ".", -1);
    for (char **step = steps; step[1] != NULL; step++)
        traits = ch_json_ensure_object(traits, *step);
    ch_json_set(traits, steps[g_strv_length(steps) - 1], ch_json_dup(value));
}

ChJson *
ch_select_traits(const ChResource *resource, const ChJson *object)
{
    ChJson *traits = ch_json_new_object();

    copy_field(traits, object, "metadata.labels");
    for (const char *const *field = common_fields; *field != NULL; field++)
        copy_field(traits, object, *field);
    for (const char *const *field = resource->fields; field != NULL && *field != NULL; field++)
        copy_field(traits, object, *field);
    return traits;
}
