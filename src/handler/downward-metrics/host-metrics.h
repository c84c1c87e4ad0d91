/* SPDX-License-Identifier: Apache-2.0 */

/*
 * host-metrics: what the kernel tells of the node's processors and memory. Spec 05 §14, 07 §7.1.
 *
 * Thread: any. Blocks: reads files below /proc and /sys.
 */

#pragma once

#include "handler/downward-metrics/metric-list.h"

/**
 * ch_host_metrics_add: nine metrics at most, in their order.
 * @proc_dir, @sys_dir: "/proc", "/sys"
 * @wall_us: the time
 *
 * A file that cannot be read, or is not as it must be, takes only its own metrics away.
 */
void
ch_host_metrics_add(ChMetricList *list, const char *proc_dir, const char *sys_dir, int64_t wall_us);
