/* SPDX-License-Identifier: Apache-2.0 */

/*
 * informer: list and watch of one collection, kept as text. Spec 01 §3 (list/watch), §4 (store,
 * fan-out), §5.
 *
 * The store keeps each object's JSON text without metadata.managedFields, never a tree; lists are
 * parsed item by item while they arrive. An object that a new list repeats unchanged is kept, not
 * replaced by an equal one, and reported as an update of itself. Handlers run on the loop's thread,
 * after the store was changed. Thread: the loop's, look-ups too; a worker is given a reference to
 * an object.
 */

#pragma once

#include "lib/kube/client.h"
#include "lib/kube/object.h"

typedef struct ChInformer ChInformer;

typedef struct {
    const char *name;        /* the factory key, for the log: "vmiInformer-sources" */
    const char *path;        /* "/apis/kubevirt.io/v1/virtualmachineinstances" */
    const char *api_version; /* filled into objects that lack them: "kubevirt.io/v1" */
    const char *kind;
    const char *label_selector; /* (nullable) not encoded: "kubevirt.io/nodeName in (node01)" */
    const char *field_selector; /* (nullable) */
    int64_t resync_us;          /* 0: never */
    bool metadata_only;         /* ask for PartialObjectMetadata; servers may ignore it */
    /* (nullable) keeps less of each object: edits it before it is cached; must leave metadata's
     * name, namespace, uid and resourceVersion alone */
    void (*trim)(ChJson *object);
} ChInformerSpec; /* strings are copied */

/* All nullable. A handler may read the informer, but not free it. */
typedef struct {
    void (*on_add)(gpointer data, ChObject *object);
    void (*on_update)(gpointer data,
                      ChObject *old_object,
                      ChObject *object); /* the same object twice on resync */
    void (*on_delete)(gpointer data, ChObject *last);
    void (*on_synced)(gpointer data); /* once: the first list is applied */
} ChInformerHandlers;

/* @client must outlive it. */
ChInformer *ch_informer_new(ChKubeClient *client,
                            const ChInformerSpec *spec,
                            const ChInformerHandlers *handlers,
                            gpointer data);
void ch_informer_start(ChInformer *informer);
void ch_informer_free(ChInformer *informer); /* stops; no handler runs any more */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChInformer, ch_informer_free)
bool ch_informer_has_synced(const ChInformer *informer);
ChObject *ch_informer_lookup(const ChInformer *informer,
                             const char *key); /* borrowed, NULL when not there */
gsize ch_informer_count(const ChInformer *informer);
void ch_informer_foreach(const ChInformer *informer,
                         void (*func)(gpointer data, ChObject *object),
                         gpointer data);
