/* SPDX-License-Identifier: Apache-2.0 */

/*
 * dhcp-server: answers the guest's DHCP requests on one link of the pod.
 *
 * Theory of operation: whoever prepares the domain opens the socket (on its worker), so that no
 * request of the guest comes too early; the loop reads it. The socket is bound to the link. With
 * the bridge binding the pod's NIC is a port of it: neighbours are heard too, whom ch_dhcp_answer()
 * tells from the guest by its MAC address alone. Needs the right to port 67, no capability
 * (docs/internals/launcher-pod.md). Spec: 04 §17.
 */

#pragma once

#include "lib/io/loop.h"
#include "local/launcher/dhcp.h"

typedef struct ChDhcpServer ChDhcpServer;

/* Thread: loop. */
ChDhcpServer *ch_dhcp_server_new(ChLoop *loop);
void ch_dhcp_server_free(ChDhcpServer *server); /* when no worker uses it anymore */

/**
 * ch_dhcp_server_serve: from now on, @lease on @link; again for the same link: nothing. A link that
 * was made anew under the name is another. What was served on links that are gone ends.
 *
 * Thread: one worker at a time. Returns: false with CH_ERRNO
 */
bool ch_dhcp_server_serve(ChDhcpServer *server,
                          const char *link,
                          const ChDhcpLease *lease,
                          GError **error);
