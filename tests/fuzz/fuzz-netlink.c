/* SPDX-License-Identifier: Apache-2.0 */

/* What the brain reads from a netlink socket in a pod: links, addresses, routes, rules, errors. */

#include <stddef.h>
#include <stdint.h>

#include "lib/linux/nft.h"
#include "lib/linux/rtnetlink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ChNftChain chains[] = {{"output", false, 0, 0}};
    ChNetlinkAnswer answer = {.first_sequence = 0, .last_sequence = UINT32_MAX};
    ChNftCounts counts = {.table = "nat", .chains = chains, .n_chains = 1};
    g_autoptr(ChNetState) state = ch_net_state_new();
    g_autoptr(GError) link_error = NULL;
    g_autoptr(GError) rule_error = NULL;
    g_autofree char *bytes = g_memdup2(data, size);

    if (!ch_netlink_judge(bytes, size, &answer, ch_rtnl_take, state, &link_error))
        g_assert(link_error != NULL && g_utf8_validate(link_error->message, -1, NULL));
    if (!ch_netlink_judge(bytes, size, &answer, ch_nft_take, &counts, &rule_error))
        g_assert(rule_error != NULL);
    for (guint i = 0; i < state->links->len; i++)
        g_assert(g_array_index(state->links, ChLink, i).name[IFNAMSIZ - 1] == '\0');
    for (guint i = 0; i < state->addresses->len; i++) {
        const ChAddress *address = &g_array_index(state->addresses, ChAddress, i);

        g_assert(address->prefix <= ch_ip_n_bytes(&address->ip) * 8);
    }
    return 0;
}
