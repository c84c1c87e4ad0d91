/* SPDX-License-Identifier: Apache-2.0 */

/*
 * plugin-watch: the cluster's Plugin objects as launchers get them. Spec 01 §24.2, 07 §10.1
 *
 * Watched only from the first time on that the gate is on: the kind need not exist where nobody
 * uses it. Thread: the loop's.
 */

#pragma once

#include "handler/config/cluster-config.h"
#include "lib/kube/client.h"

typedef struct ChPluginWatch ChPluginWatch;

/* @on_synced: once, when the list is there. @client must outlive it. */
ChPluginWatch *ch_plugin_watch_new(ChKubeClient *client,
                                   int64_t resync_us,
                                   void (*on_synced)(gpointer data),
                                   gpointer data);
void ch_plugin_watch_free(ChPluginWatch *watch); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChPluginWatch, ch_plugin_watch_free)

/* The gate may have changed. */
void ch_plugin_watch_configure(ChPluginWatch *watch, const ChClusterConfig *config);
/* Whether all is known that the gate asks for. */
bool ch_plugin_watch_is_ready(const ChPluginWatch *watch);
/* (transfer full) (nullable): a JSON array, ordered by name; NULL: gate off, or no plugins */
GBytes *ch_plugin_watch_list(ChPluginWatch *watch);
