/* SPDX-License-Identifier: Apache-2.0 */

/*
 * client: a launcher that was reached, and a connection to it. For clients.c, and for who needs the
 * pod alone. Spec 01 §14.
 *
 * Theory of operation: a peer stands for the process that listens (the seam's pod handle), a client
 * for one connection to it. Both are counted: whoever holds a client may go on using its channel
 * and pod after the table has dropped them. Connections come and go while the peer stays. Thread:
 * any.
 */

#pragma once

#include "handler/launcher/clients.h"

typedef struct ChLauncherPeer ChLauncherPeer;

/* @pod: (transfer full): released by the seam with the last reference. @seam, @seam_data: borrowed,
 * outlive it */
ChLauncherPeer *ch_launcher_peer_new(const ChLauncherSeam *seam, gpointer seam_data, gpointer pod);
ChLauncherPeer *ch_launcher_peer_ref(ChLauncherPeer *peer);
void ch_launcher_peer_unref(ChLauncherPeer *peer); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLauncherPeer, ch_launcher_peer_unref)
gpointer ch_launcher_peer_pod(const ChLauncherPeer *peer);
int64_t ch_launcher_peer_since_us(const ChLauncherPeer *peer); /* when it was made, monotonic */

/* @peer: referenced. @channel: (transfer full) */
ChLauncherClient *ch_launcher_client_new(ChLauncherPeer *peer, ChGrpcChannel *channel);
ChLauncherClient *ch_launcher_client_ref(ChLauncherClient *client);

/* Whether somebody has a reference beside the caller's, and when the last one of these was given
 * up. */
bool ch_launcher_client_is_shared(const ChLauncherClient *client);
int64_t ch_launcher_client_used_us(const ChLauncherClient *client);
