/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/api.h"

#include "local/apiserver/test-support.h"

#define JSON_PATCH      "application/json-patch+json"
#define MERGE_PATCH     "application/merge-patch+json"
#define STRATEGIC_PATCH "application/strategic-merge-patch+json"

static const char *
version_of(const ChJson *object)
{
    return ch_json_string_at(object, "metadata", "resourceVersion");
}

static int64_t
generation_of(const ChJson *object)
{
    int64_t generation = 0;

    (void)ch_json_int_at(object, &generation, "metadata", "generation");
    return generation;
}

static ChJson *
patch(TestApi *t, int code, const char *path, const char *type, const char *body)
{
    return test_call_as(t, code, "PATCH", path, type, NULL, body);
}

/* --- create ----------------------------------------------------------------------------------- */

/* The warnings of an answer, by blank. */
static char *
warnings_of(
    TestApi *t, int code, const char *method, const char *path, const char *type, const char *body)
{
    g_autofree char *text = g_strdelimit(g_strdup(body), "'", '"');
    ChApiRequest request = {.method = method,
                            .path = path,
                            .content_type = type,
                            .body = (const uint8_t *)text,
                            .length = strlen(text)};
    g_auto(ChApiAnswer) answer = {0};
    GString *words = g_string_new(NULL);

    test_ask(t, &request, code, &answer);
    for (guint i = 0; answer.warnings != NULL && i < answer.warnings->len; i++)
        g_string_append_printf(
            words, "%s%s", i > 0 ? " " : "", (const char *)answer.warnings->pdata[i]);
    return g_string_free(words, FALSE);
}

static void
test_unknown_fields_are_warned_of(void)
{
    static const struct {
        int code;
        const char *method, *path, *type, *body, *expect;
    } calls[] = {
        {201, "POST", TEST_VMIS, NULL, TEST_VMI("vm", ",'spc':1"), "spc"},
        {200,
         "PATCH",
         TEST_VMIS "/vm",
         MERGE_PATCH,
         "{'spec':{'domain':{'cpus':{}}}}",
         "spec.domain.cpus spc"},
        {200,
         "PATCH",
         TEST_VMIS "/vm",
         MERGE_PATCH,
         "{'metadata':{'labels':{'a':'b'}}}",
         ""}, /* not the spec */
        {201,
         "POST",
         TEST_VMIS "?fieldValidation=Strict",
         NULL,
         TEST_VMI("strict", ",'spc':1"),
         "spc"},
        {201, "POST", TEST_VMIS "?fieldValidation=Ignore", NULL, TEST_VMI("quiet", ",'spc':1"), ""},
        {201, "POST", TEST_VMIS, NULL, TEST_VMI("good", ""), ""},
    };
    TestApi t;

    test_api_init(&t, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autofree char *path = g_strdup(calls[i].path); /* cut at the query */
        g_autofree char *warnings =
            warnings_of(&t, calls[i].code, calls[i].method, path, calls[i].type, calls[i].body);

        g_assert_cmpstr(warnings, ==, calls[i].expect);
    }
    test_api_clear(&t);
}

static void
test_create_fills_in_metadata(void)
{
    TestApi t;
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChJson) again = NULL;

    test_api_init(&t, NULL);
    vmi = test_call(&t, 201, "POST", TEST_VMIS, TEST_VMI("vm", ",'metadata2':{'x':1.50}"));
    g_assert_cmpstr(ch_json_string_at(vmi, "apiVersion"), ==, "kubevirt.io/v1");
    g_assert_cmpstr(ch_json_string_at(vmi, "kind"), ==, "VirtualMachineInstance");
    g_assert_cmpstr(ch_json_string_at(vmi, "metadata", "namespace"), ==, "default");
    g_assert_cmpstr(
        ch_json_string_at(vmi, "metadata", "creationTimestamp"), ==, "2027-01-15T08:00:00Z");
    g_assert_true(g_uuid_string_is_valid(ch_json_string_at(vmi, "metadata", "uid")));
    g_assert_cmpint(generation_of(vmi), ==, 1);
    again = test_call(&t, 200, "GET", TEST_VMIS "/vm", NULL);
    g_assert_true(ch_json_equal(vmi, again));
    {
        g_autofree char *kept = ch_json_print(ch_json_at(again, "metadata2"), NULL);

        g_assert_cmpstr(kept, ==, "{\"x\":1.50}"); /* unknown, and with its text */
    }
    test_do(&t, 409, "POST", TEST_VMIS, TEST_VMI("vm", ""));
    test_api_clear(&t);
}

