/* SPDX-License-Identifier: Apache-2.0 */

/* Watches through the API, so that what is told is what was written. */

#include "local/apiserver/watch.h"

#include "local/apiserver/test-support.h"

/* (transfer full) */
static ChWatch *
watch(TestApi *t, const char *path, const char *accept)
{
    ChApiRequest request = {.method = "GET", .path = path, .accept = accept};
    ChApiAnswer answer = {0};

    test_ask(t, &request, 200, &answer);
    g_assert_nonnull(answer.watch);
    g_assert_null(answer.body);
    return answer.watch;
}

/* (transfer full): "ADDED a@3 MODIFIED a@4 ": everything that is there now */
static char *
told(TestApi *t, ChWatch *w)
{
    GString *text = g_string_new(NULL);
    GBytes *frames;

    while ((frames = ch_watch_next(w, t->now_us)) != NULL) {
        g_autofree char *all = g_strndup(g_bytes_get_data(frames, NULL), g_bytes_get_size(frames));
        g_auto(GStrv) lines = g_strsplit(all, "\n", -1);

        for (char **line = lines; **line != '\0'; line++) {
            g_autoptr(ChJson) frame = ch_json_parse(*line, -1, NULL);
            const char *name = ch_json_string_at(frame, "object", "metadata", "name");
            const char *version = ch_json_string_at(frame, "object", "metadata", "resourceVersion");

            g_string_append_printf(text,
                                   "%s %s@%s ",
                                   ch_json_string_at(frame, "type"),
                                   name != NULL ? name : "-",
                                   version != NULL ? version : "-");
        }
        g_bytes_unref(frames);
    }
    return g_string_free(text, FALSE);
}

#define assert_told(t, w, expected)                                                                \
    do {                                                                                           \
        g_autofree char *told_ = told(t, w);                                                       \
        g_assert_cmpstr(told_, ==, expected);                                                      \
    } while (0)

static void
patch(TestApi *t, const char *path, const char *body)
{
    ch_json_unref(test_call_as(t, 200, "PATCH", path, "application/merge-patch+json", NULL, body));
}

static void
test_changes_are_told_in_order(void)
{
    TestApi t;
    g_autoptr(ChWatch) w = NULL;

    test_api_init(&t, NULL); /* the namespace is revision 2 */
    w = watch(&t, TEST_CONFIGMAPS "?watch=true&resourceVersion=2", NULL);
    assert_told(&t, w, "");
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a'}}");
    patch(&t, TEST_CONFIGMAPS "/a", "{'data':{'x':'y'}}");
    test_do(&t, 201, "POST", TEST_NODES, "{'metadata':{'name':'n'}}"); /* another kind */
    test_do(&t, 200, "DELETE", TEST_CONFIGMAPS "/a", NULL);
    assert_told(&t, w, "ADDED a@3 MODIFIED a@4 DELETED a@6 ");
    assert_told(&t, w, "");
    test_api_clear(&t);
}

static void
test_watch_resumes_from_any_revision(void)
{
    TestApi t;
    g_autoptr(ChWatch) w = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a'}}");
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'b'}}");
    w = watch(&t, TEST_CONFIGMAPS "?watch=1&resourceVersion=3", NULL);
    assert_told(&t, w, "ADDED b@4 ");
    test_do(&t, 504, "GET", TEST_CONFIGMAPS "?watch=1&resourceVersion=5", NULL);
    test_api_clear(&t);
}

