/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-mount: what of another container is mounted into a pod, in the node's mount namespace.
 *
 * Theory of operation: a child of its own for each of these, as it ends in another mount namespace.
 * The target is made and looked at in the node's namespace, through descriptors of that namespace
 * only; then the child goes home to find the source, takes a detached clone of the one file or
 * directory in the source's namespace, and attaches it in the node's, whence it propagates into the
 * pod. Afterwards the target's name is looked up once more: the pod may have renamed what was
 * mounted on, and then the mount is undone. Idempotent. Each returns false with the reply and its
 * step filled in. Needs CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_CHOWN.
 * Spec: 05 §4, §6.5 to §6.7, §7.2, §7.5.
 */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "handler/hands/protocol.h"

/* @pid: of the process whose mount namespace is the node's: 1, unless the agent is told otherwise
 */
void ch_inside_mount_set_node(pid_t pid);

/**
 * ch_inside_mount: mounts what @request names, unless something is mounted there.
 * @path: request->n_bytes of it
 *
 * Container disks and kernels become read-only.
 *
 * Returns: true with reply->target as it is now, and reply->size 1 when it was mounted now
 */
bool ch_inside_mount(const ChHandsRequest *request, const char *path, ChHandsReply *reply);

/* Fills in reply->target. */
bool ch_inside_look_at_target(const ChHandsRequest *request, const char *path, ChHandsReply *reply);

/**
 * ch_inside_sum_image: goes on with the checksum of what MOUNT would mount.
 * @request: in its uid the pod that serves it; identity, offset and crc as the last part's reply
 * had them (target.dev and .ino, end, crc), 0 for the first
 *
 * In the process's own namespaces. Reads at most CH_HANDS_SUM_BYTES.
 *
 * Returns: true with target, size, end, crc; ESTALE: it is another file by now
 */
bool ch_inside_sum_image(const ChHandsRequest *request, const char *path, ChHandsReply *reply);

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
 * ch_inside_sweep_hotplug: takes away every mount and every block device in the pod's directory of
 * hotplug volumes, with what was mounted on; the pod's own files stay.
 *
 * For when the VM is gone: a record may be lost, or older than the last mount. A directory that is
 * not there is done.
 *
 * Returns: true with the number of mounts in reply->size; false with the first failure, after all
 * others were tried
 */
bool ch_inside_sweep_hotplug(const ChHandsRequest *request, ChHandsReply *reply);
