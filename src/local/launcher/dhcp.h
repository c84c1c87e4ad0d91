/* SPDX-License-Identifier: Apache-2.0 */

/*
 * dhcp: answers of a DHCPv4 server that has one address for one client.
 *
 * Pure: bytes in, bytes out. What comes in is the guest's, that is a stranger's. Thread: any.
 * Spec: 04 §17; RFC 2131, 2132, 3397, 3442.
 */

#pragma once

#include "lib/linux/ip.h"
#include "lib/linux/mac.h"

#define CH_DHCP_MAX_SERVERS 3
#define CH_DHCP_MAX_ROUTES  32
/* What every client takes (RFC 2131 §2), without IP's and UDP's headers. */
#define CH_DHCP_MAX_BYTES 548

typedef struct {
    ChIp destination;
    uint8_t prefix;
    ChIp gateway; /* family 0: on the link */
} ChDhcpRoute;

/* What the guest is given. All addresses are IPv4; family 0: none. */
typedef struct {
    uint8_t mac[CH_MAC_BYTES]; /* nobody else is answered */
    ChIp address;
    uint8_t prefix;
    ChIp server; /* we */
    ChIp gateway;
    ChIp name_servers[CH_DHCP_MAX_SERVERS];
    guint n_name_servers;
    ChDhcpRoute routes[CH_DHCP_MAX_ROUTES]; /* if any, all that count, the default one too */
    guint n_routes;
    guint mtu; /* 0: not told */
    char hostname[64];
    char search[256]; /* names by blank; empty: none */
} ChDhcpLease;

typedef struct {
    uint8_t bytes[CH_DHCP_MAX_BYTES];
    gsize n_bytes;
    ChIp to; /* family 0: to all on the link */
} ChDhcpAnswer;

/* Returns: false: the message is none that is answered */
bool ch_dhcp_answer(const ChDhcpLease *lease,
                    const uint8_t *message,
                    gsize n_bytes,
                    ChDhcpAnswer *out_answer);
