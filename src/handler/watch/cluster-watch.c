/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/cluster-watch.h"

#include "lib/base/log.h"

#define INFORMER "kubeVirtInformer"

typedef struct {
    ChClusterFunc func;
    gpointer data;
} Subscriber;

struct ChClusterWatch {
    ChInformer *informer;
    ChConfigKeeper *keeper;
    GArray *subscribers; /* Subscriber */
    void (*on_synced)(gpointer data);
    gpointer data;
};

static void
add_document(gpointer data, ChObject *object)
{
    g_autoptr(GError) error = NULL;
    ChJson *json = ch_json_parse(object->text, (gssize)object->length, &error);

    if (json != NULL)
        g_ptr_array_add(data, json);
    else
        ch_log_error(NULL, error, "Ignoring KubeVirt '%s', which cannot be read", object->key);
}

static void
free_document(gpointer json)
{
    ch_json_unref(json);
}

static void
look(ChClusterWatch *watch)
{
    g_autoptr(GPtrArray) kubevirts = g_ptr_array_new_with_free_func(free_document);
    g_autoptr(GError) error = NULL;

    ch_informer_foreach(watch->informer, add_document, kubevirts);
    switch (ch_config_keeper_look(watch->keeper, kubevirts, &error)) {
    case CH_CONFIG_UNCHANGED:
        break;
    case CH_CONFIG_UPDATED:
        ch_log_info(NULL,
                    "Updating cluster config from KubeVirt to resource version '%s'",
                    ch_config_keeper_peek(watch->keeper)->resource_version);
        break;
    case CH_CONFIG_REFUSED:
        ch_log_error(NULL,
                     error,
                     "Invalid cluster config using KubeVirt resource version '%s', falling back to "
                     "last good resource version '%s'",
                     ch_config_keeper_refused_version(watch->keeper),
                     ch_config_keeper_peek(watch->keeper)->resource_version);
        break;
    }
}

static void
tell(const ChClusterWatch *watch, const Subscriber *subscriber)
{
    subscriber->func(subscriber->data, ch_config_keeper_peek(watch->keeper));
}

static void
on_add(gpointer data, ChObject *object)
{
    ChClusterWatch *watch = data;

    look(watch);
    for (guint i = 0; i < watch->subscribers->len; i++)
        tell(watch, &g_array_index(watch->subscribers, Subscriber, i));
}

static void
on_update(gpointer data, ChObject *old_object, ChObject *object)
{
    on_add(data, object);
}

static void
on_delete(gpointer data, ChObject *last)
{
    /* The last good configuration stays in force. */
}

static void
on_synced(gpointer data)
{
    ChClusterWatch *watch = data;

    watch->on_synced(watch->data);
}

ChClusterWatch *
ch_cluster_watch_new(ChKubeClient *client,
                     const char *own_namespace,
                     const char *node_name,
                     int64_t resync_us,
                     void (*synced)(gpointer data),
                     gpointer data)
{
    static const ChInformerHandlers handlers = {on_add, on_update, on_delete, on_synced};
    ChClusterWatch *watch = g_new0(ChClusterWatch, 1);

    watch->keeper = ch_config_keeper_new(own_namespace, node_name);
    watch->subscribers = g_array_new(FALSE, FALSE, sizeof(Subscriber));
    watch->on_synced = synced;
    watch->data = data;
    watch->informer = ch_informer_new(client,
                                      &(ChInformerSpec){.name = INFORMER,
                                                        .path = "/apis/kubevirt.io/v1/kubevirts",
                                                        .api_version = "kubevirt.io/v1",
                                                        .kind = "KubeVirt",
                                                        .resync_us = resync_us},
                                      &handlers,
                                      watch);
    return watch;
}

void
ch_cluster_watch_free(ChClusterWatch *watch)
{
    if (watch == NULL)
        return;
    ch_informer_free(watch->informer);
    ch_config_keeper_free(watch->keeper);
    g_array_unref(watch->subscribers);
    g_free(watch);
}

void
ch_cluster_watch_subscribe(ChClusterWatch *watch, ChClusterFunc func, gpointer data)
{
    const Subscriber subscriber = {func, data};

    g_array_append_val(watch->subscribers, subscriber);
    tell(watch, &subscriber);
}

void
ch_cluster_watch_start(ChClusterWatch *watch)
{
    ch_log_info(NULL, "STARTING informer %s", INFORMER);
    ch_informer_start(watch->informer);
}

bool
ch_cluster_watch_has_synced(const ChClusterWatch *watch)
{
    return ch_informer_has_synced(watch->informer);
}

ChClusterConfig *
ch_cluster_watch_peek(const ChClusterWatch *watch)
{
    return ch_config_keeper_peek(watch->keeper);
}
