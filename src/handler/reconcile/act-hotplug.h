/* SPDX-License-Identifier: Apache-2.0 */

/*
 * act-hotplug: a VM's hotplugged volumes in one pass. Spec 01 §21.2, §22; 02 §6.5; 05 §7.
 *
 * Internal to the reconcile room. Thread: the worker that runs the pass; blocks for the hands and
 * for files.
 */

#pragma once

#include "handler/pod/cgroup.h"
#include "handler/pod/hotplug.h"
#include "handler/reconcile/pass.h"

/* What lasts as long as the sync of a VM does. */
typedef struct {
    ChPass *pass;     /* borrowed */
    ChLogContext log; /* borrows from the pass */
    ChHotplugPass volumes;
} ChActHotplug;

/* @cgroup: of the launcher's pod, borrowed */
void ch_act_hotplug_init(ChActHotplug *hotplug, ChPass *pass, ChPodCgroup *cgroup);
void ch_act_hotplug_clear(ChActHotplug *hotplug);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChActHotplug, ch_act_hotplug_clear)

/* Mounts what is wanted. A volume that waits, or that is not there, does not fail the sync: it is
 * tried again, or told. */
ChActResult ch_act_hotplug_mount(ChActHotplug *hotplug);

/* Whether a start need not wait for volumes; else it is tried again. */
bool ch_act_hotplug_is_ready(ChPass *pass);

/* Takes away what is wanted no more: of a VM that runs, and whose launcher knows. */
ChActResult ch_act_hotplug_unmount(ChActHotplug *hotplug);

/* Takes everything away. @uid: of the VMI that is cleaned up */
bool ch_act_hotplug_clean_up(const ChPass *pass, const char *uid, GError **error);

/* Which volumes are mounted, as of ch_hotplug_look(). */
char **ch_act_hotplug_look(ChPass *pass);
