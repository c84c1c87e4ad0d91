/* SPDX-License-Identifier: Apache-2.0 */

/* What a guest sends to the DHCP port. The first byte's bits choose what it is given, the rest is
 * the packet. */

#include <string.h>

#include "local/launcher/dhcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OP = 0, XID = 4, YIADDR = 16, CHADDR = 28, OPTIONS = 240 };
enum { MANY_ROUTES = 1, LONG_NAMES = 2, NOTHING_ELSE = 4 };

static ChIp
ip(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    return (ChIp){.family = AF_INET, .bytes = {a, b, c, d}};
}

static ChDhcpLease
new_lease(uint8_t kind)
{
    ChDhcpLease lease = {.mac = {2, 0, 0, 0, 0, 9},
                         .address = ip(10, 0, 2, 2),
                         .prefix = 24,
                         .server = ip(10, 0, 2, 1)};

    if (kind & NOTHING_ELSE)
        return lease;
    lease.gateway = lease.server;
    lease.n_name_servers = CH_DHCP_MAX_SERVERS;
    for (guint i = 0; i < CH_DHCP_MAX_SERVERS; i++)
        lease.name_servers[i] = ip(9, 9, 9, (uint8_t)i);
    lease.n_routes = kind & MANY_ROUTES ? CH_DHCP_MAX_ROUTES : 1;
    for (guint i = 0; i < lease.n_routes; i++)
        lease.routes[i] = (ChDhcpRoute){.destination = ip(172, 16, (uint8_t)i, 0),
                                        .prefix = (uint8_t)i,
                                        .gateway = lease.server};
    lease.mtu = 1450;
    memset(lease.hostname, 'h', kind & LONG_NAMES ? sizeof(lease.hostname) - 1 : 2);
    for (gsize i = 0; i + 1 < (kind & LONG_NAMES ? sizeof(lease.search) : 8); i++)
        lease.search[i] = "lab.a b."[i % 8];
    return lease;
}

/* Every option lies within the answer, and the end is there. */
static void
check_options(const ChDhcpAnswer *answer)
{
    gsize at = OPTIONS;

    while (answer->bytes[at] != 255) {
        g_assert_cmpuint(at + 2, <, answer->n_bytes);
        g_assert_cmpuint(answer->bytes[at], !=, 0);
        at += 2 + (gsize)answer->bytes[at + 1];
        g_assert_cmpuint(at, <, answer->n_bytes);
    }
    for (at++; at < answer->n_bytes; at++)
        g_assert_cmpuint(answer->bytes[at], ==, 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ChDhcpLease lease;
    ChDhcpAnswer answer;
    static const uint8_t none[4] = {0};

    if (size == 0)
        return 0;
    lease = new_lease(data[0]);
    memset(&answer, 0xaa, sizeof(answer));
    if (!ch_dhcp_answer(&lease, data + 1, size - 1, &answer))
        return 0;
    g_assert_cmpuint(answer.n_bytes, >=, 300);
    g_assert_cmpuint(answer.n_bytes, <=, sizeof(answer.bytes));
    g_assert_cmpuint(answer.bytes[OP], ==, 2);
    g_assert_cmpint(memcmp(answer.bytes + XID, data + 1 + XID, 4), ==, 0);
    g_assert_cmpint(memcmp(answer.bytes + CHADDR, lease.mac, sizeof(lease.mac)), ==, 0);
    /* nobody else is told anything, nor given another address */
    g_assert_true(answer.to.family == 0 || ch_ip_equal(&answer.to, &lease.address));
    g_assert_true(memcmp(answer.bytes + YIADDR, none, 4) == 0 ||
                  memcmp(answer.bytes + YIADDR, lease.address.bytes, 4) == 0);
    check_options(&answer);
    return 0;
}