static void
test_selector_transitions(void)
{
    TestApi t;
    g_autoptr(ChWatch) w = NULL;

    test_api_init(&t, NULL);
    w = watch(&t, TEST_NODES "?watch=true&resourceVersion=2&labelSelector=a%3d1", NULL);
    test_do(&t, 201, "POST", TEST_NODES, "{'metadata':{'name':'n'}}");
    assert_told(&t, w, "");
    patch(&t, TEST_NODES "/n", "{'metadata':{'labels':{'a':'1'}}}");
    assert_told(&t, w, "ADDED n@4 ");
    patch(&t, TEST_NODES "/n", "{'spec':{'x':1}}");
    assert_told(&t, w, "MODIFIED n@5 ");
    patch(&t, TEST_NODES "/n", "{'metadata':{'labels':{'a':'2'}},'spec':{'x':2}}");
    {
        g_autoptr(GBytes) bytes = ch_watch_next(w, t.now_us);
        g_autoptr(ChJson) frame =
            ch_json_parse(g_bytes_get_data(bytes, NULL), (gssize)g_bytes_get_size(bytes), NULL);
        int64_t x = 0;

        /* as the client last saw it, at the revision of the change */
        g_assert_cmpstr(ch_json_string_at(frame, "type"), ==, "DELETED");
        g_assert_cmpstr(ch_json_string_at(frame, "object", "metadata", "resourceVersion"), ==, "6");
        g_assert_cmpstr(ch_json_string_at(frame, "object", "metadata", "labels", "a"), ==, "1");
        g_assert_true(ch_json_int_at(frame, &x, "object", "spec", "x"));
        g_assert_cmpint(x, ==, 1);
    }
    test_do(&t, 200, "DELETE", TEST_NODES "/n", NULL);
    assert_told(&t, w, ""); /* it had left already */
    test_api_clear(&t);
}

static void
test_fields_and_namespaces_select_too(void)
{
    TestApi t;
    g_autoptr(ChWatch) by_name = NULL;
    g_autoptr(ChWatch) elsewhere = NULL;
    g_autoptr(ChWatch) everywhere = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", "/api/v1/namespaces", "{'metadata':{'name':'x'}}");
    by_name =
        watch(&t,
              "/api/v1/configmaps?watch=true&resourceVersion=3&fieldSelector=metadata.name%3db",
              NULL);
    elsewhere = watch(&t, "/api/v1/namespaces/x/configmaps?watch=true&resourceVersion=3", NULL);
    everywhere = watch(&t, "/api/v1/configmaps?watch=true&resourceVersion=3", NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a'}}");
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'b'}}");
    test_do(&t, 201, "POST", "/api/v1/namespaces/x/configmaps", "{'metadata':{'name':'c'}}");
    assert_told(&t, by_name, "ADDED b@5 ");
    assert_told(&t, elsewhere, "ADDED c@6 ");
    assert_told(&t, everywhere, "ADDED a@4 ADDED b@5 ADDED c@6 ");
    test_api_clear(&t);
}

static void
test_watch_without_revision_begins_with_what_is_there(void)
{
    TestApi t;
    g_autoptr(ChWatch) unset = NULL;
    g_autoptr(ChWatch) any = NULL;
    g_autoptr(ChWatch) list = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a','labels':{'l':'1'}}}");
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'b'}}");
    unset = watch(&t, TEST_CONFIGMAPS "?watch=true", NULL);
    any = watch(&t, TEST_CONFIGMAPS "?watch=true&resourceVersion=0&labelSelector=l", NULL);
    list = watch(&t,
                 TEST_CONFIGMAPS "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
                                 "&resourceVersionMatch=NotOlderThan",
                 NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'c'}}");
    assert_told(&t, unset, "ADDED a@3 ADDED b@4 ADDED c@5 ");
    assert_told(&t, any, "ADDED a@3 ");
    assert_told(&t, list, "ADDED a@3 ADDED b@4 BOOKMARK -@4 ADDED c@5 ");
    test_do(&t, 400, "GET", TEST_CONFIGMAPS "?watch=true&sendInitialEvents=true", NULL);
    test_api_clear(&t);
}

