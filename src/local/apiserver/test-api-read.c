/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/api.h"

#include "local/apiserver/test-support.h"

#define TABLE   "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
#define PARTIAL "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

static void
make_configmaps(TestApi *t, int n)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *body = g_strdup_printf(
            "{'metadata':{'name':'c%d','labels':{'parity':'%s'}}}", i, i % 2 == 0 ? "even" : "odd");

        test_do(t, 201, "POST", TEST_CONFIGMAPS, body);
    }
}

/* (transfer full): "a b c": the names of a list's items */
static char *
names_of(const ChJson *list)
{
    GString *names = g_string_new(NULL);
    const ChJson *items = ch_json_at(list, "items");

    for (gsize i = 0; i < ch_json_length(items); i++)
        g_string_append_printf(names,
                               "%s%s",
                               i > 0 ? " " : "",
                               ch_json_string_at(ch_json_item(items, i), "metadata", "name"));
    return g_string_free(names, FALSE);
}

static void
test_lists_come_in_pages(void)
{
    TestApi t;
    g_autoptr(GString) path = g_string_new(TEST_CONFIGMAPS "?limit=2");
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autofree char *revision = NULL;
    const char *token;

    test_api_init(&t, NULL);
    make_configmaps(&t, 5);
    for (int page = 0; page < 3; page++) {
        g_autoptr(ChJson) list = test_call(&t, 200, "GET", path->str, NULL);
        g_autofree char *names = names_of(list);
        g_autofree char *escaped = NULL;

        g_string_append_printf(seen, "[%s]", names);
        if (page == 0)
            revision = g_strdup(ch_json_string_at(list, "metadata", "resourceVersion"));
        g_assert_cmpstr(ch_json_string_at(list, "metadata", "resourceVersion"), ==, revision);
        g_assert_cmpstr(ch_json_string_at(list, "kind"), ==, "ConfigMapList");
        token = ch_json_string_at(list, "metadata", "continue");
        g_assert_cmpint(token != NULL, ==, page < 2);
        if (token == NULL)
            break;
        escaped = g_uri_escape_string(token, NULL, FALSE);
        g_string_printf(path, TEST_CONFIGMAPS "?limit=2&continue=%s", escaped);
        /* a change in between moves neither the pages nor their revision */
        test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'generateName':'a-'}}");
    }
    g_assert_cmpstr(seen->str, ==, "[c0 c1][c2 c3][c4]");
    test_api_clear(&t);
}

static void
test_page_after_compaction_is_gone(void)
{
    const ChApiOptions options = {.max_changes = 2};
    TestApi t;
    g_autoptr(ChJson) list = NULL;
    g_autoptr(ChJson) refused = NULL;
    g_autofree char *escaped = NULL;
    g_autofree char *path = NULL;

    test_api_init(&t, &options);
    make_configmaps(&t, 2);
    list = test_call(&t, 200, "GET", TEST_CONFIGMAPS "?limit=1", NULL);
    escaped = g_uri_escape_string(ch_json_string_at(list, "metadata", "continue"), NULL, FALSE);
    path = g_strconcat(TEST_CONFIGMAPS "?limit=1&continue=", escaped, NULL);
    for (int i = 0; i < 3; i++)
        test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'generateName':'a-'}}");
    refused = test_call(&t, 410, "GET", path, NULL);
    g_assert_cmpstr(ch_json_string_at(refused, "reason"), ==, "Expired");
    test_api_clear(&t);
}

static const struct {
    const char *query;
    const char *names;
} selections[] = {
    {"", "c0 c1 c2 c3"},
    {"?labelSelector=parity%3dodd", "c1 c3"},
    {"?labelSelector=parity+in+(even)", "c0 c2"},
    {"?labelSelector=%21parity", ""},
    {"?fieldSelector=metadata.name%3dc2", "c2"},
    {"?fieldSelector=metadata.name%21%3dc2&labelSelector=parity%3deven", "c0"},
    {"?fieldSelector=metadata.namespace%3dother", ""},
    {"?labelSelector=parity%3dodd&limit=1", "c1"},
    {"?labelSelector=&fieldSelector=", "c0 c1 c2 c3"},
};

static void
test_lists_are_selected(void)
{
    TestApi t;

    test_api_init(&t, NULL);
    make_configmaps(&t, 4);
    for (gsize i = 0; i < G_N_ELEMENTS(selections); i++) {
        g_autofree char *path = g_strconcat(TEST_CONFIGMAPS, selections[i].query, NULL);
        g_autoptr(ChJson) list = test_call(&t, 200, "GET", path, NULL);
        g_autofree char *names = names_of(list);

        g_assert_cmpstr(names, ==, selections[i].names);
    }
    test_api_clear(&t);
}

static void
test_lists_can_span_namespaces(void)
{
    TestApi t;
    g_autoptr(ChJson) list = NULL;
    g_autofree char *names = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", "/api/v1/namespaces", "{'metadata':{'name':'a'}}");
    test_do(&t, 201, "POST", "/api/v1/namespaces/a/configmaps", "{'metadata':{'name':'z'}}");
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'b'}}");
    list = test_call(&t, 200, "GET", "/api/v1/configmaps?resourceVersion=0", NULL);
    names = names_of(list);
    g_assert_cmpstr(names, ==, "z b");
    test_api_clear(&t);
}

