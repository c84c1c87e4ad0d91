/* SPDX-License-Identifier: Apache-2.0 */

/*
 * launcher: finding a launcher's command socket below the pods directory, and who listens on it.
 *
 * The directories down to `sockets` are kubelet's; what lies in it is the pod's. Each function
 * returns false with the reply filled in when it fails. Thread: the hands' one. Spec: 01 §14.2,
 * §14.4; 05 §5.2.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/pod-table.h"
#include "handler/hands/protocol.h"
#include "lib/linux/safe-path.h"

/* @pods_dir: static storage, trusted: opened following links. */
void ch_launcher_set_pods_dir(const char *pods_dir);

/* Opens @below in the directory of the pod, without following links. Returns a descriptor (O_PATH)
 * or -errno. */
int ch_launcher_open_dir(const char *uid, const char *below);

/* Connects to the socket @name in @dir_fd without waiting. Returns the connection, non-blocking,
 * and which socket it was made by, or -errno. Needs CAP_DAC_OVERRIDE. */
int ch_launcher_connect_at(int dir_fd, const char *name, ChFileId *out_inode);

/* Facts without a connection. Absence is no failure. */
bool ch_launcher_look(const char *uid, ChHandsReply *reply);

/* Makes the marker of an unresponsive launcher; one that exists (whatever it is) is success. */
bool ch_launcher_mark(const char *uid, ChHandsReply *reply);

typedef struct {
    int socket_fd;  /* connected, non-blocking */
    ChFileId inode; /* of the socket it was reached by */
} ChLauncherConnection;

/* Connects without waiting: a full backlog is EAGAIN. Needs CAP_DAC_OVERRIDE. */
bool
ch_launcher_connect(const char *uid, ChLauncherConnection *out_connection, ChHandsReply *reply);

/* The process that listens; `root_fd` of the entry stays unset. */
bool ch_launcher_identify(const char *uid,
                          const ChLauncherConnection *connection,
                          ChPodEntry *out_entry,
                          ChHandsReply *reply);

/**
 * ch_launcher_reconnect: connects once more to a launcher whose root was opened.
 *
 * The socket and the number of its listener are those of @entry, and the process that had the
 * number then has it still, since it runs: it is that process, in the root that was checked.
 *
 * Returns: true with *out_socket_fd; ESTALE: another launcher has taken its place
 */
bool ch_launcher_reconnect(const ChPodEntry *entry, int *out_socket_fd, ChHandsReply *reply);

/**
 * ch_launcher_open_root: opens the listener's root and proves that it is the listener's.
 *
 * A pid proves nothing: a pod can leave its listening socket to a child and let the listener's
 * number be given to a stranger. So the process must still run after its root was opened, have a
 * mount namespace other than ours, and its root must hold the very socket that was connected to.
 * Runs in a child, as the pod may have put a
 * dead network file system there. Needs CAP_SYS_PTRACE.
 *
 * Returns: true with *out_root_fd (O_PATH)
 */
bool ch_launcher_open_root(const ChPodEntry *entry,
                           const ChFileId *socket_inode,
                           int *out_root_fd,
                           ChHandsReply *reply);

/**
 * ch_launcher_hold: holds the launcher by its number again, for a step that has its root.
 *
 * The process that has the number now must be in that very root, and run. Needs CAP_SYS_PTRACE.
 *
 * Returns: true with *out_pidfd; ESRCH, ESTALE: the number is another's by now
 */
bool ch_launcher_hold(pid_t pid, int root_fd, int *out_pidfd, ChHandsReply *reply);
