/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-node: device nodes of block volumes in a pod's directory `hotplug-disks`.
 *
 * The device is that of the one node in the directory of the volume's name in the attachment pod,
 * where the container runtime made it: no number comes from the brain. Both directories are
 * kubelet's, and are seen where the node has them; what lies in them is acted on through
 * descriptors. Runs in a child with a deadline, in the hands' own mount namespace. Idempotent. Each
 * returns false with the reply and its step filled in. Needs CAP_MKNOD, CAP_CHOWN,
 * CAP_DAC_OVERRIDE. Spec: 05 §7.2, §7.5, traps 25, 26, 39 to 41.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"
#include "lib/linux/device-rules.h"

/* Fills in reply->target, what has the name, and, when there is a source_uid, reply->source. That
 * there is none of them is no failure, but that there is no directory (step DIR) is. */
bool ch_inside_look_at_node(const ChHandsRequest *request, ChHandsReply *reply);

/**
 * ch_inside_make_node: makes the node, with the source's numbers and permissions, for 107:107.
 *
 * A block device that is there stays if it has the source's numbers, or if there is no source any
 * more; with other numbers it is replaced. ENOTBLK: something else has the name. ENODEV: no device
 * in the source's directory.
 *
 * Returns: true with reply->target, reply->source, reply->size 1 when it was made now, and
 * reply->dev, the device of the node that it replaces, or 0
 */
bool ch_inside_make_node(const ChHandsRequest *request, ChHandsReply *reply);

/**
 * ch_inside_has_volumes: whether each device that rules allow is that of a volume of the pod.
 * @base: devices that it may use anyhow
 *
 * A volume's device has a node in the pod's directory, directly in it: on that file system only the
 * functions here make nodes, while what is mounted there, or elsewhere in the pod, may bring any.
 *
 * Returns: false with the reply filled in: EPERM (another device), ...
 */
bool ch_inside_has_volumes(const char *pod_uid,
                           const ChDeviceRules *rules,
                           const ChDeviceRules *base,
                           ChHandsReply *reply);

/* Removes a block device of this name; none there is fine, ENOTBLK: something else is. */
bool ch_inside_remove_node(const ChHandsRequest *request, ChHandsReply *reply);
