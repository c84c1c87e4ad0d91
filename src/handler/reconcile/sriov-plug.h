/* SPDX-License-Identifier: Apache-2.0 */

/*
 * sriov-plug: SR-IOV devices that a running VM lacks, after a migration say: whether the launcher
 * is to be told, and how often.
 *
 * Pure: the clock is a parameter. Thread: the owner's (callers on several threads need a lock of
 * their own). Spec: 01 §22.1, 04 §18.
 */

#pragma once

#include "lib/json/json.h"

/* Whether an SR-IOV interface of the VMI is in its pod, but not in its domain, by its status. */
bool ch_sriov_plug_is_due(const ChJson *vmi);

typedef struct ChSriovPlugs ChSriovPlugs;

ChSriovPlugs *ch_sriov_plugs_new(void);
void ch_sriov_plugs_free(ChSriovPlugs *plugs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChSriovPlugs, ch_sriov_plugs_free)

/**
 * ch_sriov_plugs_ask: may the launcher of VMI @uid be told?
 *
 * Returns: 0: now, and ch_sriov_plugs_tried() follows; else in so many microseconds; -1: no more,
 * after five hours, before it is forgotten
 */
int64_t ch_sriov_plugs_ask(ChSriovPlugs *plugs, const char *uid, int64_t now_us);

/* It was told, or could not be: the next time is put off, each time further. */
void ch_sriov_plugs_tried(ChSriovPlugs *plugs, const char *uid, int64_t now_us);

/* Nothing is due any more, or the VMI is gone. */
void ch_sriov_plugs_forget(ChSriovPlugs *plugs, const char *uid);
