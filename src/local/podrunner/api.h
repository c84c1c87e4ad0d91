/* SPDX-License-Identifier: Apache-2.0 */

/*
 * api: the few requests that the pod runner makes besides its watches.
 *
 * Writes return the object as stored. Thread: a worker's. Blocks: CH_API_TIMEOUT_US at most.
 */

#pragma once

#include "lib/json/json.h"
#include "lib/kube/client.h"

#define CH_API_TIMEOUT_US (15 * G_GINT64_CONSTANT(1000000))

/* All: (transfer full), NULL with CH_KUBE_ERROR or CH_HTTP_ERROR. */
ChJson *ch_api_get_kubevirt(ChKubeClient *kube, GError **error); /* the cluster's configuration */
/* The NetworkAttachmentDefinition; both names are DNS subdomains. */
ChJson *
ch_api_get_network(ChKubeClient *kube, const char *namespace_, const char *name, GError **error);
/* The PersistentVolumeClaim. */
ChJson *
ch_api_get_claim(ChKubeClient *kube, const char *namespace_, const char *name, GError **error);
ChJson *ch_api_put_claim_status(ChKubeClient *kube, const ChJson *claim, GError **error);
ChJson *
ch_api_get_pod(ChKubeClient *kube, const char *namespace_, const char *name, GError **error);
ChJson *ch_api_put_vmi(ChKubeClient *kube, const ChJson *vmi, GError **error);
ChJson *ch_api_create_pod(ChKubeClient *kube, const ChJson *pod, GError **error);
/* @value: NULL: without this annotation */
ChJson *ch_api_annotate_pod(
    ChKubeClient *kube, const ChJson *pod, const char *key, const char *value, GError **error);
ChJson *ch_api_put_pod_status(ChKubeClient *kube, const ChJson *pod, GError **error);

/* @now: without grace. True also when it is gone already. */
bool ch_api_delete_pod(
    ChKubeClient *kube, const char *namespace_, const char *name, bool now, GError **error);

bool ch_api_is_not_found(const GError *error);
/* The write was refused because the cache is behind. */
bool ch_api_is_conflict(const GError *error);
