/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the hands send for the brain: nothing that leads out of the pod's network namespace, and
 * each message of a batch is looked at. The first byte chooses the socket.
 */

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "handler/hands/net-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ChHandsNet net =
        size > 0 && data[0] % 2 == 0 ? CH_HANDS_NET_ROUTE : CH_HANDS_NET_NETFILTER;
    g_autofree char *bytes = NULL;
    gsize n_bytes;

    if (size < 2)
        return 0;
    n_bytes = size - 1;
    bytes = g_memdup2(data + 1, n_bytes); /* of exactly its size, and aligned */
    if (ch_net_check(net, bytes, n_bytes) != 0)
        return 0;
    for (gsize offset = 0; offset < n_bytes;) {
        struct nlmsghdr header;

        g_assert(n_bytes - offset >= sizeof(header));
        memcpy(&header, bytes + offset, sizeof(header));
        g_assert(header.nlmsg_len >= sizeof(header) && header.nlmsg_len <= n_bytes - offset);
        g_assert(net != CH_HANDS_NET_ROUTE || header.nlmsg_type <= RTM_GETROUTE);
        offset += (header.nlmsg_len + 3u) & ~3u;
    }
    return 0;
}
