/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checksums of container disks and of the kernel that the VMI boots (02 §6.10).
 *
 * A checksum that happens to be 0 counts as missing, as the API leaves zeros out.
 */

#include "handler/reconcile/status-internal.h"

static bool
has_checksum(const ChJson *holder)
{
    int64_t checksum;

    return ch_json_int_at(holder, &checksum, "checksum") && checksum != 0;
}

static bool
is_container_disk(const ChJson *vmi, const char *volume)
{
    const ChJson *entry = ch_json_find(ch_json_at(vmi, "spec", "volumes"), "name", volume);

    return volume != NULL && ch_json_at(entry, "containerDisk") != NULL;
}

static bool
misses_disk(const ChJson *vmi)
{
    const ChJson *list = ch_json_at(vmi, "status", "volumeStatus");

    for (gsize i = 0; i < ch_json_length(list); i++) {
        const ChJson *entry = ch_json_item(list, i);

        if (is_container_disk(vmi, ch_json_string_at(entry, "name")) &&
            !has_checksum(ch_json_at(entry, "containerDiskVolume")))
            return true;
    }
    return false;
}

/* @path: member of the container that names the file; "" or absent: there is none */
static bool
misses_boot_file(const ChJson *container, const char *path, const ChJson *info)
{
    const char *text = ch_json_string_at(container, path);

    return text != NULL && text[0] != '\0' && !has_checksum(info);
}

static bool
misses_boot(const ChJson *vmi)
{
    const ChJson *container =
        ch_json_at(vmi, "spec", "domain", "firmware", "kernelBoot", "container");
    const ChJson *status = ch_json_at(vmi, "status", "kernelBootStatus");

    if (container == NULL)
        return false;
    return status == NULL ||
           misses_boot_file(container, "kernelPath", ch_json_at(status, "kernelInfo")) ||
           misses_boot_file(container, "initrdPath", ch_json_at(status, "initrdInfo"));
}

bool
ch_status_wants_checksums(const ChVmiView *vmi, const ChStatusNode *node, ChSyncOutcome sync)
{
    return !node->gate_image_volume && sync == CH_SYNC_OK && !vmi->is_deleting &&
           (misses_disk(vmi->document) || misses_boot(vmi->document));
}

static ChJson *
new_info(uint32_t checksum)
{
    ChJson *info = ch_json_new_object();

    if (checksum != 0)
        ch_json_set_int(info, "checksum", checksum);
    return info;
}

static void
set_boot(ChStatusPass *pass, const ChChecksums *checksums)
{
    ChJson *boot;

    if (checksums->kernel == NULL && checksums->initrd == NULL)
        return;
    boot = ch_json_new_object();
    if (checksums->kernel != NULL)
        ch_json_set(boot, "kernelInfo", new_info(*checksums->kernel));
    if (checksums->initrd != NULL)
        ch_json_set(boot, "initrdInfo", new_info(*checksums->initrd));
    ch_json_set(pass->status, "kernelBootStatus", boot);
}

void
ch_status_checksums(ChStatusPass *pass)
{
    const ChChecksums *checksums = pass->input->checksums;
    const ChJson *list = ch_json_at(pass->status, "volumeStatus");

    if (checksums == NULL || !ch_status_wants_checksums(&pass->old, pass->node, pass->input->sync))
        return;
    for (gsize i = 0; i < checksums->n_disks; i++) {
        ChJson *entry = ch_json_find(list, "name", checksums->disks[i].volume);

        if (entry != NULL)
            ch_json_set(entry, "containerDiskVolume", new_info(checksums->disks[i].crc32));
    }
    set_boot(pass, checksums);
}
