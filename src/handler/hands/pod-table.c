/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/pod-table.h"

#include <stddef.h>
#include <unistd.h>

#include "lib/base/fd.h"

#define INDEX_BITS 16
G_STATIC_ASSERT(CH_POD_TABLE_SIZE <= 1 << INDEX_BITS);

typedef struct {
    ChPodEntry entry;
    uint64_t use; /* odd: in use; counts up with each taking and each release */
} Slot;

static Slot slots[CH_POD_TABLE_SIZE];

static Slot *
find(uint64_t handle)
{
    const uint64_t index = handle & ((1u << INDEX_BITS) - 1);
    Slot *slot = index < CH_POD_TABLE_SIZE ? &slots[index] : NULL;

    return slot != NULL && slot->use % 2 == 1 && slot->use == handle >> INDEX_BITS ? slot : NULL;
}

uint64_t
ch_pod_table_add(const ChPodEntry *entry)
{
    for (uint64_t i = 0; i < CH_POD_TABLE_SIZE; i++) {
        Slot *slot = &slots[i];

        if (slot->use % 2 == 1)
            continue;
        slot->use++;
        slot->entry = *entry;
        for (int net = 0; net < CH_HANDS_NET_N; net++)
            slot->entry.net_fds[net] = -EBADF;
        return slot->use << INDEX_BITS | i;
    }
    return 0;
}

const ChPodEntry *
ch_pod_table_find(uint64_t handle)
{
    const Slot *slot = find(handle);

    return slot != NULL ? &slot->entry : NULL;
}

bool
ch_pod_table_keep_net(uint64_t handle, ChHandsNet net, int fd)
{
    Slot *slot = find(handle);

    if (slot == NULL)
        return false;
    ch_close_fd(&slot->entry.net_fds[net]);
    slot->entry.net_fds[net] = fd;
    return true;
}

bool
ch_pod_table_close_net(uint64_t handle)
{
    Slot *slot = find(handle);

    for (int net = 0; slot != NULL && net < CH_HANDS_NET_N; net++)
        ch_close_fd(&slot->entry.net_fds[net]);
    return slot != NULL;
}

bool
ch_pod_table_release(uint64_t handle)
{
    Slot *slot = find(handle);

    if (!ch_pod_table_close_net(handle))
        return false;
    close(slot->entry.pidfd);
    close(slot->entry.root_fd);
    slot->use++;
    return true;
}