static void
test_given_uid_and_status_are_kept_only_when_asked(void)
{
    static const char body[] = "{'metadata':{'name':'m','uid':'u-1'},'spec':{'vmiName':'x'},"
                               "'status':{'phase':'Running'}}";
    const ChApiOptions keep = {.keeps_given = true};
    TestApi t;

    for (int keeps = 0; keeps < 2; keeps++) {
        g_autoptr(ChJson) made = NULL;

        test_api_init(&t, keeps ? &keep : NULL);
        made = test_call(&t, 201, "POST", TEST_MIGRATIONS, body);
        g_assert_cmpint(
            g_strcmp0(ch_json_string_at(made, "metadata", "uid"), "u-1") == 0, ==, keeps);
        g_assert_cmpstr(ch_json_string_at(made, "status", "phase"), ==, keeps ? "Running" : NULL);
        test_api_clear(&t);
    }
}

static const struct Bad {
    const char *path;
    const char *body;
    int code;
    const char *field; /* NULL: no cause */
} bad_bodies[] = {
    {TEST_CONFIGMAPS, "", 400, NULL},
    {TEST_CONFIGMAPS, "{", 400, NULL},
    {TEST_CONFIGMAPS, "[]", 400, NULL},
    {TEST_CONFIGMAPS, "null", 400, NULL},
    {TEST_CONFIGMAPS, "{'metadata':1}", 400, NULL},
    {TEST_CONFIGMAPS, "{'kind':'Pod','metadata':{'name':'x'}}", 400, NULL},
    {TEST_CONFIGMAPS, "{'apiVersion':'v2','metadata':{'name':'x'}}", 400, NULL},
    {TEST_CONFIGMAPS, "{'metadata':{'name':'x','namespace':'other'}}", 400, NULL},
    {TEST_CONFIGMAPS, "{'metadata':{'name':'x','resourceVersion':'1'}}", 400, NULL},
    {TEST_CONFIGMAPS, "{}", 422, "metadata.name"},
    {TEST_CONFIGMAPS, "{'metadata':{'name':'Upper'}}", 422, "metadata.name"},
    {TEST_CONFIGMAPS, "{'metadata':{'name':'a/b'}}", 422, "metadata.name"},
    {TEST_CONFIGMAPS, "{'metadata':{'name':'x','labels':[]}}", 422, "metadata.labels"},
    {TEST_CONFIGMAPS, "{'metadata':{'name':'x','labels':{'a':1}}}", 422, "metadata.labels[a]"},
    {TEST_CONFIGMAPS, "{'metadata':{'name':'x','labels':{'a b':'c'}}}", 422, "metadata.labels"},
    {TEST_CONFIGMAPS, "{'metadata':{'name':'x','labels':{'a':'b c'}}}", 422, "metadata.labels[a]"},
    {TEST_CONFIGMAPS,
     "{'metadata':{'name':'x','finalizers':['a',2]}}",
     422,
     "metadata.finalizers[1]"},
    {"/api/v1/namespaces", "{'metadata':{'name':'a.b'}}", 422, "metadata.name"},
    {"/api/v1/namespaces/none/pods", "{'metadata':{'name':'x'}}", 404, NULL},
};

static void
test_bad_bodies_are_refused_and_not_stored(void)
{
    TestApi t;

    test_api_init(&t, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(bad_bodies); i++) {
        const int64_t before = ch_history_revision(ch_api_peek_history(t.api));
        g_autoptr(ChJson) answer =
            test_call(&t, bad_bodies[i].code, "POST", bad_bodies[i].path, bad_bodies[i].body);
        const ChJson *cause = ch_json_item(ch_json_at(answer, "details", "causes"), 0);

        g_assert_cmpstr(ch_json_string_at(cause, "field"), ==, bad_bodies[i].field);
        g_assert_cmpint(ch_history_revision(ch_api_peek_history(t.api)), ==, before);
    }
    test_api_clear(&t);
}

