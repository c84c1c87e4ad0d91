/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cgroup: the directory of a pod's cgroup, and its files.
 *
 * Only in a child: another program's cgroup namespace may be joined. What is opened is the node's
 * cgroup file system, never a pod's view of it. Each function returns false with the reply filled
 * in when it fails. Spec: 05 §8.1.
 */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "handler/hands/protocol.h"

typedef struct {
    int dir_fd;      /* owned; of the container */
    int scope_fd;    /* owned; of the crun scope around it, -EBADF: there is none */
    bool is_unified; /* v2 */
    bool is_ours;    /* this agent is in it too, or below it */
} ChCgroup;

#define CH_CGROUP_INIT ((ChCgroup){.dir_fd = -EBADF, .scope_fd = -EBADF})

void ch_cgroup_close(ChCgroup *cgroup);
#define ch_autocgroup __attribute__((cleanup(ch_cgroup_close)))

/**
 * ch_cgroup_open: opens the cgroup of a process that is held.
 * @pid: its number, @pidfd: itself
 * @controller: which hierarchy where there are several; where that has none, the v2 one
 *
 * It is looked for below the mounts that this program sees, then those of the node's init; where
 * the path cannot be told from this cgroup namespace, init's namespace is joined. The directory
 * is taken only if it has that very process in it. A last component "housekeeping" is dropped.
 *
 * Returns: true with *out_cgroup
 */
bool ch_cgroup_open(
    pid_t pid, int pidfd, const char *controller, ChCgroup *out_cgroup, ChHandsReply *reply);

/* Reads one of its small files as a whole, terminated. Returns the length or -errno. */
long ch_cgroup_read(int dir_fd, const char *name, char *buffer, gsize size);

/* In one write, as the kernel wants it. Returns 0 or -errno. */
int ch_cgroup_write(int dir_fd, const char *name, const char *text);
