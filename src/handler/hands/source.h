/* SPDX-License-Identifier: Apache-2.0 */

/*
 * source: the process that serves what is mounted into a pod: a container disk, a kernel, a hotplug
 * volume.
 *
 * It listens on a socket in a pod's emptyDir. All that is wanted of it is its root and its mount
 * namespace, so a connection says nothing and is closed. Each function returns false with the reply
 * filled in when it fails. Thread: the hands' one, or a child's. Spec: 05 §5.2, §6.1, §7.4.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

typedef struct {
    int pidfd;   /* owned */
    int root_fd; /* owned; O_PATH */
} ChSource;

/* What both functions below tell a source by. */
typedef struct {
    const char *pod_uid;
    ChHandsMount mount;
    unsigned index;
} ChSourceName;

/* Tells whether it is there, without waiting; absence is no failure. EAGAIN: it cannot be told now.
 */
bool ch_source_look(const ChSourceName *name, ChHandsReply *reply);

/**
 * ch_source_open: finds the process and proves that the root is its.
 * @node_fd: the node's mount namespace
 *
 * As with a launcher, a pid proves nothing: the process must still run after its root was opened,
 * be in a mount namespace that is neither ours nor the node's, and see the very socket that was
 * connected to below its root. For a child: the pod may have put a dead file system there. Needs
 * CAP_SYS_PTRACE, CAP_DAC_OVERRIDE.
 */
bool
ch_source_open(const ChSourceName *name, int node_fd, ChSource *out_source, ChHandsReply *reply);

void ch_source_clear(ChSource *source);