static void
test_secrets_are_stored_encoded(void)
{
    TestApi t;
    g_autoptr(ChJson) made = NULL;
    g_autoptr(ChJson) after = NULL;

    test_api_init(&t, NULL);
    made = test_call(&t,
                     201,
                     "POST",
                     "/api/v1/namespaces/default/secrets",
                     "{'metadata':{'name':'s'},'data':{'a':'Yg=='},'stringData':{'c':'d'}}");
    g_assert_cmpstr(ch_json_string_at(made, "type"), ==, "Opaque");
    g_assert_cmpstr(ch_json_string_at(made, "data", "a"), ==, "Yg==");
    g_assert_cmpstr(ch_json_string_at(made, "data", "c"), ==, "ZA==");
    g_assert_null(ch_json_at(made, "stringData"));
    after = patch(&t,
                  200,
                  "/api/v1/namespaces/default/secrets/s",
                  STRATEGIC_PATCH,
                  "{'stringData':{'a':'e'}}");
    g_assert_cmpstr(ch_json_string_at(after, "data", "a"), ==, "ZQ==");
    test_api_clear(&t);
}

static void
test_names_are_generated(void)
{
    TestApi t;
    g_autoptr(ChJson) one = NULL;
    g_autoptr(ChJson) two = NULL;
    g_autoptr(ChJson) long_one = NULL;
    g_autofree char *prefix = g_strnfill(100, 'p');
    g_autofree char *body = g_strdup_printf("{'metadata':{'generateName':'%s'}}", prefix);
    const char *name;

    test_api_init(&t, NULL);
    one = test_call(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'generateName':'web-'}}");
    two = test_call(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'generateName':'web-'}}");
    name = ch_json_string_at(one, "metadata", "name");
    g_assert_true(g_str_has_prefix(name, "web-"));
    g_assert_cmpuint(strlen(name), ==, 9);
    g_assert_cmpstr(name, !=, ch_json_string_at(two, "metadata", "name"));
    /* it stays fit for a label */
    long_one = test_call(&t, 201, "POST", TEST_CONFIGMAPS, body);
    g_assert_cmpuint(strlen(ch_json_string_at(long_one, "metadata", "name")), ==, 63);
    test_api_clear(&t);
}

static void
test_dry_run_changes_nothing(void)
{
    TestApi t;
    int64_t before;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS "?dryRun=All", "{'metadata':{'name':'x'}}");
    test_do(&t, 404, "GET", TEST_CONFIGMAPS "/x", NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'x'}}");
    test_do(&t, 201, "POST", "/api/v1/namespaces", "{'metadata':{'name':'n'}}");
    before = ch_history_revision(ch_api_peek_history(t.api));
    test_do(&t,
            200,
            "PUT",
            TEST_CONFIGMAPS "/x?dryRun=All",
            "{'metadata':{'name':'x'},'data':{'a':'b'}}");
    test_do(&t, 200, "DELETE", TEST_CONFIGMAPS "/x?dryRun=All", NULL);
    test_do(&t, 200, "DELETE", TEST_CONFIGMAPS "/x", "{'dryRun':['All']}");
    test_do(&t, 200, "DELETE", "/api/v1/namespaces/n?dryRun=All", NULL);
    g_assert_cmpint(ch_history_revision(ch_api_peek_history(t.api)), ==, before);
    test_do(&t, 200, "GET", TEST_CONFIGMAPS "/x", NULL);
    test_api_clear(&t);
}

/* --- update ----------------------------------------------------------------------------------- */

