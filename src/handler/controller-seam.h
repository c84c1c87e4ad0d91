/* SPDX-License-Identifier: Apache-2.0 */

/*
 * controller-seam: where the controller's snapshots come from: the caches of watch/.
 *
 * Fills ChReconcileSeam, so that reconcile/ does not know watch/. Thread: the loop's.
 */

#pragma once

#include "handler/reconcile/controller.h"
#include "handler/watch/cluster-watch.h"
#include "handler/watch/domain-store.h"
#include "handler/watch/plugin-watch.h"

/* The seam's data; all borrowed. */
typedef struct {
    ChInformer *vmis; /* of this node */
    ChDomainStore *domains;
    ChClusterWatch *cluster;
    ChPluginWatch *plugins;
} ChControllerSeamData;

extern const ChReconcileSeam ch_controller_seam;
