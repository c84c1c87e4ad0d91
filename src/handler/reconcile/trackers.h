/* SPDX-License-Identifier: Apache-2.0 */

/*
 * trackers: tells backup trackers of a VM that its checkpoints have to be defined again.
 *
 * A tracker is a VirtualMachineBackupTracker object. They are asked for when a VM needs them, which
 * is once after its disks got their changed-block tracking, instead of being watched on every node
 * for the whole cluster. Thread: workers. Blocks for the API server. Spec: 02 §6.9.
 */

#pragma once

#include "lib/json/json.h"
#include "lib/kube/client.h"

/**
 * ch_trackers_mark: patches every tracker of the VM that has a checkpoint and is not marked yet.
 *
 * Idempotent. A cluster without such objects has no trackers.
 *
 * Returns: false when one cannot be read or patched; those before it are marked
 */
bool ch_trackers_mark(ChKubeClient *kube, const char *namespace_, const char *name, GError **error);

/* Whether this tracker, of the VM's namespace, is the VM's and has to be marked. Pure. */
bool ch_tracker_wants_mark(const ChJson *tracker, const char *name);
