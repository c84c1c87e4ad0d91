/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/container-disks.h"

#include <errno.h>
#include <string.h>

#include "handler/pod/container-disks-internal.h"
#include "handler/pod/mount-record.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define GRACE_US (60 * CH_SECOND_US)

void
ch_disk_setup_init(ChDiskSetup *setup, const ChContainerDiskEnv *env, const ChJson *vmi)
{
    const char *uid = ch_json_string_at(vmi, "metadata", "uid");
    const char *pod_uid;
    ChJsonIter iter;
    ChJson *node;

    *setup = (ChDiskSetup){
        .env = env,
        .vmi = vmi,
        .namespace_ = ch_json_string_at(vmi, "metadata", "namespace"),
        .name = ch_json_string_at(vmi, "metadata", "name"),
        .uid = uid != NULL ? uid : "",
        .items = ch_disk_plan_new(vmi),
        .pods = g_ptr_array_new(),
    };
    ch_json_iter_init(&iter, ch_json_at(vmi, "status", "activePods"));
    while (ch_json_iter_next(&iter, &pod_uid, &node))
        if (ch_hands_uid_is_valid(pod_uid))
            g_ptr_array_add(setup->pods, (gpointer)pod_uid);
}

void
ch_disk_setup_clear(ChDiskSetup *setup)
{
    g_array_unref(setup->items);
    g_ptr_array_unref(setup->pods);
}

static ChLogContext
log_context(const ChDiskSetup *setup)
{
    return (ChLogContext){.kind = "VirtualMachineInstance",
                          .namespace_ = setup->namespace_,
                          .name = setup->name,
                          .uid = setup->uid};
}

/* --- whether there is anything to do. Spec: 05 §6.3 */

/* What a look ends with that is neither yes nor no. Returns 0: none of that. */
static int
look_failure(const ChHandsLook *look)
{
    if (look->dir_errno != 0 && look->dir_errno != ENOENT)
        return look->dir_errno;
    return look->binary_errno != ENOENT ? look->binary_errno : 0;
}

/* Pods of old have their images mounted by this agent, those of today by kubelet. */
static bool
needs_mounts(const ChDiskSetup *setup, bool *out_needs, GError **error)
{
    *out_needs = false;
    for (guint i = 0; i < setup->pods->len; i++) {
        g_autoptr(GError) reason = NULL;
        ChHandsRequest request;
        ChHandsReply reply = {0};
        int failure;

        if (ch_hands_request_for_uid(&request, CH_HANDS_OP_LOOK, setup->pods->pdata[i], &reason) &&
            ch_hands_call(setup->env->hands, &request, &reply, NULL, &reason)) {
            failure = look_failure(&reply.look);
            if (failure != 0)
                ch_fail_errno(&reason, failure, "look at pod '%s'", request.uid);
        }
        if (reason != NULL) {
            g_propagate_prefixed_error(
                error,
                g_steal_pointer(&reason),
                "fail to detect if bind mount needed for vmi: %s in namespace: %s. err: ",
                setup->name,
                setup->namespace_);
            return false;
        }
        if (reply.look.dir_errno == 0 && reply.look.binary_errno == 0)
            *out_needs = true;
    }
    return true;
}

/* --- whether the containers are up. Spec: 05 §6.4 */

bool
ch_disk_setup_find_source(ChDiskSetup *setup,
                          ChHandsMount mount,
                          unsigned index,
                          ChDiskSource *out_source,
                          GError **error)
{
    *out_source = (ChDiskSource){0};
    setup->n_dirs = 0;
    setup->target_uid = NULL;
    for (guint i = 0; i < setup->pods->len; i++) {
        ChHandsRequest request;
        ChHandsReply reply;

        if (!ch_hands_request_for_uid(
                &request, CH_HANDS_OP_SOURCE_LOOK, setup->pods->pdata[i], error))
            return false;
        request.mount = mount;
        request.index = index;
        if (!ch_hands_call(setup->env->hands, &request, &reply, NULL, error))
            return false;
        if (reply.look.dir_errno == 0) {
            setup->n_dirs++;
            setup->target_uid = setup->pods->pdata[i];
        }
        if (reply.look.socket_errno == 0 && out_source->uid == NULL)
            *out_source = (ChDiskSource){setup->pods->pdata[i], reply.look.process_errno == 0};
    }
    return true;
}

