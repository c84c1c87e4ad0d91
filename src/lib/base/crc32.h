/* SPDX-License-Identifier: Apache-2.0 */

/*
 * crc32: the checksum of IEEE 802.3 (reflected, inverted before and after).
 *
 * Pure, allocates nothing. Thread: any, but the first call of a process by itself. Spec: 05 §6.8.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

/* Goes on from @crc, 0 at the beginning, by @n_bytes. */
uint32_t ch_crc32(uint32_t crc, const void *bytes, size_t n_bytes);