static void
test_stale_update_is_a_conflict(void)
{
    TestApi t;
    g_autoptr(ChJson) first = NULL;
    g_autoptr(ChJson) second = NULL;
    g_autoptr(ChJson) refused = NULL;
    g_autofree char *stale = NULL;

    test_api_init(&t, NULL);
    first = test_call(&t, 201, "POST", TEST_VMIS, TEST_VMI("vm", ""));
    ch_json_set_string(first, "extra", "1");
    stale = ch_json_print(first, NULL);
    second = test_call(&t, 200, "PUT", TEST_VMIS "/vm", stale);
    g_assert_cmpstr(version_of(second), !=, version_of(first));
    refused = test_call(&t, 409, "PUT", TEST_VMIS "/vm", stale);
    g_assert_cmpstr(ch_json_string_at(refused, "reason"), ==, "Conflict");
    g_assert_cmpstr(ch_json_string_at(refused, "message"),
                    ==,
                    "Operation cannot be fulfilled on virtualmachineinstances.kubevirt.io \"vm\": "
                    "the object has been modified; please apply your changes to the latest version "
                    "and try again");
    g_assert_cmpstr(ch_json_string_at(refused, "details", "group"), ==, "kubevirt.io");
    g_assert_cmpstr(ch_json_string_at(refused, "details", "kind"), ==, "virtualmachineinstances");
    test_api_clear(&t);
}

static void
test_update_must_say_what_it_is_based_on(void)
{
    TestApi t;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_VMIS, TEST_VMI("vm", ""));
    test_do(&t, 422, "PUT", TEST_VMIS "/vm", TEST_VMI("vm", ""));
    test_do(&t, 400, "PUT", TEST_VMIS "/vm", TEST_VMI("other", ""));
    test_do(&t, 404, "PUT", TEST_VMIS "/none", TEST_VMI("none", ""));
    /* kinds of the core group do not ask for it */
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'x'}}");
    test_do(&t, 200, "PUT", TEST_CONFIGMAPS "/x", "{'metadata':{'name':'x'},'data':{'a':'b'}}");
    test_do(&t, 409, "PUT", TEST_CONFIGMAPS "/x", "{'metadata':{'name':'x','uid':'wrong'}}");
    test_api_clear(&t);
}

static void
test_update_without_change_writes_nothing(void)
{
    TestApi t;
    g_autoptr(ChJson) made = NULL;
    g_autoptr(ChJson) same = NULL;
    g_autofree char *text = NULL;
    int64_t before;

    test_api_init(&t, NULL);
    made = test_call(&t, 201, "POST", TEST_VMIS, TEST_VMI("vm", ""));
    before = ch_history_revision(ch_api_peek_history(t.api));
    text = ch_json_print(made, NULL);
    same = test_call(&t, 200, "PUT", TEST_VMIS "/vm", text);
    g_assert_true(ch_json_equal(made, same));
    g_assert_cmpint(ch_history_revision(ch_api_peek_history(t.api)), ==, before);
    test_api_clear(&t);
}

static void
test_server_members_cannot_be_changed(void)
{
    TestApi t;
    g_autoptr(ChJson) made = NULL;
    g_autoptr(ChJson) after = NULL;

    test_api_init(&t, NULL);
    made = test_call(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'x'}}");
    after = patch(&t,
                  200,
                  TEST_CONFIGMAPS "/x",
                  MERGE_PATCH,
                  "{'metadata':{'creationTimestamp':'2000-01-01T00:00:00Z','deletionTimestamp':"
                  "'2000-01-01T00:00:00Z','generation':7}}");
    g_assert_true(ch_json_equal(made, after));
    test_api_clear(&t);
}

static void
test_generation_counts_what_is_wanted(void)
{
    TestApi t;
    g_autoptr(ChJson) label = NULL;
    g_autoptr(ChJson) spec = NULL;
    g_autoptr(ChJson) status = NULL;
    g_autoptr(ChJson) vmi = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_MIGRATIONS, "{'metadata':{'name':'m'},'spec':{'vmiName':'x'}}");
    label = patch(&t, 200, TEST_MIGRATIONS "/m", MERGE_PATCH, "{'metadata':{'labels':{'a':'b'}}}");
    g_assert_cmpint(generation_of(label), ==, 1);
    spec = patch(&t, 200, TEST_MIGRATIONS "/m", MERGE_PATCH, "{'spec':{'vmiName':'y'}}");
    g_assert_cmpint(generation_of(spec), ==, 2);
    status =
        patch(&t, 200, TEST_MIGRATIONS "/m/status", MERGE_PATCH, "{'status':{'phase':'Failed'}}");
    g_assert_cmpint(generation_of(status), ==, 2);
    /* a VMI's status is no subresource: it counts like everything else, as on a cluster */
    test_do(&t, 201, "POST", TEST_VMIS, TEST_VMI("vm", ""));
    vmi = patch(&t, 200, TEST_VMIS "/vm", MERGE_PATCH, "{'status':{'phase':'Pending'}}");
    g_assert_cmpint(generation_of(vmi), ==, 2);
    test_api_clear(&t);
}