static void
test_compacted_watch_is_told_410(void)
{
    const ChApiOptions options = {.max_changes = 3};
    TestApi t;
    g_autoptr(ChWatch) slow = NULL;
    g_autoptr(ChWatch) late = NULL;
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(ChJson) frame = NULL;
    int64_t code = 0;

    test_api_init(&t, &options);
    slow = watch(&t, TEST_CONFIGMAPS "?watch=true&resourceVersion=2", NULL);
    for (int i = 0; i < 5; i++)
        test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'generateName':'a'}}");
    bytes = ch_watch_next(slow, t.now_us);
    frame = ch_json_parse(g_bytes_get_data(bytes, NULL), (gssize)g_bytes_get_size(bytes), NULL);
    g_assert_cmpstr(ch_json_string_at(frame, "type"), ==, "ERROR");
    g_assert_cmpstr(ch_json_string_at(frame, "object", "reason"), ==, "Expired");
    g_assert_true(ch_json_int_at(frame, &code, "object", "code"));
    g_assert_cmpint(code, ==, 410);
    g_assert_true(ch_watch_is_over(slow));
    g_assert_null(ch_watch_next(slow, t.now_us));

    late = watch(&t, TEST_CONFIGMAPS "?watch=true&resourceVersion=1", NULL);
    assert_told(&t, late, "ERROR -@- ");
    test_api_clear(&t);
}

static void
test_history_of_an_earlier_run_is_gone(void)
{
    static const ChApiOptions none = {0};
    TestApi t;
    g_autoptr(ChWatch) late = NULL;
    g_autoptr(ChWatch) current = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a'}}");
    ch_api_free(t.api);
    test_api_open(&t, &none);
    late = watch(&t, TEST_CONFIGMAPS "?watch=true&resourceVersion=2", NULL);
    current = watch(&t, TEST_CONFIGMAPS "?watch=true&resourceVersion=3", NULL);
    assert_told(&t, late, "ERROR -@- ");
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'b'}}");
    assert_told(&t, current, "ADDED b@4 ");
    test_api_clear(&t);
}

