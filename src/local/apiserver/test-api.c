/* SPDX-License-Identifier: Apache-2.0 */

/* The dispatch and discovery; the verbs have tests of their own. */

#include "local/apiserver/api.h"

#include "local/apiserver/test-support.h"

static const struct Case {
    const char *method;
    const char *path;
    int code;
    const char *reason; /* NULL: none is looked for */
} cases[] = {
    {"GET", "/api", 200, NULL},
    {"GET", "/api/v1", 200, NULL},
    {"GET", "/apis/", 200, NULL},
    {"GET", "/apis/kubevirt.io", 200, NULL},
    {"GET", "/apis/kubevirt.io/v1", 200, NULL},
    {"GET", "/version", 200, NULL},
    {"GET", "/openapi/v2", 200, NULL},
    {"GET", "/", 404, "NotFound"},
    {"GET", "/nothing", 404, "NotFound"},
    {"GET", "/apis/kubevirt.io/v2", 404, "NotFound"},
    {"GET", "/apis/nothing.io", 404, "NotFound"},
    {"GET", "/api/v1/nothing", 404, "NotFound"},
    {"POST", "/api", 404, "NotFound"},
    {"GET", "/api/v1/namespaces", 200, NULL},
    {"GET", "/api/v1/namespaces/default", 200, NULL},
    {"GET", "/api/v1/namespaces/default/status", 200, NULL},
    {"GET", "/api/v1/namespaces/default/pods", 200, NULL},
    {"GET", "/api/v1/namespaces/default/nodes", 404, "NotFound"},
    {"GET", "/api/v1/pods", 200, NULL},
    {"GET", "/api/v1/pods/x", 404, "NotFound"},
    {"GET", "/api/v1/namespaces/default/pods/x/status", 404, "NotFound"},
    {"GET", "/api/v1/namespaces/default/pods/x/log", 404, "NotFound"},
    {"GET", "/api/v1/namespaces/default/pods/x/status/y", 404, "NotFound"},
    {"GET", TEST_VMIS "/x/status", 404, "NotFound"},
    {"GET", "/api/v1/namespaces/de%66ault", 200, NULL},
    {"GET", "/api/v1/namespaces/a%2fb", 400, "BadRequest"},
    {"GET", "/api/v1/namespaces/a%ff", 400, "BadRequest"},
    {"GET", "/api/v1/pods?limit=x", 400, "BadRequest"},
    {"GET", "/api/v1/pods?labelSelector=%20%3d%3d", 400, "BadRequest"},
    {"GET", "/api/v1/pods?fieldSelector=spec.nothing%3dx", 400, "BadRequest"},
    {"GET", "/api/v1/pods?fieldSelector=spec.nodeName%3dx", 200, NULL},
    {"GET", "/api/v1/pods?resourceVersion=x", 400, "BadRequest"},
    {"GET", "/api/v1/pods?resourceVersion=999", 504, "Timeout"},
    {"GET", "/api/v1/pods?resourceVersionMatch=Exact", 400, "BadRequest"},
    {"GET", "/api/v1/pods?continue=AAAA", 400, "BadRequest"},
    {"GET", "/api/v1/pods?includeObject=x", 400, "BadRequest"},
    {"POST", "/api/v1/pods", 405, "MethodNotAllowed"},
    {"DELETE", "/api/v1/pods", 405, "MethodNotAllowed"},
    {"PUT", "/api/v1/namespaces/default/pods", 405, "MethodNotAllowed"},
    {"OPTIONS", "/api/v1/namespaces/default/pods", 405, "MethodNotAllowed"},
    {"POST", "/api/v1/namespaces/default/pods", 400, "BadRequest"},
    {"POST", "/api/v1/namespaces?dryRun=Some", 400, "BadRequest"},
};

static void
test_paths(void)
{
    TestApi t;

    test_api_init(&t, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ChJson) answer =
            test_call(&t, cases[i].code, cases[i].method, cases[i].path, NULL);

        if (cases[i].reason == NULL)
            continue;
        g_assert_cmpstr(ch_json_string_at(answer, "kind"), ==, "Status");
        g_assert_cmpstr(ch_json_string_at(answer, "reason"), ==, cases[i].reason);
    }
    test_api_clear(&t);
}

static void
test_health_is_plain_text(void)
{
    TestApi t;
    ChApiRequest request = {.method = "GET", .path = "/healthz"};
    g_auto(ChApiAnswer) answer = {0};

    test_api_init(&t, NULL);
    test_ask(&t, &request, 200, &answer);
    g_assert_cmpuint(g_bytes_get_size(answer.body), ==, 2);
    g_assert_cmpint(memcmp(g_bytes_get_data(answer.body, NULL), "ok", 2), ==, 0);
    test_api_clear(&t);
}