static void
test_status_and_the_rest_are_written_apart(void)
{
    TestApi t;
    g_autoptr(ChJson) main = NULL;
    g_autoptr(ChJson) status = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_PODS, "{'metadata':{'name':'p'},'spec':{'nodeName':'n'}}");
    main = patch(&t,
                 200,
                 TEST_PODS "/p",
                 MERGE_PATCH,
                 "{'metadata':{'labels':{'a':'b'}},'status':{'phase':'Running'}}");
    g_assert_cmpstr(ch_json_string_at(main, "status", "phase"), ==, "Pending");
    g_assert_cmpstr(ch_json_string_at(main, "metadata", "labels", "a"), ==, "b");
    status = patch(&t,
                   200,
                   TEST_PODS "/p/status",
                   MERGE_PATCH,
                   "{'metadata':{'labels':{'a':'c'}},'spec':{'nodeName':'m'},"
                   "'status':{'phase':'Running'}}");
    g_assert_cmpstr(ch_json_string_at(status, "status", "phase"), ==, "Running");
    g_assert_cmpstr(ch_json_string_at(status, "metadata", "labels", "a"), ==, "b");
    g_assert_cmpstr(ch_json_string_at(status, "spec", "nodeName"), ==, "n");
    test_api_clear(&t);
}

/* --- patches ---------------------------------------------------------------------------------- */

static void
test_patches_by_their_type(void)
{
    TestApi t;
    g_autoptr(ChJson) a = NULL;
    g_autoptr(ChJson) b = NULL;
    g_autoptr(ChJson) c = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_NODES, "{'metadata':{'name':'n','labels':{'a':'1','b':'2'}}}");
    a = patch(&t,
              200,
              TEST_NODES "/n",
              JSON_PATCH,
              "[{'op':'test','path':'/metadata/labels/a','value':'1'},"
              "{'op':'replace','path':'/metadata/labels','value':{'c':'3'}}]");
    g_assert_null(ch_json_at(a, "metadata", "labels", "a"));
    g_assert_cmpstr(ch_json_string_at(a, "metadata", "labels", "c"), ==, "3");
    b = patch(&t,
              200,
              TEST_NODES "/n",
              MERGE_PATCH "; charset=utf-8",
              "{'metadata':{'labels':{'c':null,'d':'4'}}}");
    g_assert_null(ch_json_at(b, "metadata", "labels", "c"));
    c = patch(&t, 200, TEST_NODES "/n", STRATEGIC_PATCH, "{'metadata':{'labels':{'e':'5'}}}");
    g_assert_cmpstr(ch_json_string_at(c, "metadata", "labels", "d"), ==, "4");
    g_assert_cmpstr(ch_json_string_at(c, "metadata", "labels", "e"), ==, "5");
    test_api_clear(&t);
}

static const struct {
    const char *path;
    const char *type;
    const char *body;
    int code;
} bad_patches[] = {
    {TEST_VMIS "/vm", STRATEGIC_PATCH, "{}", 415},
    {TEST_VMIS "/vm", "application/apply-patch+yaml", "{}", 415},
    {TEST_VMIS "/vm", "application/json", "{}", 415},
    {TEST_VMIS "/vm", NULL, "{}", 415},
    {TEST_VMIS "/vm", JSON_PATCH, "{}", 400},
    {TEST_VMIS "/vm", JSON_PATCH, "[", 400},
    {TEST_VMIS "/vm", JSON_PATCH, "[{'op':'test','path':'/spec/x','value':1}]", 422},
    {TEST_VMIS "/vm", JSON_PATCH, "[{'op':'remove','path':'/spec'}]", 422},
    {TEST_VMIS "/vm", MERGE_PATCH, "[]", 400},
    {TEST_VMIS "/vm", MERGE_PATCH, "{'metadata':{'resourceVersion':'1'}}", 409},
    {TEST_VMIS "/vm", MERGE_PATCH, "{'metadata':{'name':'other'}}", 400},
    {TEST_VMIS "/none", MERGE_PATCH, "{}", 404},
};

