/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/view.h"

#include "local/apiserver/cells.h"

#define ACCEPTED "application/json"

/* One media range of an Accept header; @params: its parameters, stripped. */
static bool
choose_range(char **params, ChView *out_view)
{
    const char *type = g_strstrip(params[0]);
    const char *as = NULL, *group = NULL, *version = NULL;

    if (!g_str_equal(type, ACCEPTED) && !g_str_equal(type, "*/*") &&
        !g_str_equal(type, "application/*"))
        return false;
    for (char **param = params + 1; *param != NULL; param++) {
        g_strstrip(*param);
        if (g_str_has_prefix(*param, "as="))
            as = *param + 3;
        else if (g_str_has_prefix(*param, "g="))
            group = *param + 2;
        else if (g_str_has_prefix(*param, "v="))
            version = *param + 2;
    }
    if (as == NULL) {
        out_view->kind = CH_VIEW_PLAIN;
        return true;
    }
    if (g_strcmp0(group, "meta.k8s.io") != 0)
        return false;
    if (g_str_equal(as, "Table"))
        out_view->kind = CH_VIEW_TABLE;
    else if (g_str_has_prefix(as, "PartialObjectMetadata"))
        out_view->kind = CH_VIEW_METADATA;
    else
        return false;
    out_view->version = g_strcmp0(version, "v1beta1") == 0 ? "v1beta1" : "v1";
    return g_strcmp0(version, "v1") == 0 || g_strcmp0(version, "v1beta1") == 0;
}

static ChRefusal *
parse_include_object(const char *text, ChRowObject *out_row_object)
{
    if (text == NULL || *text == '\0' || g_str_equal(text, "Metadata"))
        *out_row_object = CH_ROW_METADATA;
    else if (g_str_equal(text, "Object"))
        *out_row_object = CH_ROW_OBJECT;
    else if (g_str_equal(text, "None"))
        *out_row_object = CH_ROW_NONE;
    else
        return ch_refuse_bad_request("unrecognized includeObject value: \"%s\"", text);
    return NULL;
}

ChRefusal *
ch_view_choose(const char *accept, const char *include_object, ChView *out_view)
{
    g_auto(GStrv) ranges = NULL;
    ChView view = {.kind = CH_VIEW_PLAIN, .version = "v1"};
    ChRefusal *refusal = parse_include_object(include_object, &view.row_object);
    bool is_chosen = accept == NULL || *accept == '\0';

    if (refusal != NULL)
        return refusal;
    ranges = g_strsplit(accept != NULL ? accept : "", ",", 32);
    for (char **range = ranges; *range != NULL && !is_chosen; range++) {
        g_auto(GStrv) params = g_strsplit(*range, ";", 16);

        is_chosen = params[0] != NULL && choose_range(params, &view);
    }
    if (!is_chosen)
        return ch_refusal_new(
            406, "NotAcceptable", "only the following media types are accepted: application/json");
    *out_view = view;
    return NULL;
}

static void
set_meta_type(ChJson *json, const ChView *view, const char *kind)
{
    g_autofree char *api_version = g_strconcat("meta.k8s.io/", view->version, NULL);

    ch_json_set_string(json, "kind", kind);
    ch_json_set_string(json, "apiVersion", api_version);
}

ChJson *
ch_view_metadata(const ChView *view, ChJson *object)
{
    ChJson *partial = ch_json_new_object();

    set_meta_type(partial, view, "PartialObjectMetadata");
    ch_json_set(partial, "metadata", ch_json_ref(ch_json_at(object, "metadata")));
    return partial;
}

static ChJson *
make_cell(const ChColumn *column, const ChJson *object, int64_t now_us)
{
    g_autofree char *text = NULL;
    const ChJson *value;

    if (column->cell != NULL)
        text = column->cell(object, now_us);
    else if ((value = ch_resource_lookup(object, column->path)) == NULL)
        return NULL;
    else if (!ch_json_is_string(value))
        text = ch_json_print(value, NULL);
    else if (g_str_equal(column->type, "date"))
        text = ch_cell_age(ch_json_as_string(value), now_us);
    else
        text = g_strdup(ch_json_as_string(value));
    return g_str_equal(column->type, "integer") ? ch_json_new_int(g_ascii_strtoll(text, NULL, 10))
                                                : ch_json_new_string(text);
}

ChJson *
ch_view_row(const ChView *view, const ChResource *resource, ChJson *object, int64_t now_us)
{
    ChJson *row = ch_json_new_object();
    ChJson *cells = ch_json_new_array();

    for (gsize i = 0; i < resource->n_columns; i++)
        ch_json_append(cells, make_cell(&resource->columns[i], object, now_us));
    ch_json_set(row, "cells", cells);
    if (view->row_object == CH_ROW_METADATA)
        ch_json_set(row, "object", ch_view_metadata(view, object));
    else if (view->row_object == CH_ROW_OBJECT)
        ch_json_set(row, "object", ch_json_ref(object));
    return row;
}

static ChJson *
describe_column(const ChColumn *column)
{
    ChJson *json = ch_json_new_object();
    const bool is_name = g_strcmp0(column->path, "metadata.name") == 0;

    ch_json_set_string(json, "name", column->name);
    ch_json_set_string(json, "type", column->type);
    ch_json_set_string(json, "format", is_name ? "name" : "");
    ch_json_set_string(json, "description", "");
    ch_json_set_int(json, "priority", column->priority);
    return json;
}

ChJson *
ch_view_table_new(const ChView *view, const ChResource *resource, bool has_columns)
{
    ChJson *table = ch_json_new_object();
    ChJson *columns = ch_json_new_array();

    set_meta_type(table, view, "Table");
    ch_json_set(table, "metadata", ch_json_new_object());
    for (gsize i = 0; i < resource->n_columns && has_columns; i++)
        ch_json_append(columns, describe_column(&resource->columns[i]));
    ch_json_set(table, "columnDefinitions", columns);
    ch_json_set(table, "rows", ch_json_new_array());
    return table;
}

ChJson *
ch_view_object(
    const ChView *view, const ChResource *resource, ChJson *object, bool is_first, int64_t now_us)
{
    ChJson *table;

    if (view->kind == CH_VIEW_METADATA)
        return ch_view_metadata(view, object);
    table = ch_view_table_new(view, resource, is_first);
    ch_json_set_string(ch_json_at(table, "metadata"),
                       "resourceVersion",
                       ch_json_string_at(object, "metadata", "resourceVersion"));
    ch_json_append(ch_json_at(table, "rows"), ch_view_row(view, resource, object, now_us));
    return table;
}
