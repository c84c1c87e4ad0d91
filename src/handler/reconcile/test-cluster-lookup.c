/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/cluster-lookup.h"

#include "lib/base/errors.h"
#include "lib/kube/test-server.h"

#include <stdatomic.h>

#define ITEM(name)  "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"u\"}}"
#define LIST(items) "{\"kind\":\"VirtualMachineInstanceList\",\"items\":[" items "]}"

/* What comes back, and what it says about the VMI: only a list of VMIs can say that it is gone. */
static const struct LookupCase {
    const char *path;
    int status;
    const char *answer;
    bool expect_ok, expect_found;
} cases[] = {
    {"/cluster-lookup/found", 200, LIST(ITEM("vm")), true, true},
    {"/cluster-lookup/gone", 200, LIST(""), true, false},
    {"/cluster-lookup/no-items", 200, "{\"kind\":\"VirtualMachineInstanceList\"}", true, false},
    {"/cluster-lookup/selector-overlooked", 200, LIST(ITEM("other") "," ITEM("vm")), true, true},
    {"/cluster-lookup/only-others", 200, LIST(ITEM("other")), true, false},
    {"/cluster-lookup/another-kind", 200, "{\"kind\":\"PodList\",\"items\":[]}", false, false},
    {"/cluster-lookup/no-kind", 200, "{\"items\":[]}", false, false},
    {"/cluster-lookup/items-are-none",
     200,
     "{\"kind\":\"VirtualMachineInstanceList\",\"items\":{}}",
     false,
     false},
    {"/cluster-lookup/no-json", 200, "<html>Sign in</html>", false, false},
    {"/cluster-lookup/not-found", 404, "{\"kind\":\"Status\",\"code\":404}", false, false},
    {"/cluster-lookup/forbidden", 403, "{\"kind\":\"Status\",\"code\":403}", false, false},
};

typedef struct {
    ChLoop *loop;
    TestServer server;
    ChKubeClient *client;
    int status;
    const char *answer;
    char *target; /* owned: of the last request */

    const char *namespace_, *name;
    atomic_bool is_done;
    bool is_ok;
    ChJson *document;
    GError *error;
} Lookup;

static void
serve(gpointer data, TestRequest *request)
{
    Lookup *lookup = data;

    g_free(lookup->target);
    lookup->target = g_strdup(request->target);
    test_reply(request->bev, lookup->status, NULL, lookup->answer);
}

static gpointer
look_up(gpointer data) /* as a worker does */
{
    Lookup *lookup = data;

    lookup->is_ok = ch_cluster_lookup_vmi(
        lookup->client, lookup->namespace_, lookup->name, &lookup->document, &lookup->error);
    atomic_store(&lookup->is_done, true);
    return NULL;
}

static void
run(Lookup *lookup)
{
    GThread *worker;

    lookup->loop = ch_loop_new();
    test_server_init(&lookup->server, lookup->loop, serve, lookup);
    lookup->client = test_client_new(lookup->loop, &lookup->server, NULL);
    worker = g_thread_new("worker", look_up, lookup);
    test_wait_until(lookup->loop, atomic_load(&lookup->is_done));
    g_thread_join(worker);
}

static void
lookup_clear(Lookup *lookup)
{
    ch_kube_client_free(lookup->client);
    test_server_clear(&lookup->server);
    ch_loop_free(lookup->loop);
    ch_json_unref(lookup->document);
    g_clear_error(&lookup->error);
    g_free(lookup->target);
}

static void
test_answer(gconstpointer data)
{
    const struct LookupCase *c = data;
    Lookup lookup = {.status = c->status, .answer = c->answer, .namespace_ = "ns", .name = "vm"};

    run(&lookup);
    g_assert_cmpstr(lookup.target,
                    ==,
                    "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances?"
                    "fieldSelector=metadata.name%3Dvm");
    g_assert_true(lookup.is_ok == c->expect_ok);
    g_assert_true((lookup.error == NULL) == c->expect_ok);
    g_assert_true((lookup.document != NULL) == c->expect_found);
    if (c->expect_found) { /* as the watch gives them */
        g_assert_cmpstr(ch_json_string_at(lookup.document, "metadata", "name"), ==, "vm");
        g_assert_cmpstr(ch_json_string_at(lookup.document, "kind"), ==, "VirtualMachineInstance");
    }
    lookup_clear(&lookup);
}

/* Keys can come from launchers. */
static void
test_odd_names(void)
{
    Lookup odd = {.status = 200, .answer = LIST(""), .namespace_ = "a/../b", .name = "c?d=e&f"};
    Lookup empty = {.namespace_ = "", .name = ""};

    run(&odd);
    g_assert_true(odd.is_ok);
    g_assert_cmpstr(odd.target,
                    ==,
                    "/apis/kubevirt.io/v1/namespaces/a%2F..%2Fb/virtualmachineinstances?"
                    "fieldSelector=metadata.name%3Dc%3Fd%3De%26f");
    lookup_clear(&odd);
    run(&empty);
    g_assert_true(empty.is_ok);
    g_assert_null(empty.target); /* no VMI has such a key: nobody is asked */
    lookup_clear(&empty);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_answer);
    g_test_add_func("/cluster-lookup/odd-names", test_odd_names);
    return g_test_run();
}