static void
test_bad_patches_are_refused(void)
{
    TestApi t;
    int64_t before;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_VMIS, TEST_VMI("vm", ""));
    before = ch_history_revision(ch_api_peek_history(t.api));
    for (gsize i = 0; i < G_N_ELEMENTS(bad_patches); i++)
        ch_json_unref(patch(&t,
                            bad_patches[i].code,
                            bad_patches[i].path,
                            bad_patches[i].type,
                            bad_patches[i].body));
    g_assert_cmpint(ch_history_revision(ch_api_peek_history(t.api)), ==, before);
    test_api_clear(&t);
}

/* --- delete ----------------------------------------------------------------------------------- */

static void
test_finalizers_hold_an_object(void)
{
    TestApi t;
    g_autoptr(ChJson) marked = NULL;
    g_autoptr(ChJson) again = NULL;

    test_api_init(&t, NULL);
    test_do(&t,
            201,
            "POST",
            TEST_VMIS,
            "{'metadata':{'name':'vm','finalizers':['a','b']},'spec':{'domain':{'devices':{}}}}");
    marked = test_call(&t, 200, "DELETE", TEST_VMIS "/vm", NULL);
    g_assert_cmpstr(
        ch_json_string_at(marked, "metadata", "deletionTimestamp"), ==, "2027-01-15T08:00:00Z");
    g_assert_cmpint(generation_of(marked), ==, 2);
    t.now_us += G_USEC_PER_SEC;
    again = test_call(&t, 200, "DELETE", TEST_VMIS "/vm", NULL);
    g_assert_true(ch_json_equal(marked, again)); /* the first deletion counts */
    ch_json_unref(
        patch(&t, 422, TEST_VMIS "/vm", MERGE_PATCH, "{'metadata':{'finalizers':['a','b','c']}}"));
    ch_json_unref(
        patch(&t, 200, TEST_VMIS "/vm", MERGE_PATCH, "{'metadata':{'finalizers':['b']}}"));
    test_do(&t, 200, "GET", TEST_VMIS "/vm", NULL);
    ch_json_unref(patch(&t, 200, TEST_VMIS "/vm", MERGE_PATCH, "{'metadata':{'finalizers':null}}"));
    test_do(&t, 404, "GET", TEST_VMIS "/vm", NULL);
    test_api_clear(&t);
}

static void
test_delete_answers_with_a_status(void)
{
    TestApi t;
    g_autoptr(ChJson) made = NULL;
    g_autoptr(ChJson) status = NULL;

    test_api_init(&t, NULL);
    made = test_call(&t, 201, "POST", TEST_VMIS, TEST_VMI("vm", ""));
    test_do(&t, 409, "DELETE", TEST_VMIS "/vm", "{'preconditions':{'uid':'wrong'}}");
    test_do(&t, 409, "DELETE", TEST_VMIS "/vm", "{'preconditions':{'resourceVersion':'1'}}");
    status = test_call(&t, 200, "DELETE", TEST_VMIS "/vm", "{'kind':'DeleteOptions'}");
    g_assert_cmpstr(ch_json_string_at(status, "status"), ==, "Success");
    g_assert_cmpstr(ch_json_string_at(status, "details", "name"), ==, "vm");
    g_assert_cmpstr(ch_json_string_at(status, "details", "uid"),
                    ==,
                    ch_json_string_at(made, "metadata", "uid"));
    test_do(&t, 404, "DELETE", TEST_VMIS "/vm", NULL);
    test_api_clear(&t);
}