static void
test_exact_revision_is_the_current_one_or_gone(void)
{
    TestApi t;
    g_autoptr(ChJson) made = NULL;
    g_autofree char *path = NULL;

    test_api_init(&t, NULL);
    made = test_call(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a'}}");
    path = g_strdup_printf(TEST_CONFIGMAPS "?resourceVersionMatch=Exact&resourceVersion=%s",
                           ch_json_string_at(made, "metadata", "resourceVersion"));
    test_do(&t, 200, "GET", path, NULL);
    make_configmaps(&t, 1);
    test_do(&t, 410, "GET", path, NULL);
    test_api_clear(&t);
}

static const char running_vmi[] =
    "{'metadata':{'name':'vm'},'spec':{'domain':{'devices':{}}},'status':{'phase':'Running',"
    "'nodeName':'n1','interfaces':[{'ipAddress':'10.0.0.7'}],'conditions':["
    "{'type':'Paused','status':'True'},{'type':'Ready','status':'False'}]}}";

static void
test_table_has_kubevirts_columns(void)
{
    static const char *const headings[] = {
        "Name", "Age", "Phase", "IP", "NodeName", "Ready", "Live-Migratable", "Paused"};
    static const char *const cells[] = {
        "vm", "2m5s", "Running", "10.0.0.7", "n1", "False", NULL, "True"};
    TestApi t;
    g_autoptr(ChJson) table = NULL;
    const ChJson *row;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_VMIS, running_vmi);
    t.now_us += 125 * G_USEC_PER_SEC;
    table = test_call_as(&t, 200, "GET", TEST_VMIS, NULL, TABLE, NULL);
    g_assert_cmpstr(ch_json_string_at(table, "kind"), ==, "Table");
    g_assert_cmpstr(ch_json_string_at(table, "apiVersion"), ==, "meta.k8s.io/v1");
    row = ch_json_item(ch_json_at(table, "rows"), 0);
    for (gsize i = 0; i < G_N_ELEMENTS(headings); i++) {
        const ChJson *column = ch_json_item(ch_json_at(table, "columnDefinitions"), i);
        int64_t priority = -1;

        g_assert_cmpstr(ch_json_string_at(column, "name"), ==, headings[i]);
        g_assert_true(ch_json_int_at(column, &priority, "priority"));
        g_assert_cmpint(priority, ==, i >= 6);
        g_assert_cmpstr(ch_json_as_string(ch_json_item(ch_json_at(row, "cells"), i)), ==, cells[i]);
    }
    g_assert_cmpstr(ch_json_string_at(row, "object", "kind"), ==, "PartialObjectMetadata");
    g_assert_null(ch_json_at(row, "object", "spec"));
    test_api_clear(&t);
}

static void
test_metadata_alone_can_be_listed(void)
{
    TestApi t;
    g_autoptr(ChJson) list = NULL;
    const ChJson *item;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_VMIS, running_vmi);
    list = test_call_as(&t, 200, "GET", TEST_VMIS, NULL, PARTIAL, NULL);
    g_assert_cmpstr(ch_json_string_at(list, "kind"), ==, "PartialObjectMetadataList");
    item = ch_json_item(ch_json_at(list, "items"), 0);
    g_assert_cmpstr(ch_json_string_at(item, "metadata", "name"), ==, "vm");
    g_assert_cmpuint(ch_json_length(item), ==, 3);
    test_api_clear(&t);
}

/* A list at a revision that is not there yet would let no watch follow it. */
static void
test_forged_pages_are_refused(void)
{
    static const char *const texts[] = {
        "1/99999/default/a", "2/1/default/a", "1/-1/default/a", "1/1/a", ""};
    TestApi t;

    test_api_init(&t, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *token = g_base64_encode((const guchar *)texts[i], strlen(texts[i]));
        g_autofree char *path =
            g_strdup_printf(TEST_CONFIGMAPS "?limit=1&continue=%s", *token != '\0' ? token : "x");

        test_do(&t, 400, "GET", path, NULL);
    }
    test_api_clear(&t);
}

static void
test_too_many_parameters_are_refused(void)
{
    g_autoptr(GString) path = g_string_new(TEST_CONFIGMAPS "?a=1");
    TestApi t;

    test_api_init(&t, NULL);
    for (int i = 0; i < 70; i++)
        g_string_append(path, "&a=1");
    test_do(&t, 400, "GET", path->str, NULL);
    test_api_clear(&t);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api/list/pages", test_lists_come_in_pages);
    g_test_add_func("/api/list/pages-after-compaction", test_page_after_compaction_is_gone);
    g_test_add_func("/api/list/forged-pages", test_forged_pages_are_refused);
    g_test_add_func("/api/list/too-many-parameters", test_too_many_parameters_are_refused);
    g_test_add_func("/api/list/selectors", test_lists_are_selected);
    g_test_add_func("/api/list/all-namespaces", test_lists_can_span_namespaces);
    g_test_add_func("/api/list/exact", test_exact_revision_is_the_current_one_or_gone);
    g_test_add_func("/api/list/table", test_table_has_kubevirts_columns);
    g_test_add_func("/api/list/metadata", test_metadata_alone_can_be_listed);
    return g_test_run();
}
