/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-disk: host disks: the directory of one in a pod, and the image in it.
 *
 * As inside.h: in a child (the volume may be a network file system that hangs), idempotent, below
 * the pod's root only. Spec: 05 §9.2, §10 b.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

/**
 * ch_inside_disk_size: how large an image becomes. Pure.
 * @available: bytes that may be used; may be negative
 * @tolerated_percent: 0 to 100: by how much it may be smaller than @capacity
 *
 * Returns: bytes, at most @capacity; 0: it cannot be
 */
int64_t ch_inside_disk_size(int64_t capacity, int64_t available, int tolerated_percent);

/**
 * ch_inside_prepare_disk: makes the image if it is wanted and not there, and gives it to 107:107.
 * @volume: its directory is /var/run/kubevirt-private/vmi-disks/@volume
 * @is_non_root: the directory becomes 107:107's, too
 *
 * An image that is there is left alone, whatever its size and owner; a link is refused. A new one
 * is there whole or not at all. Needs CAP_DAC_OVERRIDE, CAP_CHOWN.
 *
 * Returns: true with the new image's size in the reply, 0: none was made. False with EFBIG: the
 * space does not do, the reply's size (int64_t) is what there is
 */
bool ch_inside_prepare_disk(int root_fd,
                            const char *volume,
                            const ChHandsDisk *disk,
                            bool is_non_root,
                            ChHandsReply *reply);
