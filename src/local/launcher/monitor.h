/* SPDX-License-Identifier: Apache-2.0 */

/*
 * monitor: the parent process of the launcher, process 1 of the pod's container.
 *
 * It forwards signals, reaps what is left behind (QEMU is re-parented to it), ends a QEMU that
 * outlives the launcher, and ends the container with the launcher's status. The agent finds QEMU as
 * a child of the launcher's parent. Thread: the only one. Spec 03 §6.1.
 */

#pragma once

#include <stdbool.h>

/**
 * ch_monitor_fork: call before any thread exists.
 * @container_disk_dir: sockets there are removed at the end, which ends their containers
 * @out_status: (out): what the process shall exit with; only in the parent
 *
 * Returns: true in the child, which goes on as the launcher; false in the parent, when the child
 * has ended and everything is tidy
 */
bool ch_monitor_fork(const char *container_disk_dir, int *out_status);
