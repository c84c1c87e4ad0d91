/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/plugin-watch.h"

#include "lib/kube/test-server.h"

#define PLUGIN(name)                                                                               \
    "{\"apiVersion\":\"plugin.kubevirt.io/"                                                        \
    "v1alpha1\",\"kind\":\"Plugin\",\"metadata\":{\"name\":\"" name "\",\"uid\":\"" name           \
    "\",\"resourceVersion\":\"1\"}}"

#define HOOKED(name)                                                                               \
    "{\"apiVersion\":\"plugin.kubevirt.io/"                                                        \
    "v1alpha1\",\"kind\":\"Plugin\",\"metadata\":{\"name\":\"" name "\",\"uid\":\"" name           \
    "\",\"resourceVersion\":\"2\"},\"spec\":{\"nodeHooks\":[{\"socket\":\"/s\"}]}}"

typedef struct {
    ChLoop *loop;
    TestServer server;
    ChKubeClient *client;
    ChPluginWatch *watch;
    struct bufferevent *stream; /* the open watch */
    const char *items;
    guint n_synced;
} Fixture;

static void
serve(gpointer data, TestRequest *request)
{
    Fixture *f = data;
    g_autofree char *list = g_strdup_printf(
        "{\"kind\":\"PluginList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[%s]}",
        f->items);

    g_assert_true(g_str_has_prefix(request->target, "/apis/plugin.kubevirt.io/v1alpha1/plugins?"));
    if (strstr(request->target, "watch=true") == NULL) {
        test_reply(request->bev, 200, NULL, list);
        return;
    }
    f->stream = request->bev;
    test_stream_begin(f->stream);
}

static void
on_synced(gpointer data)
{
    ((Fixture *)data)->n_synced++;
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->loop = ch_loop_new();
    f->items = PLUGIN("b") "," PLUGIN("a");
    test_server_init(&f->server, f->loop, serve, f);
    f->client = test_client_new(f->loop, &f->server, NULL);
    f->watch = ch_plugin_watch_new(f->client, 0, on_synced, f);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_plugin_watch_free(f->watch);
    ch_kube_client_free(f->client);
    test_server_clear(&f->server);
    ch_loop_free(f->loop);
}

static void
set_gate(Fixture *f, bool is_on)
{
    g_autoptr(ChJson) kubevirt =
        ch_json_parse("{\"spec\":{\"configuration\":{\"developerConfiguration\":{"
                      "\"featureGates\":[\"Plugins\"]}}}}",
                      -1,
                      NULL);
    g_autoptr(ChClusterConfig) config =
        is_on ? ch_cluster_config_parse(kubevirt, "node01", NULL) : ch_cluster_config_new_default();

    ch_plugin_watch_configure(f->watch, config);
}

static void
assert_list(Fixture *f, const char *expect)
{
    g_autoptr(GBytes) list = ch_plugin_watch_list(f->watch);
    g_autofree char *text =
        list != NULL ? g_strndup(g_bytes_get_data(list, NULL), g_bytes_get_size(list)) : NULL;

    g_assert_cmpstr(text, ==, expect);
}

static bool
has(Fixture *f, const char *text)
{
    g_autoptr(GBytes) list = ch_plugin_watch_list(f->watch);
    g_autofree char *json =
        list != NULL ? g_strndup(g_bytes_get_data(list, NULL), g_bytes_get_size(list)) : NULL;

    return json != NULL && strstr(json, text) != NULL;
}

/* Nothing is asked for while the gate is off. */
static void
test_gate(Fixture *f, gconstpointer data)
{
    set_gate(f, false);
    g_assert_true(ch_plugin_watch_is_ready(f->watch));
    test_wait_us(f->loop, 1000);
    g_assert_cmpuint(f->server.n_requests, ==, 0);
    assert_list(f, NULL);
    set_gate(f, true);
    g_assert_false(ch_plugin_watch_is_ready(f->watch));
    test_wait_until(f->loop, f->n_synced == 1);
    g_assert_true(ch_plugin_watch_is_ready(f->watch));
    assert_list(f, "[" PLUGIN("a") "," PLUGIN("b") "]");
    set_gate(f, false);
    assert_list(f, NULL);
}

static void
test_change(Fixture *f, gconstpointer data)
{
    set_gate(f, true);
    test_wait_until(f->loop, f->n_synced == 1 && f->stream != NULL);
    assert_list(f, "[" PLUGIN("a") "," PLUGIN("b") "]");
    test_stream_chunk(f->stream, "{\"type\":\"DELETED\",\"object\":" PLUGIN("a") "}\n");
    test_stream_chunk(f->stream, "{\"type\":\"ADDED\",\"object\":" PLUGIN("c") "}\n");
    test_wait_until(f->loop, has(f, "\"c\""));
    assert_list(f, "[" PLUGIN("b") "," PLUGIN("c") "]");
    test_stream_chunk(f->stream, "{\"type\":\"DELETED\",\"object\":" PLUGIN("b") "}\n");
    test_stream_chunk(f->stream, "{\"type\":\"DELETED\",\"object\":" PLUGIN("c") "}\n");
    test_wait_until(f->loop, !has(f, ""));
}

/* What is not done for a plugin is said, once. */
static void
test_node_hooks_are_named(void)
{
    if (g_test_subprocess()) {
        Fixture f = {0};

        set_up(&f, NULL);
        f.items = HOOKED("a") "," PLUGIN("b");
        set_gate(&f, true);
        test_wait_until(f.loop, f.n_synced == 1 && f.stream != NULL);
        test_stream_chunk(f.stream, "{\"type\":\"MODIFIED\",\"object\":" HOOKED("a") "}\n");
        test_stream_chunk(f.stream, "{\"type\":\"MODIFIED\",\"object\":" HOOKED("b") "}\n");
        test_stream_chunk(f.stream, "{\"type\":\"DELETED\",\"object\":" HOOKED("a") "}\n");
        test_wait_until(f.loop, has(&f, "nodeHooks") && !has(&f, "\"a\""));
        tear_down(&f, NULL);
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*node hooks of plugin a:*node hooks of plugin b:*");
    g_test_trap_assert_stderr_unmatched(
        "*node hooks of plugin*node hooks of plugin*node hooks of*");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/plugin-watch/gate", Fixture, NULL, set_up, test_gate, tear_down);
    g_test_add("/plugin-watch/change", Fixture, NULL, set_up, test_change, tear_down);
    g_test_add_func("/plugin-watch/node-hooks-are-named", test_node_hooks_are_named);
    return g_test_run();
}
