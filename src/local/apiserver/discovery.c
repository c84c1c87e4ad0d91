/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/discovery.h"

#define GIT_VERSION "v1.32.0-chandler"

static ChJson *
new_typed(const char *kind)
{
    ChJson *json = ch_json_new_object();

    ch_json_set_string(json, "kind", kind);
    ch_json_set_string(json, "apiVersion", "v1");
    return json;
}

static void
append_string(ChJson *array, const char *text)
{
    ch_json_append(array, ch_json_new_string(text));
}

static ChJson *
version_info(void)
{
    ChJson *json = ch_json_new_object();

    ch_json_set_string(json, "major", "1");
    ch_json_set_string(json, "minor", "32");
    ch_json_set_string(json, "gitVersion", GIT_VERSION);
    ch_json_set_string(json, "gitCommit", "");
    ch_json_set_string(json, "gitTreeState", "clean");
    ch_json_set_string(json, "buildDate", "1970-01-01T00:00:00Z");
    ch_json_set_string(json, "goVersion", "");
    ch_json_set_string(json, "compiler", "gcc");
    ch_json_set_string(json, "platform", "linux/amd64");
    return json;
}

static ChJson *
core_versions(void)
{
    ChJson *json = ch_json_new_object();
    ChJson *versions = ch_json_new_array();

    ch_json_set_string(json, "kind", "APIVersions");
    append_string(versions, "v1");
    ch_json_set(json, "versions", versions);
    ch_json_set(json, "serverAddressByClientCIDRs", ch_json_new_array());
    return json;
}

static ChJson *
group_version(const ChResource *resource)
{
    ChJson *json = ch_json_new_object();
    g_autofree char *api_version = ch_resource_api_version(resource);

    ch_json_set_string(json, "groupVersion", api_version);
    ch_json_set_string(json, "version", resource->version);
    return json;
}

/* @first: the group's first row; each group has one version here */
static ChJson *
group_entry(const ChResource *first)
{
    ChJson *json = ch_json_new_object();
    ChJson *versions = ch_json_new_array();

    ch_json_set_string(json, "name", first->group);
    ch_json_append(versions, group_version(first));
    ch_json_set(json, "versions", versions);
    ch_json_set(json, "preferredVersion", group_version(first));
    return json;
}

static ChJson *
group_list(void)
{
    ChJson *json = new_typed("APIGroupList");
    ChJson *groups = ch_json_new_array();
    gsize n;
    const ChResource *rows = ch_resource_table(&n);

    for (gsize i = 0; i < n; i++) {
        if (rows[i].group[0] != '\0' && (i == 0 || !g_str_equal(rows[i].group, rows[i - 1].group)))
            ch_json_append(groups, group_entry(&rows[i]));
    }
    ch_json_set(json, "groups", groups);
    return json;
}

/* (nullable): the first row of the group and version */
static const ChResource *
find_group(const char *group, const char *version)
{
    gsize n;
    const ChResource *rows = ch_resource_table(&n);

    for (gsize i = 0; i < n; i++) {
        if (g_str_equal(rows[i].group, group) &&
            (version == NULL || g_str_equal(rows[i].version, version)))
            return &rows[i];
    }
    return NULL;
}

static ChJson *
string_list(const char *const *texts)
{
    ChJson *list = ch_json_new_array();

    for (; *texts != NULL; texts++)
        append_string(list, *texts);
    return list;
}

static ChJson *
resource_entry(const ChResource *resource)
{
    static const char *const verbs[] = {
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", NULL};
    static const char *const categories[] = {"all", NULL};
    ChJson *json = ch_json_new_object();

    ch_json_set_string(json, "name", resource->plural);
    ch_json_set_string(json, "singularName", resource->singular);
    ch_json_set_bool(json, "namespaced", resource->is_namespaced);
    ch_json_set_string(json, "kind", resource->kind);
    ch_json_set(json, "verbs", string_list(verbs));
    if (resource->short_names != NULL)
        ch_json_set(json, "shortNames", string_list(resource->short_names));
    if (resource->is_in_all)
        ch_json_set(json, "categories", string_list(categories));
    return json;
}

static ChJson *
status_entry(const ChResource *resource)
{
    static const char *const verbs[] = {"get", "patch", "update", NULL};
    ChJson *json = ch_json_new_object();
    g_autofree char *name = g_strconcat(resource->plural, "/status", NULL);

    ch_json_set_string(json, "name", name);
    ch_json_set_string(json, "singularName", "");
    ch_json_set_bool(json, "namespaced", resource->is_namespaced);
    ch_json_set_string(json, "kind", resource->kind);
    ch_json_set(json, "verbs", string_list(verbs));
    return json;
}

static ChJson *
resource_list(const char *group, const char *version)
{
    const ChResource *first = find_group(group, version);
    g_autofree char *api_version = NULL;
    ChJson *json, *list;
    gsize n;
    const ChResource *rows = ch_resource_table(&n);

    if (first == NULL)
        return NULL;
    api_version = ch_resource_api_version(first);
    json = new_typed("APIResourceList");
    ch_json_set_string(json, "groupVersion", api_version);
    list = ch_json_new_array();
    for (const ChResource *row = first; row < rows + n && g_str_equal(row->group, group); row++) {
        ch_json_append(list, resource_entry(row));
        if (row->has_status)
            ch_json_append(list, status_entry(row));
    }
    ch_json_set(json, "resources", list);
    return json;
}

static ChJson *
group_document(const char *group)
{
    const ChResource *first = find_group(group, NULL);
    ChJson *json;

    if (first == NULL || *group == '\0')
        return NULL;
    json = group_entry(first);
    ch_json_set_string(json, "kind", "APIGroup");
    ch_json_set_string(json, "apiVersion", "v1");
    return json;
}

static ChJson *
openapi_v2(void)
{
    ChJson *json = ch_json_new_object();
    ChJson *info = ch_json_new_object();

    ch_json_set_string(json, "swagger", "2.0");
    ch_json_set_string(info, "title", "chandler");
    ch_json_set_string(info, "version", GIT_VERSION);
    ch_json_set(json, "info", info);
    ch_json_set(json, "paths", ch_json_new_object());
    ch_json_set(json, "definitions", ch_json_new_object());
    return json;
}

ChJson *
ch_discovery_answer(const char *const *segments)
{
    const guint n = g_strv_length((char **)segments);
    const char *first = n > 0 ? segments[0] : "";

    if (n == 1 && g_str_equal(first, "version"))
        return version_info();
    if (n == 1 && g_str_equal(first, "api"))
        return core_versions();
    if (n == 2 && g_str_equal(first, "api"))
        return resource_list("", segments[1]);
    if (n == 1 && g_str_equal(first, "apis"))
        return group_list();
    if (n == 2 && g_str_equal(first, "apis"))
        return group_document(segments[1]);
    if (n == 3 && g_str_equal(first, "apis"))
        return resource_list(segments[1], segments[2]);
    if (n == 2 && g_str_equal(first, "openapi") && g_str_equal(segments[1], "v2"))
        return openapi_v2();
    return NULL;
}

GBytes *
ch_discovery_openapi_protobuf(void)
{
    /* openapi.v2.Document{swagger: "2.0", info: {title: "chandler", version: "1"}} */
    static const char document[] = "\x0a\x03"
                                   "2.0"
                                   "\x12\x0d"
                                   "\x0a\x08"
                                   "chandler"
                                   "\x12\x01"
                                   "1";

    return g_bytes_new_static(document, sizeof(document) - 1);
}
