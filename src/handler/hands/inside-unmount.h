/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-unmount: what was mounted into a pod is taken away, in the node's mount namespace.
 *
 * Theory of operation: a child of its own for each of these, as it ends in the node's mount
 * namespace. A name is opened following nothing, and only if that is the root of a mount is it
 * taken away, through the descriptor, as often as something is mounted there: whatever the pod made
 * of the place, only mounts are touched, and what was made to be mounted on. Where a pod has moved
 * a mount to is read in the node's mountinfo. Idempotent. Each returns false with the reply and its
 * step filled in. Needs CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE. Spec: 05
 * §6.7, §7.5, §7.6.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

/**
 * ch_inside_unmount: takes away whatever is mounted there, lazily.
 *
 * Of CH_HANDS_MOUNT_BOOT that is everything in kernel-boot. A directory or name that is not there
 * is done. With CH_HANDS_REMOVE what was mounted on goes too, and the source's socket beside it;
 * that may fail, as a pod can have put anything there.
 *
 * Returns: true with the number of mounts in reply->size
 */
bool ch_inside_unmount(const ChHandsRequest *request, ChHandsReply *reply);

/**
 * ch_inside_sweep: takes away every mount and every block device in the pod's directory of hotplug
 * volumes, with what was mounted on; the pod's own files stay. Then whatever is still mounted below
 * it, or below the directory of container disks: a pod can rename a directory that we mount in, and
 * kubelet could not remove what is mounted there.
 *
 * For when the VM is gone: a record may be lost, or older than the last mount. A directory that is
 * not there is done.
 *
 * Returns: true with the number of mounts in reply->size; false with the first failure, or the
 * first that may pass, after all others were tried
 */
bool ch_inside_sweep(const ChHandsRequest *request, ChHandsReply *reply);
