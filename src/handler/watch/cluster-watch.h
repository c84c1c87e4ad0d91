/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cluster-watch: the KubeVirt objects of the cluster, and who wants to know of their changes. Spec
 * 08 §6. What they mean is config-keeper's.
 *
 * Thread: the loop's.
 */

#pragma once

#include "handler/config/config-keeper.h"
#include "lib/kube/informer.h"

typedef struct ChClusterWatch ChClusterWatch;

/* Runs on every change of any KubeVirt object, also where nothing that it says is new (spec 08
 * §6.5): cheap and idempotent. */
typedef void (*ChClusterFunc)(gpointer data, ChClusterConfig *config);

/**
 * ch_cluster_watch_new:
 * @client: must outlive it
 * @own_namespace: the agent's
 * @on_synced: once, when the first list is there and the configuration with it
 */
ChClusterWatch *ch_cluster_watch_new(ChKubeClient *client,
                                     const char *own_namespace,
                                     const char *node_name,
                                     int64_t resync_us,
                                     void (*on_synced)(gpointer data),
                                     gpointer data);
void ch_cluster_watch_free(ChClusterWatch *watch); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChClusterWatch, ch_cluster_watch_free)

/* Before the start. @func runs at once for the first time, with the defaults. */
void ch_cluster_watch_subscribe(ChClusterWatch *watch, ChClusterFunc func, gpointer data);
void ch_cluster_watch_start(ChClusterWatch *watch);
bool ch_cluster_watch_has_synced(const ChClusterWatch *watch);

/* Borrowed until the loop's next turn. */
ChClusterConfig *ch_cluster_watch_peek(const ChClusterWatch *watch);