static ChContainerDisksOutcome
not_ready(const char *what, const char *name, int64_t waited_us, GError **error)
{
    if (waited_us <= GRACE_US)
        return CH_CONTAINER_DISKS_WAIT;
    (void)ch_fail(error, CH_ERROR_FAILED, "%s%s still not ready after one minute", what, name);
    return CH_CONTAINER_DISKS_FAILED;
}

/* @out_sources: for each item, and the kernel's container behind them when there is one */
static ChContainerDisksOutcome
find_sources(ChDiskSetup *setup, int64_t waited_us, GArray *sources, GError **error)
{
    ChDiskSource source;

    for (guint i = 0; i < setup->items->len; i++) {
        const ChDiskPlanItem *item = &g_array_index(setup->items, ChDiskPlanItem, i);

        if (item->mount != CH_HANDS_MOUNT_DISK)
            break;
        if (!ch_disk_setup_find_source(setup, item->mount, item->index, &source, error))
            return CH_CONTAINER_DISKS_FAILED;
        if (!source.is_up)
            return not_ready("containerdisk ", item->name, waited_us, error);
        g_array_append_val(sources, source);
    }
    if (!ch_disk_plan_has_kernel(setup->vmi))
        return CH_CONTAINER_DISKS_OK;
    if (!ch_disk_setup_find_source(setup, CH_HANDS_MOUNT_BOOT, 0, &source, error))
        return CH_CONTAINER_DISKS_FAILED;
    if (!source.is_up)
        return not_ready("kernelboot container", "", waited_us, error);
    g_array_append_val(sources, source);
    return CH_CONTAINER_DISKS_OK;
}

/* --- the record. Spec: 05 §6.2 */

/* The kernel's entry comes first, as in the Go agent's records. */
static bool
add_entry(ChDiskSetup *setup,
          ChMountRecord *record,
          ChHandsMount mount,
          unsigned index,
          const char *source_uid)
{
    g_autofree char *target =
        ch_disk_plan_target(setup->env->pods_dir, setup->target_uid, mount, index);
    g_autofree char *socket =
        ch_disk_plan_socket(ch_hands_peek_pods_dir(setup->env->hands), source_uid, mount, index);

    if (!ch_mount_record_add(record, target, socket))
        return false;
    if (mount == CH_HANDS_MOUNT_BOOT)
        g_ptr_array_insert(
            record->entries, 0, g_ptr_array_steal_index(record->entries, record->entries->len - 1));
    return true;
}

/* Before anything is mounted. What earlier passes wrote stays: there may be mounts of it. */
static bool
store_record(ChDiskSetup *setup, const GArray *sources, GError **error)
{
    g_autoptr(ChMountRecord) record =
        ch_mount_record_load(CH_MOUNT_RECORD_DISKS, setup->env->private_dir, setup->uid, error);
    bool is_changed;

    if (record == NULL)
        return false;
    is_changed = !record->is_stored;
    for (guint i = 0; i < sources->len; i++) {
        const ChDiskSource *source = &g_array_index(sources, ChDiskSource, i);
        /* The kernel's container is behind the disks, whether it has files or not. */
        const ChDiskPlanItem *item =
            i < setup->items->len ? &g_array_index(setup->items, ChDiskPlanItem, i) : NULL;
        const bool is_disk = item != NULL && item->mount == CH_HANDS_MOUNT_DISK;

        is_changed |= add_entry(setup,
                                record,
                                is_disk ? CH_HANDS_MOUNT_DISK : CH_HANDS_MOUNT_BOOT,
                                is_disk ? item->index : 0,
                                source->uid);
    }
    return !is_changed ||
           ch_mount_record_store(
               CH_MOUNT_RECORD_DISKS, setup->env->private_dir, setup->uid, record, error);
}

