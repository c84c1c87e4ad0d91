/* SPDX-License-Identifier: Apache-2.0 */

/* container-disks-unmount: takes away what was mounted, by the record and what the VMI says. Spec:
 * 05 §6.7. */

#include "handler/pod/container-disks-internal.h"

#include "handler/pod/mount-record.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"

typedef struct {
    char *pod_uid; /* owned */
    ChHandsMount mount;
    unsigned index;
} Mounted;

static void
mounted_clear(gpointer data)
{
    g_free(((Mounted *)data)->pod_uid);
}

static bool
unmount(const ChContainerDiskEnv *env, const Mounted *mounted, GError **error)
{
    g_autofree char *target =
        ch_disk_plan_target(env->pods_dir, mounted->pod_uid, mounted->mount, mounted->index);
    ChHandsReply reply = {0};
    ChHandsRequest request;

    if (!ch_hands_request_for_uid(&request, CH_HANDS_OP_UNMOUNT, mounted->pod_uid, error))
        return false;
    request.mount = mounted->mount;
    request.index = mounted->index;
    request.flags = CH_HANDS_REMOVE;
    if (ch_hands_call(env->hands, &request, &reply, NULL, error))
        return true;
    if (mounted->mount == CH_HANDS_MOUNT_BOOT)
        g_prefix_error(error, "error unmounting kernel artifacts: %s: ", target);
    else if (reply.step == CH_HANDS_STEP_UNMOUNT)
        g_prefix_error(error, "failed to unmount containerDisk %s: ", target);
    else
        g_prefix_error(error, "failed to check mount point for containerDisk %s: ", target);
    return false;
}

static void
add_mounted(GArray *list, const char *pod_uid, ChHandsMount mount, unsigned index)
{
    const Mounted added = {g_strdup(pod_uid), mount, index};

    g_array_append_val(list, added);
}

static bool
lists_kernel_of(const GArray *list, const char *pod_uid)
{
    for (guint i = 0; i < list->len; i++) {
        const Mounted *mounted = &g_array_index(list, Mounted, i);

        if (mounted->mount == CH_HANDS_MOUNT_BOOT && g_str_equal(mounted->pod_uid, pod_uid))
            return true;
    }
    return false;
}

/* The Go agent loses the entry of the kernel, and of a VMI that is gone nobody knows whether it had
 * one: each pod with an entry is looked at, and those of a VMI that has a kernel. */
static void
add_lost_kernels(GArray *list, const ChJson *vmi)
{
    const bool has_kernel = ch_disk_plan_has_kernel(vmi);
    const guint n = vmi == NULL || has_kernel ? list->len : 0;
    const char *active_uid;
    ChJsonIter iter;
    ChJson *node;

    for (guint i = 0; i < n; i++) {
        const char *pod_uid = g_array_index(list, Mounted, i).pod_uid;

        if (!lists_kernel_of(list, pod_uid))
            add_mounted(list, pod_uid, CH_HANDS_MOUNT_BOOT, 0);
    }
    ch_json_iter_init(&iter, has_kernel ? ch_json_at(vmi, "status", "activePods") : NULL);
    while (ch_json_iter_next(&iter, &active_uid, &node))
        if (ch_hands_uid_is_valid(active_uid) && !lists_kernel_of(list, active_uid))
            add_mounted(list, active_uid, CH_HANDS_MOUNT_BOOT, 0);
}

/* (transfer full): Mounted; NULL: the record names what cannot be a container disk's target */
static GArray *
read_entries(const ChContainerDiskEnv *env, const ChMountRecord *record, GError **error)
{
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(Mounted));

    g_array_set_clear_func(list, mounted_clear);
    for (guint i = 0; i < record->entries->len; i++) {
        const ChMountEntry *entry = record->entries->pdata[i];
        g_autofree char *pod_uid = NULL;
        ChHandsMount mount = CH_HANDS_MOUNT_NONE;
        unsigned index = 0;

        if (!ch_disk_plan_parse_target(
                entry->target_file, env->pods_dir, &pod_uid, &mount, &index)) {
            ch_fail(
                error,
                CH_ERROR_INVALID,
                "failed to check mount point for containerDisk %s: no place of a container disk",
                entry->target_file);
            return NULL;
        }
        add_mounted(list, pod_uid, mount, index);
    }
    return g_steal_pointer(&list);
}

bool
ch_container_disks_clean_up(const ChContainerDiskEnv *env,
                            const char *uid,
                            const ChJson *vmi,
                            GError **error)
{
    g_autoptr(ChMountRecord) record = NULL;
    g_autoptr(GArray) list = NULL;

    if (uid[0] == '\0')
        return true;
    record = ch_mount_record_load(CH_MOUNT_RECORD_DISKS, env->private_dir, uid, error);
    if (record == NULL) {
        if (ch_disk_plan_has_kernel(vmi))
            g_prefix_error(
                error, "error unmounting kernel artifacts: failed to get mount target record: ");
        return false;
    }
    list = read_entries(env, record, error);
    if (list == NULL)
        return false;
    add_lost_kernels(list, vmi);
    if (!record->is_stored)
        ch_log_info(NULL, "No container disk mount entries found to unmount");
    for (guint i = 0; i < list->len; i++)
        if (!unmount(env, &g_array_index(list, Mounted, i), error))
            return false;
    return !record->is_stored ||
           ch_mount_record_remove(CH_MOUNT_RECORD_DISKS, env->private_dir, uid, error);
}