static void
test_pods_get_their_grace_period(void)
{
    TestApi t;
    g_autoptr(ChJson) marked = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_PODS, "{'metadata':{'name':'p'},'spec':{'nodeName':'n'}}");
    marked = test_call(&t, 200, "DELETE", TEST_PODS "/p", NULL);
    g_assert_cmpstr(
        ch_json_string_at(marked, "metadata", "deletionTimestamp"), ==, "2027-01-15T08:00:30Z");
    test_do(&t, 200, "DELETE", TEST_PODS "/p?gracePeriodSeconds=40", NULL);
    test_do(&t, 200, "GET", TEST_PODS "/p", NULL);
    test_do(&t, 200, "DELETE", TEST_PODS "/p", "{'gracePeriodSeconds':0}");
    test_do(&t, 404, "GET", TEST_PODS "/p", NULL);
    /* nobody runs a pod without a node */
    test_do(&t, 201, "POST", TEST_PODS, "{'metadata':{'name':'q'}}");
    test_do(&t, 200, "DELETE", TEST_PODS "/q", NULL);
    test_do(&t, 404, "GET", TEST_PODS "/q", NULL);
    test_api_clear(&t);
}

static void
test_collections_are_deleted_by_selector(void)
{
    TestApi t;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a','labels':{'x':'1'}}}");
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'b','labels':{'x':'2'}}}");
    test_do(&t, 200, "DELETE", TEST_CONFIGMAPS "?labelSelector=x%3d1", NULL);
    test_do(&t, 404, "GET", TEST_CONFIGMAPS "/a", NULL);
    test_do(&t, 200, "GET", TEST_CONFIGMAPS "/b", NULL);
    test_do(&t, 200, "DELETE", TEST_CONFIGMAPS, NULL);
    test_do(&t, 404, "GET", TEST_CONFIGMAPS "/b", NULL);
    test_api_clear(&t);
}

static void
test_namespace_takes_its_objects_along(void)
{
    static const char vmis[] = "/apis/kubevirt.io/v1/namespaces/x/virtualmachineinstances";
    TestApi t;
    g_autoptr(ChJson) refused = NULL;
    g_autoptr(ChJson) marked = NULL;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", "/api/v1/namespaces", "{'metadata':{'name':'x'}}");
    test_do(&t, 201, "POST", "/api/v1/namespaces/x/configmaps", "{'metadata':{'name':'a'}}");
    test_do(&t,
            201,
            "POST",
            vmis,
            "{'metadata':{'name':'vm','finalizers':['f']},'spec':{'domain':{'devices':{}}}}");
    marked = test_call(&t, 200, "DELETE", "/api/v1/namespaces/x", NULL);
    g_assert_cmpstr(ch_json_string_at(marked, "status", "phase"), ==, "Terminating");
    test_do(&t, 404, "GET", "/api/v1/namespaces/x/configmaps/a", NULL);
    refused =
        test_call(&t, 403, "POST", "/api/v1/namespaces/x/configmaps", "{'metadata':{'name':'b'}}");
    g_assert_cmpstr(ch_json_string_at(refused, "details", "name"), ==, "b");
    ch_json_unref(patch(&t,
                        200,
                        "/apis/kubevirt.io/v1/namespaces/x/virtualmachineinstances/vm",
                        MERGE_PATCH,
                        "{'metadata':{'finalizers':[]}}"));
    test_do(&t, 404, "GET", "/api/v1/namespaces/x", NULL); /* the last one is gone */
    test_do(&t, 201, "POST", "/api/v1/namespaces", "{'metadata':{'name':'x'}}");
    test_do(&t, 200, "DELETE", "/api/v1/namespaces/x", NULL);
    test_do(&t, 404, "GET", "/api/v1/namespaces/x", NULL);
    test_api_clear(&t);
}