static void
test_discovery_tells_every_kind(void)
{
    TestApi t;
    gsize n;
    const ChResource *rows = ch_resource_table(&n);

    test_api_init(&t, NULL);
    for (gsize i = 0; i < n; i++) {
        g_autofree char *version = ch_resource_api_version(&rows[i]);
        g_autofree char *path =
            g_strconcat(rows[i].group[0] != '\0' ? "/apis/" : "/api/", version, NULL);
        g_autoptr(ChJson) answer = test_call(&t, 200, "GET", path, NULL);
        const ChJson *list = ch_json_at(answer, "resources");
        guint n_found = 0;

        g_assert_cmpstr(ch_json_string_at(answer, "groupVersion"), ==, version);
        for (gsize j = 0; j < ch_json_length(list); j++) {
            const ChJson *item = ch_json_item(list, j);

            if (g_strcmp0(ch_json_string_at(item, "name"), rows[i].plural) != 0)
                continue;
            n_found++;
            g_assert_cmpstr(ch_json_string_at(item, "kind"), ==, rows[i].kind);
            g_assert_cmpint(ch_json_bool_at(item, false, "namespaced"), ==, rows[i].is_namespaced);
            g_assert_cmpstr(ch_json_as_string(ch_json_item(ch_json_at(item, "categories"), 0)),
                            ==,
                            rows[i].is_in_all ? "all" : NULL);
        }
        g_assert_cmpuint(n_found, ==, 1);
    }
    test_api_clear(&t);
}

static void
test_unknown_form_is_not_acceptable(void)
{
    TestApi t;

    test_api_init(&t, NULL);
    ch_json_unref(test_call_as(
        &t, 406, "GET", TEST_NODES, NULL, "application/vnd.kubernetes.protobuf", NULL));
    ch_json_unref(test_call_as(&t,
                               200,
                               "GET",
                               TEST_NODES,
                               NULL,
                               "application/vnd.kubernetes.protobuf, application/json;q=0.5",
                               NULL));
    test_api_clear(&t);
}

static void
test_old_events_vanish(void)
{
    TestApi t;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", "/api/v1/namespaces/default/events", "{'metadata':{'name':'old'}}");
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'old'}}");
    t.now_us += (int64_t)3000 * G_USEC_PER_SEC;
    test_do(&t, 201, "POST", "/api/v1/namespaces/default/events", "{'metadata':{'name':'new'}}");
    ch_api_expire(t.api, t.now_us + (int64_t)900 * G_USEC_PER_SEC);
    test_do(&t, 404, "GET", "/api/v1/namespaces/default/events/old", NULL);
    test_do(&t, 200, "GET", "/api/v1/namespaces/default/events/new", NULL);
    test_do(&t, 200, "GET", TEST_CONFIGMAPS "/old", NULL);
    test_api_clear(&t);
}

/* Each removal waits for the disk: they must not all be made in one go. */
static void
test_many_events_vanish_by_and_by(void)
{
    static const char events[] = "/api/v1/namespaces/default/events";
    const int64_t hour_us = (int64_t)3601 * G_USEC_PER_SEC;
    gsize n_left = 300;
    TestApi t;

    test_api_init(&t, NULL);
    for (gsize i = 0; i < n_left; i++)
        test_do(&t, 201, "POST", events, "{'metadata':{'generateName':'e'}}");
    for (int round = 0; round < 2; round++) {
        g_autoptr(ChJson) list = NULL;
        gsize n_before = n_left;

        ch_api_expire(t.api, t.now_us + hour_us);
        list = test_call(&t, 200, "GET", events, NULL);
        n_left = ch_json_length(ch_json_at(list, "items"));
        g_assert_cmpuint(n_left, <, n_before);
        g_assert_cmpint(n_left == 0, ==, round == 1);
    }
    test_api_clear(&t);
}

static void
test_objects_survive_a_restart(void)
{
    static const ChApiOptions none = {0};
    TestApi t;
    g_autoptr(ChJson) before = NULL;
    g_autoptr(ChJson) after = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a'},'data':{'x':'y'}}");
    before = test_call(&t, 200, "GET", TEST_CONFIGMAPS "/a", NULL);
    ch_api_free(t.api);
    test_api_open(&t, &none);
    after = test_call(&t, 200, "GET", TEST_CONFIGMAPS "/a", NULL);
    g_assert_true(ch_json_equal(before, after));
    test_api_clear(&t);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api/paths", test_paths);
    g_test_add_func("/api/health", test_health_is_plain_text);
    g_test_add_func("/api/discovery", test_discovery_tells_every_kind);
    g_test_add_func("/api/unknown-form", test_unknown_form_is_not_acceptable);
    g_test_add_func("/api/old-events-vanish", test_old_events_vanish);
    g_test_add_func("/api/many-events-vanish", test_many_events_vanish_by_and_by);
    g_test_add_func("/api/restart", test_objects_survive_a_restart);
    return g_test_run();
}
