/* SPDX-License-Identifier: Apache-2.0 */

/*
 * leases: addresses that the plugin host-local gave out, freed without it.
 *
 * A lease is a file of <lease_dir>/<network>, named by its address; its first line is the
 * container's id (the pod's UID), the second the link. Thread: any. Blocks: for the disk.
 */

#pragma once

#include <glib.h>

/* Those of the pod @uid; of its link @link only, unless that is NULL. */
void ch_leases_free(const char *lease_dir, const char *uid, const char *link);

/* Those that belong to none of @records (element-type ChRecord). */
void ch_leases_sweep(const char *lease_dir, const GPtrArray *records);