static void
test_bookmarks_tell_the_newest_revision(void)
{
    TestApi t;
    g_autoptr(ChWatch) w = NULL;
    g_autoptr(GBytes) bytes = NULL;
    g_autofree char *text = NULL;

    test_api_init(&t, NULL);
    w = watch(&t, TEST_CONFIGMAPS "?watch=true&resourceVersion=2&allowWatchBookmarks=true", NULL);
    g_assert_true(ch_watch_peek_spec(w)->wants_bookmarks);
    test_do(&t, 201, "POST", TEST_NODES, "{'metadata':{'name':'n'}}");
    bytes = ch_watch_bookmark(w);
    text = g_strndup(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
    g_assert_cmpstr(text,
                    ==,
                    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":"
                    "\"v1\",\"metadata\":{\"resourceVersion\":\"3\"}}}\n");
    test_api_clear(&t);
}

/* (transfer full) */
static ChJson *
next_frame(TestApi *t, ChWatch *w)
{
    g_autoptr(GBytes) bytes = ch_watch_next(w, t->now_us);

    return ch_json_parse(g_bytes_get_data(bytes, NULL), (gssize)g_bytes_get_size(bytes), NULL);
}

static void
test_other_forms_can_be_watched(void)
{
    TestApi t;
    g_autoptr(ChWatch) table = NULL;
    g_autoptr(ChWatch) partial = NULL;
    g_autoptr(ChJson) first = NULL;
    g_autoptr(ChJson) second = NULL;
    g_autoptr(ChJson) meta = NULL;

    test_api_init(&t, NULL);
    table = watch(&t,
                  TEST_NODES "?watch=true&resourceVersion=2",
                  "application/json;as=Table;v=v1;g=meta.k8s.io");
    partial = watch(&t,
                    TEST_NODES "?watch=true&resourceVersion=2",
                    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    test_do(&t, 201, "POST", TEST_NODES, "{'metadata':{'name':'n'},'spec':{'x':1}}");
    first = next_frame(&t, table);
    g_assert_cmpuint(ch_json_length(ch_json_at(first, "object", "columnDefinitions")), ==, 10);
    g_assert_cmpuint(ch_json_length(ch_json_at(first, "object", "rows")), ==, 1);
    meta = next_frame(&t, partial);
    patch(&t, TEST_NODES "/n", "{'spec':{'x':2}}");
    second = next_frame(&t, table);
    g_assert_cmpstr(ch_json_string_at(second, "type"), ==, "MODIFIED");
    g_assert_cmpuint(ch_json_length(ch_json_at(second, "object", "columnDefinitions")), ==, 0);
    g_assert_cmpstr(ch_json_string_at(meta, "object", "kind"), ==, "PartialObjectMetadata");
    g_assert_null(ch_json_at(meta, "object", "spec"));
    test_api_clear(&t);
}

static void
test_large_backlog_comes_in_batches(void)
{
    TestApi t;
    g_autoptr(ChWatch) w = NULL;
    g_autoptr(GBytes) first = NULL;
    g_autofree char *filler = g_strnfill(10000, 'x');
    g_autofree char *body =
        g_strdup_printf("{'metadata':{'generateName':'a'},'data':{'x':'%s'}}", filler);
    guint n = 0;
    GBytes *more;

    test_api_init(&t, NULL);
    w = watch(&t, TEST_CONFIGMAPS "?watch=true&resourceVersion=2", NULL);
    for (int i = 0; i < 20; i++)
        test_do(&t, 201, "POST", TEST_CONFIGMAPS, body);
    first = ch_watch_next(w, t.now_us);
    g_assert_cmpuint(g_bytes_get_size(first), >=, 64u << 10);
    g_assert_cmpuint(g_bytes_get_size(first), <, 80u << 10);
    while ((more = ch_watch_next(w, t.now_us)) != NULL) {
        n++;
        g_bytes_unref(more);
    }
    g_assert_cmpuint(n, >=, 2);
    test_api_clear(&t);
}

static void
test_timeouts(void)
{
    static const struct {
        const char *query;
        int64_t least_s, most_s;
    } waits[] = {
        {"?watch=1", 1800, 3600},
        {"?watch=1&timeoutSeconds=0", 1800, 3600},
        {"?watch=1&timeoutSeconds=7", 7, 7},
        {"?watch=1&timeoutSeconds=9999999999", 86400, 86400},
    };
    TestApi t;

    test_api_init(&t, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(waits); i++) {
        g_autofree char *path = g_strconcat(TEST_CONFIGMAPS, waits[i].query, NULL);
        ChApiRequest request = {.method = "GET", .path = path};
        g_auto(ChApiAnswer) answer = {0};
        int64_t timeout_s;

        test_ask(&t, &request, 200, &answer);
        timeout_s = ch_watch_peek_spec(answer.watch)->timeout_us / G_USEC_PER_SEC;
        g_assert_cmpint(timeout_s, >=, waits[i].least_s);
        g_assert_cmpint(timeout_s, <=, waits[i].most_s);
    }
    test_api_clear(&t);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watch/in-order", test_changes_are_told_in_order);
    g_test_add_func("/watch/resume", test_watch_resumes_from_any_revision);
    g_test_add_func("/watch/selector-transitions", test_selector_transitions);
    g_test_add_func("/watch/fields-and-namespaces", test_fields_and_namespaces_select_too);
    g_test_add_func("/watch/initial", test_watch_without_revision_begins_with_what_is_there);
    g_test_add_func("/watch/compacted", test_compacted_watch_is_told_410);
    g_test_add_func("/watch/restarted", test_history_of_an_earlier_run_is_gone);
    g_test_add_func("/watch/bookmarks", test_bookmarks_tell_the_newest_revision);
    g_test_add_func("/watch/forms", test_other_forms_can_be_watched);
    g_test_add_func("/watch/batches", test_large_backlog_comes_in_batches);
    g_test_add_func("/watch/timeouts", test_timeouts);
    return g_test_run();
}
