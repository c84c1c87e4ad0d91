/* SPDX-License-Identifier: Apache-2.0 */

/*
 * block-device: what block devices of this machine are, and whether somebody has them.
 *
 * Thread: any. Blocks: for the disk.
 */

#pragma once

#include <stdbool.h>

/* Whether the device at @path is neither mounted, nor part of another device. One that cannot be
 * opened counts as idle. Blocks for a moment when it is not: two who ask at once see each other. */
bool ch_block_device_is_idle(const char *path);
