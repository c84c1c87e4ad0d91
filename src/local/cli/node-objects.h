/* SPDX-License-Identifier: Apache-2.0 */

/*
 * node-objects: what a cluster has before its first VM: the node, KubeVirt's configuration.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

typedef struct {
    const char *name;
    const char *architecture; /* Go's name */
    const char *kernel, *os_image, *machine_id;
    int64_t n_cpus;
    int64_t memory_kib;
} ChNodeFacts;

/* All (transfer full). */
ChJson *ch_node_object_new(const ChNodeFacts *facts, int64_t wall_us);
ChJson *ch_namespace_object_new(const char *name);
ChJson *ch_kubevirt_object_new(bool is_emulated);
