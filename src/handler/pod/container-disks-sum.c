/* SPDX-License-Identifier: Apache-2.0 */

/* container-disks-sum: checksums of the images, and of kernel and initrd. Spec: 05 §6.8. */

#include "handler/pod/container-disks-internal.h"

#include <errno.h>

#include "lib/base/errors.h"

void
ch_container_disk_sums_free(ChContainerDiskSums *sums)
{
    if (sums == NULL)
        return;
    g_array_unref(sums->disks);
    g_free(sums);
}

static bool
sum_item(ChDiskSetup *setup,
         const ChDiskPlanItem *item,
         uint32_t *out_crc,
         bool *out_is_gone,
         GError **error)
{
    ChDiskSource source;
    ChHandsRequest request;
    ChHandsReply reply = {0};

    if (!ch_disk_setup_find_source(setup, item->mount, item->index, &source, error))
        return false;
    *out_is_gone = source.uid == NULL;
    if (source.uid == NULL)
        return ch_fail(error, CH_ERROR_NOT_FOUND, "disk container is gone");
    if (!ch_disk_item_request(&request, CH_HANDS_OP_IMAGE_SUM, source.uid, item, error))
        return false;
    do {
        request.offset = reply.end;
        request.crc = reply.crc;
        request.dev = reply.end > 0 ? reply.target.dev : 0;
        request.ino = reply.end > 0 ? reply.target.ino : 0;
        if (!ch_hands_call_with(setup->env->hands, &request, item->path, &reply, NULL, error)) {
            *out_is_gone = reply.step == CH_HANDS_STEP_SOCKET &&
                           (reply.errnum == ENOENT || reply.errnum == ECONNREFUSED);
            g_prefix_error(error, "failed to compute the checksum of %s: ", item->name);
            return false;
        }
    } while (reply.end < reply.size && reply.end > request.offset);
    *out_crc = reply.crc;
    return true;
}

ChContainerDiskSums *
ch_container_disks_sum(const ChContainerDiskEnv *env,
                       const ChJson *vmi,
                       bool *out_is_gone,
                       GError **error)
{
    g_autoptr(ChContainerDiskSums) sums = g_new0(ChContainerDiskSums, 1);
    g_auto(ChDiskSetup) setup = {0};

    *out_is_gone = false;
    sums->disks = g_array_new(FALSE, FALSE, sizeof(ChContainerDiskSum));
    ch_disk_setup_init(&setup, env, vmi);
    for (guint i = 0; i < setup.items->len; i++) {
        const ChDiskPlanItem *item = &g_array_index(setup.items, ChDiskPlanItem, i);
        ChContainerDiskSum sum = {.volume = item->name};

        if (!sum_item(&setup, item, &sum.crc32, out_is_gone, error))
            return NULL;
        if (item->mount == CH_HANDS_MOUNT_DISK) {
            g_array_append_val(sums->disks, sum);
        } else if (g_str_equal(item->name, CH_DISK_PLAN_KERNEL)) {
            sums->has_kernel = true;
            sums->kernel = sum.crc32;
        } else {
            sums->has_initrd = true;
            sums->initrd = sum.crc32;
        }
    }
    return g_steal_pointer(&sums);
}
