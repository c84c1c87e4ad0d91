/* SPDX-License-Identifier: Apache-2.0 */

/*
 * daemon-sockets: sockets of the node's daemons that VMs with persistent reservations reach:
 * multipathd's, mounted where pr-helper and launchers see it, and pr-helper's, whose directory
 * becomes the VMs' user's.
 *
 * Thread: the loop's. Spec: 05 §12.3, 07 §3.10, §11.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/client.h"
#include "lib/io/loop.h"
#include "lib/io/worker-pool.h"

typedef struct ChDaemonSockets ChDaemonSockets;

/* All are borrowed. @pool must be freed before. */
ChDaemonSockets *ch_daemon_sockets_new(ChLoop *loop, ChWorkerPool *pool, ChHands *hands);
void ch_daemon_sockets_free(ChDaemonSockets *sockets); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChDaemonSockets, ch_daemon_sockets_free)

/* From now on multipathd's socket is mounted while there is one. */
void ch_daemon_sockets_start(ChDaemonSockets *sockets);

/* The configuration was told, perhaps anew: whether VMs may have persistent reservations. While
 * they may, pr-helper's directory and socket have the owner and label that they need; what has them
 * keeps them. */
void ch_daemon_sockets_configure(ChDaemonSockets *sockets, bool has_reservation);

/* Takes the mount back. @done: once, in a later turn, when it is, or could not be. */
void ch_daemon_sockets_stop(ChDaemonSockets *sockets, ChLoopFunc done, gpointer data);