/* --- mounting. Spec: 05 §6.5, §6.6 */

/* (transfer full): what went wrong while the source of a disk was looked for; NULL: not that */
static char *
describe_disk_source(const ChDiskPlanItem *item, const ChHandsReply *reply, const char *why)
{
    if (reply->step == CH_HANDS_STEP_SOCKET && reply->errnum == ENOENT)
        return g_strdup("disk container is gone");
    if (reply->step == CH_HANDS_STEP_SOCKET || reply->step == CH_HANDS_STEP_PROCESS)
        return g_strdup_printf("failed to detect socket for containerDisk %s: %s", item->name, why);
    if (reply->step == CH_HANDS_STEP_ROOT)
        return g_strdup_printf(
            "failed to detect root mount point of containerDisk %s on the node: %s",
            item->name,
            why);
    if (reply->step == CH_HANDS_STEP_NO_IMAGE)
        return g_strdup("no file found in folder /disk, no disk present");
    if (reply->step == CH_HANDS_STEP_IMAGES)
        return g_strdup("more than one file found in folder /disk, only one disk is allowed");
    if (reply->step == CH_HANDS_STEP_IMAGE)
        return item->path[0] != '\0'
                   ? g_strdup_printf(
                         "failed to determine custom image path %s: %s", item->path, why)
                   : g_strdup_printf("failed to determine default image path: %s", why);
    return NULL;
}

/* (transfer full) */
static char *
describe_disk(const ChDiskPlanItem *item,
              const char *target,
              const ChHandsReply *reply,
              const char *why)
{
    g_autofree char *source = describe_disk_source(item, reply, why);

    if (source != NULL)
        return g_strdup_printf(
            "failed to find a sourceFile in containerDisk %s: %s", item->name, source);
    if (reply->step == CH_HANDS_STEP_DIR || reply->step == CH_HANDS_STEP_TARGET)
        return g_strdup_printf("failed to create mount point target: %s", why);
    if (reply->step == CH_HANDS_STEP_MOUNT)
        return g_strdup_printf("failed to bindmount containerDisk %s: %s", item->name, why);
    return g_strdup_printf("failed to determine if %s is already mounted: %s", target, why);
}

/* (transfer full) */
static char *
describe_kernel(const char *target, const ChHandsReply *reply, const char *why)
{
    const char *what = NULL;

    if (reply->step == CH_HANDS_STEP_DIR)
        what = "failed to get disk target dir";
    else if (reply->step == CH_HANDS_STEP_TARGET)
        what = "failed to create mount point target";
    else if (reply->step == CH_HANDS_STEP_SOCKET && reply->errnum != ECONNREFUSED)
        what = "failed to find socket path for kernel artifacts";
    else if (reply->step == CH_HANDS_STEP_SOCKET || reply->step == CH_HANDS_STEP_PROCESS)
        what = "failed to detect socket for kernelboot container";
    else if (reply->step == CH_HANDS_STEP_ROOT)
        what = "failed to detect root mount point of kernel/initrd container on the node";
    else if (reply->step == CH_HANDS_STEP_IMAGE)
        what = "failed to find kernel/initrd in the container";
    else if (reply->step == CH_HANDS_STEP_MOUNT)
        what = "failed to bindmount kernel-boot";
    if (what != NULL)
        return g_strdup_printf("error mounting kernel artifacts: %s: %s", what, why);
    return g_strdup_printf(
        "error mounting kernel artifacts: failed to determine if %s is already mounted: %s",
        target,
        why);
}

