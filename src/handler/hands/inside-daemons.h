/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-daemons: the directory /var/run/kubevirt/daemons/pr, in which the node's daemons
 * meet pods with persistent reservations: multipathd's socket, mounted, and pr-helper's.
 *
 * Pods have the directory with all rights: names in it are looked up without following links, and
 * what is found is only acted on through its descriptor. The share directory itself and the node's
 * /run are root's. Each runs in a child with a deadline and returns false with the reply filled in.
 * Spec: 05 §3.2, §11.2, §12.3, 07 §3.10, §11.
 */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "handler/hands/protocol.h"

/* Static storage. */
typedef struct {
    const char *share_dir; /* absolute; the same in the hands' mount namespace and in the node's */
    const char *run_dir;   /* absolute; the node's, where multipathd has its socket */
    const char *node_root; /* the node's root, as the hands see it */
    pid_t node_pid;        /* whose mount namespace is the node's */
} ChDaemonPlaces;

void ch_inside_daemons_set_places(const ChDaemonPlaces *places);

/**
 * ch_inside_watch_multipath: watches the node's /run.
 * @out_fd: an inotify descriptor that tells of names that come and go there, non-blocking
 *
 * Needs CAP_SYS_PTRACE, for the node's root.
 */
bool ch_inside_watch_multipath(int *out_fd, ChHandsReply *reply);

/**
 * ch_inside_set_multipath: has multipathd's socket mounted on daemons/pr/multipathd.socket in the
 * node's mount namespace, which is joined; or nothing, when there is no such socket.
 * @request: flags: CH_HANDS_REMOVE: nothing in any case
 *
 * Directory and file are made where they are missing, but for CH_HANDS_REMOVE. Idempotent: the
 * right socket stays mounted. Fails with EXDEV where the share directory is not the node's, or is
 * not there, as in local mode. Needs CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE.
 *
 * Returns: true with reply->look.socket_errno, why there is no socket, reply->target, what is at
 * the place now, and reply->size, how many mounts were made or taken away
 */
bool ch_inside_set_multipath(const ChHandsRequest *request, ChHandsReply *reply);

/* As ch_inside_watch_multipath(), of daemons/pr, which must be there. */
bool ch_inside_watch_reservation(int *out_fd, ChHandsReply *reply);

/**
 * ch_inside_own_reservation: gives daemons/pr and its socket pr-helper.sock to 107:107, and, where
 * there is SELinux, the label that containers may use.
 *
 * Whether there is SELinux is asked each time; where it is permissive a label that cannot be set is
 * fine. What is not a socket is left alone (ENOTSOCK). Idempotent. Needs CAP_CHOWN, CAP_FOWNER and
 * CAP_SYS_PTRACE.
 *
 * Returns: false with step DIR or SOCKET (open) or OWN (also of the label) in the reply
 */
bool ch_inside_own_reservation(ChHandsReply *reply);
