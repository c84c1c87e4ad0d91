/* SPDX-License-Identifier: Apache-2.0 */

/*
 * metrics-disk: the disk of a volume downwardMetrics, in vhostmd's format. The launcher makes it
 * with no metrics; the agent writes them.
 *
 * Thread: any. Blocks: for the disk. Spec 05 §14.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#define CH_METRICS_DISK_SIZE (256u << 10)

/* One that is there already stays: a guest may read it. Its directory must be there. */
bool ch_metrics_disk_make(const char *path, GError **error);
