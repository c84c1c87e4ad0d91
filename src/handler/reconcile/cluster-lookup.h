/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cluster-lookup: asks the API server whether a VMI exists anywhere. DESIGN.md §5.
 *
 * The original watches every VMI of the cluster to answer this; here it costs one LIST of one name
 * (the service account may list, not get). Thread: workers. Blocks: up to 30 s.
 */

#pragma once

#include "lib/json/json.h"
#include "lib/kube/client.h"

/**
 * ch_cluster_lookup_vmi:
 * @out_document: (out) (transfer full): the VMI; NULL: there is none
 *
 * Returns: false when the API server could not be asked
 */
bool ch_cluster_lookup_vmi(ChKubeClient *kube,
                           const char *namespace_,
                           const char *name,
                           ChJson **out_document,
                           GError **error);
