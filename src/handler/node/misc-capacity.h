/* SPDX-License-Identifier: Apache-2.0 */

/*
 * misc-capacity: how many of a scalar resource the node has, such as encrypted guests ("tdx"), as
 * cgroup v2 tells in misc.capacity. Spec: 05 §8.7, 07 §3.4.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * ch_misc_capacity_parse: a line of two fields, the key and a number; other lines do not count.
 * @out_capacity: 0 on failure
 *
 * Pure. Thread: any.
 *
 * Returns: false with CH_ERROR_NOT_FOUND ("key K not found in misc.capacity") or CH_ERROR_INVALID
 */
bool
ch_misc_capacity_parse(const char *text, const char *key, int64_t *out_capacity, GError **error);

/* The same of the file at @path, of at most 64 KiB. Thread: any. Returns: also CH_ERRNO,
 * CH_ERROR_LIMIT */
bool
ch_misc_capacity_read(const char *path, const char *key, int64_t *out_capacity, GError **error);
