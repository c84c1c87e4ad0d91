/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nic-plan: which network interfaces a running domain is to be given, which it is to lose, and
 * whose link goes up or down.
 *
 * Interfaces are told from one another by their aliases, which bear their names in the VMI. Only
 * those of secondary networks, whose tap has its name of the network's, come and go. Pure. Thread:
 * any. Spec 03 §8.7.
 */

#pragma once

#include "lib/json/json.h"

typedef struct {
    char *xml;  /* owned: the whole element, as libvirt takes it */
    char *name; /* owned: in the VMI */
} ChNicChange;

typedef struct {
    GPtrArray *attach; /* char *: names in the VMI */
    GPtrArray *clash;  /* char *: the same of those that another device has */
    GArray *detach;    /* ChNicChange */
    GArray *update;    /* ChNicChange */
} ChNicPlan;

void ch_nic_plan_clear(ChNicPlan *plan);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChNicPlan, ch_nic_plan_clear)

/**
 * ch_nic_plan:
 * @live: the domain's document
 *
 * Returns: false with CH_ERROR_INVALID: the document is none
 */
bool ch_nic_plan(const char *live, const ChJson *vmi, ChNicPlan *out_plan, GError **error);

/* Whether a device of the domain, of whatever kind, has this name in the VMI: they share one space.
 * True of a document that is none. */
bool ch_nic_plan_is_taken(const char *live, const char *name);
