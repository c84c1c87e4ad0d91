/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-mount: what of another container is mounted into a pod, in the node's mount namespace.
 *
 * Theory of operation: a child of its own for each of these, as it ends in another mount namespace.
 * How it is taken away again: inside-unmount.h. The target is made and looked at in the node's
 * namespace, through descriptors of that namespace only; then the child goes home to find the
 * source, takes a detached clone of the one file or directory in the source's namespace, and
 * attaches it in the node's, whence it propagates into the pod. Afterwards the target's name is
 * looked up once more: the pod may have renamed what was mounted on, and then the mount is undone.
 * Idempotent. Each returns false with the reply and its step filled in. Needs CAP_SYS_ADMIN,
 * CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_CHOWN. Spec: 05 §4, §6.5, §6.6, §7.2.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

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
