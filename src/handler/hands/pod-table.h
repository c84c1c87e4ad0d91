/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-table: the pods that the hands know, by handle.
 *
 * An entry is made once from a launcher's socket and never looked up by number afterwards. A
 * handle is the entry's index and the number of its use, so that a released one never names its
 * successor. Static storage, thread: the hands' one. Spec: DESIGN.md §4.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "handler/hands/protocol.h"
#include "lib/linux/safe-path.h"

/* As many VMs as the agent looks after, and those that are asked or connected anew meanwhile: a
 * restart asks each launcher on a connection of its own. Kubelet's own limit is 110 pods. */
#define CH_POD_TABLE_SIZE (4096 + 512)

typedef struct {
    char uid[CH_HANDS_UID_SIZE];
    pid_t pid;
    ChFileId socket;             /* the command socket that it listens on */
    int pidfd;                   /* owned by the entry */
    int root_fd;                 /* owned by the entry; O_PATH */
    int net_fds[CH_HANDS_NET_N]; /* owned by the entry; netlink sockets in the pod, or -EBADF */
} ChPodEntry;

/* Takes over the two descriptors of *entry; the new one has no netlink sockets. Returns a handle,
 * never 0; 0 when the table is full (the descriptors stay the caller's). */
uint64_t ch_pod_table_add(const ChPodEntry *entry);

/* Borrowed until the next release; NULL when the handle names nothing. */
const ChPodEntry *ch_pod_table_find(uint64_t handle);

/* Takes over @fd in the place of an earlier one. False, with @fd still the caller's, when the
 * handle names nothing. */
bool ch_pod_table_keep_net(uint64_t handle, ChHandsNet net, int fd);

/* Closes the netlink sockets. False when the handle names nothing. */
bool ch_pod_table_close_net(uint64_t handle);

/* Closes the descriptors. False when the handle names nothing. */
bool ch_pod_table_release(uint64_t handle);