static void
test_default_namespace_stays(void)
{
    TestApi t;

    test_api_init(&t, NULL);
    test_do(&t, 403, "DELETE", "/api/v1/namespaces/default", NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a'}}");
    test_api_clear(&t);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void
test_patches_let_no_object_grow_for_ever(void)
{
    g_autofree char *much = g_strnfill(CH_API_MAX_BODY / 2, 'x');
    TestApi t;

    test_api_init(&t, NULL);
    test_do(&t, 201, "POST", TEST_CONFIGMAPS, "{'metadata':{'name':'a'}}");
    for (int i = 0; i < 2; i++) {
        g_autofree char *body = g_strdup_printf("{'data':{'k%d':'%s'}}", i, much);
        g_autoptr(ChJson) answer =
            patch(&t, i == 0 ? 200 : 413, TEST_CONFIGMAPS "/a", MERGE_PATCH, body);

        if (i > 0)
            g_assert_cmpstr(ch_json_string_at(answer, "reason"), ==, "RequestEntityTooLarge");
    }
    test_api_clear(&t);
}

/* @field: of an object's metadata, with @n times @item */
static ChJson *
post_many(TestApi *t, int code, const char *field, guint n, const char *item)
{
    g_autoptr(GString) body = g_string_new(NULL);

    g_string_printf(body, "{'metadata':{'name':'many','%s':[", field);
    for (guint i = 0; i < n; i++)
        g_string_append_printf(body, "%s%s", i > 0 ? "," : "", item);
    g_string_append(body, "]}}");
    return test_call(t, code, "POST", TEST_CONFIGMAPS, body->str);
}

static void
test_long_lists_and_many_errors_are_cut_short(void)
{
    TestApi t;
    g_autoptr(ChJson) many = NULL;
    g_autoptr(ChJson) wrong = NULL;
    const ChJson *causes;

    test_api_init(&t, NULL);
    many = post_many(&t, 422, "finalizers", 2000, "'a/b'");
    causes = ch_json_at(many, "details", "causes");
    g_assert_cmpstr(ch_json_string_at(ch_json_item(causes, 0), "reason"), ==, "FieldValueTooMany");
    wrong = post_many(&t, 422, "ownerReferences", 1000, "{}");
    g_assert_cmpuint(ch_json_length(ch_json_at(wrong, "details", "causes")), ==, 64);
    test_api_clear(&t);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api/create/metadata", test_create_fills_in_metadata);
    g_test_add_func("/api/create/unknown-fields-are-warned-of", test_unknown_fields_are_warned_of);
    g_test_add_func("/api/create/keep-given", test_given_uid_and_status_are_kept_only_when_asked);
    g_test_add_func("/api/create/bad-bodies", test_bad_bodies_are_refused_and_not_stored);
    g_test_add_func("/api/create/secrets", test_secrets_are_stored_encoded);
    g_test_add_func("/api/create/generate-name", test_names_are_generated);
    g_test_add_func("/api/dry-run", test_dry_run_changes_nothing);
    g_test_add_func("/api/update/conflict", test_stale_update_is_a_conflict);
    g_test_add_func("/api/update/base", test_update_must_say_what_it_is_based_on);
    g_test_add_func("/api/update/no-change", test_update_without_change_writes_nothing);
    g_test_add_func("/api/update/server-members", test_server_members_cannot_be_changed);
    g_test_add_func("/api/update/generation", test_generation_counts_what_is_wanted);
    g_test_add_func("/api/update/status", test_status_and_the_rest_are_written_apart);
    g_test_add_func("/api/patch/types", test_patches_by_their_type);
    g_test_add_func("/api/patch/bad", test_bad_patches_are_refused);
    g_test_add_func("/api/delete/finalizers", test_finalizers_hold_an_object);
    g_test_add_func("/api/delete/status", test_delete_answers_with_a_status);
    g_test_add_func("/api/delete/pods", test_pods_get_their_grace_period);
    g_test_add_func("/api/delete/collection", test_collections_are_deleted_by_selector);
    g_test_add_func("/api/delete/namespace", test_namespace_takes_its_objects_along);
    g_test_add_func("/api/delete/default-namespace", test_default_namespace_stays);
    g_test_add_func("/api/limits/growth", test_patches_let_no_object_grow_for_ever);
    g_test_add_func("/api/limits/lists", test_long_lists_and_many_errors_are_cut_short);
    return g_test_run();
}
