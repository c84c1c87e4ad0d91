/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-addresses: what the network set-up noted of a VMI's pod, as an observation for the status.
 *
 * Thread: workers. Blocks: for the disk. Spec: 04 §20 step 4.
 */

#pragma once

#include "handler/reconcile/status.h"

typedef struct ChPodAddressList ChPodAddressList;

/* (transfer full): of the interfaces in the spec that have any. What cannot be read counts as
 * empty, as it does for the Go agent. @vmi is borrowed and outlives the result. */
ChPodAddressList *ch_pod_address_list_load(const char *private_dir, const ChJson *vmi);
void ch_pod_address_list_free(ChPodAddressList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChPodAddressList, ch_pod_address_list_free)

/* Borrowed. */
const ChPodAddresses *ch_pod_address_list_peek(const ChPodAddressList *list, gsize *out_n);
