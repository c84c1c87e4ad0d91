/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/plugin-watch.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/kube/informer.h"

#define INFORMER "pluginInformer"

struct ChPluginWatch {
    ChInformer *informer;
    bool is_wanted, is_started;
    GBytes *list; /* owned (nullable): as it was last asked for */
    void (*on_synced)(gpointer data);
    gpointer data;
};

static void
drop_list(ChPluginWatch *watch)
{
    g_clear_pointer(&watch->list, g_bytes_unref);
}

static bool
has_hooks(const ChObject *plugin)
{
    g_autoptr(ChJson) json = ch_json_parse(plugin->text, (gssize)plugin->length, NULL);

    return ch_json_length(ch_json_at(json, "spec", "nodeHooks")) > 0;
}

static void
on_add(gpointer data, ChObject *plugin)
{
    drop_list(data);
    if (has_hooks(plugin))
        ch_log_warning(
            NULL, NULL, "ignoring the node hooks of plugin %s: they are not run yet", plugin->key);
}

static void
on_update(gpointer data, ChObject *old_plugin, ChObject *plugin)
{
    drop_list(data);
    if (has_hooks(plugin) && !has_hooks(old_plugin))
        on_add(data, plugin);
}

static void
on_delete(gpointer data, ChObject *plugin)
{
    drop_list(data);
}

static void
on_synced(gpointer data)
{
    ChPluginWatch *watch = data;

    watch->on_synced(watch->data);
}

static const ChInformerHandlers handlers = {on_add, on_update, on_delete, on_synced};

ChPluginWatch *
ch_plugin_watch_new(ChKubeClient *client,
                    int64_t resync_us,
                    void (*synced)(gpointer data),
                    gpointer data)
{
    ChPluginWatch *watch = g_new0(ChPluginWatch, 1);

    watch->on_synced = synced;
    watch->data = data;
    watch->informer =
        ch_informer_new(client,
                        &(ChInformerSpec){.name = INFORMER,
                                          .path = "/apis/plugin.kubevirt.io/v1alpha1/plugins",
                                          .api_version = "plugin.kubevirt.io/v1alpha1",
                                          .kind = "Plugin",
                                          .resync_us = resync_us},
                        &handlers,
                        watch);
    return watch;
}

void
ch_plugin_watch_free(ChPluginWatch *watch)
{
    if (watch == NULL)
        return;
    ch_informer_free(watch->informer);
    drop_list(watch);
    g_free(watch);
}

void
ch_plugin_watch_configure(ChPluginWatch *watch, const ChClusterConfig *config)
{
    watch->is_wanted = ch_cluster_config_has_gate(config, "Plugins");
    if (!watch->is_wanted || watch->is_started)
        return;
    watch->is_started = true;
    ch_log_info(NULL, "STARTING informer " INFORMER);
    ch_informer_start(watch->informer);
}

bool
ch_plugin_watch_is_ready(const ChPluginWatch *watch)
{
    return !watch->is_wanted || ch_informer_has_synced(watch->informer);
}

static void
collect(gpointer data, ChObject *plugin)
{
    g_ptr_array_add(data, plugin);
}

static int
compare_keys(gconstpointer a, gconstpointer b)
{
    const ChObject *const *left = a;
    const ChObject *const *right = b;

    return strcmp((*left)->key, (*right)->key);
}

static GBytes *
print_list(const ChInformer *informer)
{
    g_autoptr(GPtrArray) plugins = g_ptr_array_new();
    GString *json = g_string_new("[");

    ch_informer_foreach(informer, collect, plugins);
    g_ptr_array_sort(plugins, compare_keys);
    for (guint i = 0; i < plugins->len; i++) {
        const ChObject *plugin = plugins->pdata[i];

        if (i > 0)
            g_string_append_c(json, ',');
        g_string_append_len(json, plugin->text, (gssize)plugin->length);
    }
    g_string_append_c(json, ']');
    return g_string_free_to_bytes(json);
}

GBytes *
ch_plugin_watch_list(ChPluginWatch *watch)
{
    if (!watch->is_wanted || ch_informer_count(watch->informer) == 0)
        return NULL;
    if (watch->list == NULL)
        watch->list = print_list(watch->informer);
    return g_bytes_ref(watch->list);
}