bool
ch_disk_item_request(ChHandsRequest *request,
                     ChHandsOp op,
                     const char *pod_uid,
                     const ChDiskPlanItem *item,
                     GError **error)
{
    if (!ch_hands_request_for_uid(request, op, pod_uid, error))
        return false;
    request->mount = item->mount;
    request->index = item->index;
    request->n_bytes = (uint32_t)MIN(strlen(item->path), CH_HANDS_PATH_SIZE);
    return request->n_bytes == 0 || ch_hands_path_is_valid(item->path, request->n_bytes) ||
           ch_fail_errno(error, EINVAL, "'%s' is no path of a file", item->path);
}

static bool
mount_item(ChDiskSetup *setup, const ChDiskPlanItem *item, const char *source_uid, GError **error)
{
    const ChLogContext context = log_context(setup);
    g_autofree char *target =
        ch_disk_plan_target(setup->env->pods_dir, setup->target_uid, item->mount, item->index);
    g_autoptr(GError) reason = NULL;
    g_autofree char *text = NULL;
    ChHandsReply reply = {0};
    ChHandsRequest request;

    reply.step = CH_HANDS_STEP_IMAGE; /* unless the hands say more */
    if (ch_disk_item_request(&request, CH_HANDS_OP_MOUNT, setup->target_uid, item, &reason) &&
        g_strlcpy(request.source_uid, source_uid, sizeof(request.source_uid)) > 0 &&
        ch_hands_call_with(setup->env->hands, &request, item->path, &reply, NULL, &reason)) {
        if (reply.size > 0)
            ch_log_info(&context,
                        "Bind mounting container disk at %s to %s (%s)",
                        item->path[0] != '\0' ? item->path : "/disk",
                        target,
                        item->name);
        return true;
    }
    text = item->mount == CH_HANDS_MOUNT_DISK ? describe_disk(item, target, &reply, reason->message)
                                              : describe_kernel(target, &reply, reason->message);
    g_set_error_literal(error, reason->domain, reason->code, text);
    return false;
}

static bool
mount_items(ChDiskSetup *setup, const GArray *sources, GError **error)
{
    /* Without a kernel's container there are as many sources as items; with one, its source is the
     * last, and that of all items from there on. */
    for (guint i = 0; i < setup->items->len; i++) {
        const ChDiskSource *source =
            &g_array_index(sources, ChDiskSource, MIN(i, sources->len - 1));

        if (!mount_item(setup, &g_array_index(setup->items, ChDiskPlanItem, i), source->uid, error))
            return false;
    }
    return true;
}

static bool
has_target(const ChDiskSetup *setup, GError **error)
{
    if (setup->n_dirs == 1)
        return true;
    if (setup->n_dirs == 0)
        return ch_fail(error, CH_ERROR_NOT_FOUND, "file does not exist");
    return ch_fail(error,
                   CH_ERROR_FAILED,
                   "Found multiple pods active for vmi %s/%s. Waiting on outdated pod directories "
                   "to be removed",
                   setup->namespace_,
                   setup->name);
}

ChContainerDisksOutcome
ch_container_disks_prepare(const ChContainerDiskEnv *env,
                           const ChJson *vmi,
                           bool image_volume,
                           int64_t waited_us,
                           GError **error)
{
    g_auto(ChDiskSetup) setup = {0};
    g_autoptr(GArray) sources = g_array_new(FALSE, FALSE, sizeof(ChDiskSource));
    ChContainerDisksOutcome outcome;
    bool needs = true;

    ch_disk_setup_init(&setup, env, vmi);
    if (setup.items->len == 0 && !ch_disk_plan_has_kernel(vmi))
        return CH_CONTAINER_DISKS_OK;
    if (image_volume && !needs_mounts(&setup, &needs, error))
        return CH_CONTAINER_DISKS_FAILED;
    if (!needs)
        return CH_CONTAINER_DISKS_OK;
    outcome = find_sources(&setup, waited_us, sources, error);
    if (outcome != CH_CONTAINER_DISKS_OK)
        return outcome;
    return has_target(&setup, error) && store_record(&setup, sources, error) &&
                   mount_items(&setup, sources, error)
               ? CH_CONTAINER_DISKS_OK
               : CH_CONTAINER_DISKS_FAILED;
}
