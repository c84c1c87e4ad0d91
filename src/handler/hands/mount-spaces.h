/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mount-spaces: the mount namespaces that a step of a mount goes through: its own, and the node's.
 *
 * For a child that ends with its step. Each returns false with the reply filled in. Needs
 * CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE.
 */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "handler/hands/protocol.h"

typedef struct {
    int home_fd; /* owned; this process's mount namespace */
    int node_fd; /* owned; the node's */
} ChMountSpaces;
#define CH_MOUNT_SPACES_INIT                                                                       \
    {                                                                                              \
        -EBADF, -EBADF                                                                             \
    }

/* @pid: of the process whose mount namespace is the node's: 1, unless the agent is told otherwise
 */
void ch_mount_spaces_set_node(pid_t pid);

/* On failure, too, there may be something to clear. */
bool ch_mount_spaces_open(ChMountSpaces *out_spaces, ChHandsReply *reply);
void ch_mount_spaces_clear(ChMountSpaces *spaces);

/* @fd: a mount namespace, or the pidfd of a process that is in it */
bool ch_mount_spaces_join(int fd, ChHandsReply *reply);
