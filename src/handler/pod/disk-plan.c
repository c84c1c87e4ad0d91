/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/disk-plan.h"

#include <string.h>

#define DISKS_DIR  "volumes/kubernetes.io~empty-dir/container-disks"
#define KERNEL_DIR "kernel-boot"

static const char *
text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static const ChJson *
find_kernel(const ChJson *vmi)
{
    return ch_json_at(vmi, "spec", "domain", "firmware", "kernelBoot", "container");
}

bool
ch_disk_plan_has_kernel(const ChJson *vmi)
{
    return find_kernel(vmi) != NULL;
}

static void
add_disks(GArray *items, const ChJson *volumes)
{
    const gsize n = MIN(ch_json_length(volumes), CH_DISK_PLAN_MAX);

    for (gsize i = 0; i < n; i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        const ChJson *disk = ch_json_at(volume, "containerDisk");
        const ChDiskPlanItem item = {
            .mount = CH_HANDS_MOUNT_DISK,
            .index = (unsigned)i,
            .name = text_or_empty(ch_json_string_at(volume, "name")),
            .path = text_or_empty(ch_json_string_at(disk, "path")),
        };

        if (disk != NULL)
            g_array_append_val(items, item);
    }
}

static void
add_kernel(GArray *items, const ChJson *container, const char *name, const char *member)
{
    const ChDiskPlanItem item = {
        .mount = CH_HANDS_MOUNT_BOOT,
        .name = name,
        .path = text_or_empty(ch_json_string_at(container, member)),
    };

    if (item.path[0] != '\0')
        g_array_append_val(items, item);
}

GArray *
ch_disk_plan_new(const ChJson *vmi)
{
    GArray *items = g_array_new(FALSE, FALSE, sizeof(ChDiskPlanItem));
    const ChJson *container = find_kernel(vmi);

    add_disks(items, ch_json_at(vmi, "spec", "volumes"));
    add_kernel(items, container, CH_DISK_PLAN_KERNEL, "kernelPath");
    add_kernel(items, container, CH_DISK_PLAN_INITRD, "initrdPath");
    return items;
}

char *
ch_disk_plan_target(const char *dir, const char *pod_uid, ChHandsMount mount, unsigned index)
{
    return mount == CH_HANDS_MOUNT_DISK
               ? g_strdup_printf("%s/%s/" DISKS_DIR "/disk_%u.img", dir, pod_uid, index)
               : g_strdup_printf("%s/%s/" DISKS_DIR "/" KERNEL_DIR, dir, pod_uid);
}

char *
ch_disk_plan_socket(const char *dir, const char *pod_uid, ChHandsMount mount, unsigned index)
{
    return mount == CH_HANDS_MOUNT_DISK
               ? g_strdup_printf("%s/%s/" DISKS_DIR "/disk_%u.sock", dir, pod_uid, index)
               : g_strdup_printf("%s/%s/" DISKS_DIR "/" KERNEL_DIR ".sock", dir, pod_uid);
}

static bool
parse_name(const char *name, ChHandsMount *out_mount, unsigned *out_index)
{
    g_autofree char *number = NULL;
    guint64 index = 0;

    if (g_str_equal(name, KERNEL_DIR)) {
        *out_mount = CH_HANDS_MOUNT_BOOT;
        *out_index = 0;
        return true;
    }
    if (!g_str_has_prefix(name, "disk_") || !g_str_has_suffix(name, ".img"))
        return false;
    number = g_strndup(name + strlen("disk_"), strlen(name) - strlen("disk_.img"));
    if (!g_ascii_string_to_unsigned(number, 10, 0, CH_HANDS_MAX_INDEX, &index, NULL))
        return false;
    *out_mount = CH_HANDS_MOUNT_DISK;
    *out_index = (unsigned)index;
    return true;
}

bool
ch_disk_plan_parse_target(const char *path,
                          const char *dir,
                          char **out_pod_uid,
                          ChHandsMount *out_mount,
                          unsigned *out_index)
{
    g_autofree char *base = g_canonicalize_filename(dir, "/");
    g_autofree char *pod_uid = NULL;
    const char *rest, *slash;

    if (!g_str_has_prefix(path, base) || path[strlen(base)] != '/')
        return false;
    rest = path + strlen(base) + 1;
    slash = strchr(rest, '/');
    if (slash == NULL)
        return false;
    pod_uid = g_strndup(rest, (gsize)(slash - rest));
    if (!ch_hands_uid_is_valid(pod_uid) || !g_str_has_prefix(slash + 1, DISKS_DIR "/") ||
        !parse_name(slash + 1 + strlen(DISKS_DIR "/"), out_mount, out_index))
        return false;
    *out_pod_uid = g_steal_pointer(&pod_uid);
    return true;
}
