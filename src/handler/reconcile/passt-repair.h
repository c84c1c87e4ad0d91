/* SPDX-License-Identifier: Apache-2.0 */

/*
 * passt-repair: helps passt, the network of some VMs, when they migrate. Spec 04 §19.
 *
 * Theory of operation: the help lasts until the migration has moved passt's connections, at most a
 * minute, and nobody waits for it: it is a job of the pool, of which a VMI has one at a time,
 * whatever the role of this node. How it ended is no more than logged: without it the migration
 * loses the guest's connections, and goes on. Thread: any.
 */

#pragma once

#include "lib/io/worker-pool.h"
#include "lib/json/json.h"

/* Whether passt is the network of one of its interfaces. Pure. */
bool ch_passt_is_used(const ChJson *vmi);

/* Blocks until it is over. Thread: the pool's; as ch_pod_repair_passt(), which it is in the agent.
 */
typedef bool (*ChPasstRepairFunc)(gpointer pod, bool is_target, GError **error);

typedef struct ChPasstRepairs ChPasstRepairs;

/* @pool: borrowed, freed before it */
ChPasstRepairs *ch_passt_repairs_new(ChWorkerPool *pool, ChPasstRepairFunc repair);
void ch_passt_repairs_free(ChPasstRepairs *repairs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChPasstRepairs, ch_passt_repairs_free)

typedef struct {
    const char *key; /* for the log */
    const char *uid; /* of the VMI */
    bool is_target;  /* of the migration; else its source */
    gpointer pod;    /* of the VMI's launcher on this node */
    gpointer holder; /* (transfer full): what keeps @pod until then */
    GDestroyNotify release;
} ChPasstRepair;

/* Right before the launcher is told to migrate, or to become the target. A VMI for which it is
 * under way already: nothing is done. Never blocks. */
void ch_passt_repairs_begin(ChPasstRepairs *repairs, const ChPasstRepair *repair);
