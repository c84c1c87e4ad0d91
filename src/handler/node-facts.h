/* SPDX-License-Identifier: Apache-2.0 */

/*
 * node-facts: what the agent reads of its node and pod once, at the start. Spec 01 §1, 08 §3.
 *
 * Thread: the main thread's.
 */

#pragma once

#include <stdbool.h>

#include "handler/config/capabilities.h"

typedef struct {
    ChCapabilities *capabilities; /* owned */
    char *cpu_model;              /* owned; of this host, "" when it is not known */
    const char *architecture;     /* Go's name, static; "" for one without VMs */
    bool has_selinux;             /* the caller's to fill in: only privilege can see it */
} ChNodeFacts;

/* Returns: false: the labeller's capabilities are not there or cannot be read */
bool ch_node_facts_load(ChNodeFacts *facts, GError **error);
void ch_node_facts_clear(ChNodeFacts *facts);

/**
 * ch_own_namespace_load: the namespace that KubeVirt is in.
 * @path: the service account's file; missing or empty means "kubevirt"
 *
 * Returns: (transfer full): NULL with @error: the file is there and cannot be read
 */
char *ch_own_namespace_load(const char *path, GError **error);
