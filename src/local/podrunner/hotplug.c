/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/hotplug.h"

#include <string.h>

#include "lib/base/errors.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/pod-object.h"

bool
ch_hotplug_is_hotpluggable(const ChJson *volume)
{
    return ch_json_bool_at(volume, false, "persistentVolumeClaim", "hotpluggable") &&
           ch_json_string_at(volume, "persistentVolumeClaim", "claimName") != NULL &&
           ch_json_string_at(volume, "name") != NULL;
}

ChJson *
ch_hotplug_find(const ChJson *attachments, const char *volume)
{
    return ch_json_find(attachments, "volume", volume);
}

bool
ch_hotplug_is_wanted(const ChJson *vmi, const char *volume)
{
    return ch_hotplug_is_hotpluggable(
        ch_json_find(ch_json_at(vmi, "spec", "volumes"), "name", volume));
}

bool
ch_hotplug_may_go(const ChJson *vmi, const char *volume)
{
    const ChJson *status = ch_json_find(ch_json_at(vmi, "status", "volumeStatus"), "name", volume);
    const char *phase = ch_json_string_at(status, "phase");

    return !ch_hotplug_is_wanted(vmi, volume) && g_strcmp0(phase, "Ready") != 0 &&
           g_strcmp0(phase, "MountedToPod") != 0;
}

/* --- the status ------------------------------------------------------------------------------- */

static void
copy_member(ChJson *to, const char *key, const ChJson *value)
{
    if (value != NULL)
        ch_json_set(to, key, ch_json_dup(value));
}

static ChJson *
new_claim_info(const char *name, const ChJson *claim)
{
    const char *mode = ch_json_string_at(claim, "spec", "volumeMode");
    const ChJson *requests = ch_json_at(claim, "spec", "resources", "requests");
    const ChJson *capacity = ch_json_at(claim, "status", "capacity");
    ChJson *info = ch_json_new_object();

    copy_member(info, "accessModes", ch_json_at(claim, "spec", "accessModes"));
    copy_member(info, "capacity", capacity != NULL ? capacity : requests);
    ch_json_set_string(info, "claimName", name);
    copy_member(info, "requests", requests);
    ch_json_set_string(info, "volumeMode", mode != NULL ? mode : "Filesystem");
    return info;
}

static void
set_phase(ChJson *status, const char *phase, const char *reason, const char *message)
{
    ch_json_set_string(status, "phase", phase);
    ch_json_set_string(status, "reason", reason);
    ch_json_set_string(status, "message", message);
}

/* Before the agent took over. */
static bool
is_early(const char *phase, bool is_pod_ready)
{
    return phase == NULL || *phase == '\0' || g_str_equal(phase, "Pending") ||
           g_str_equal(phase, "Bound") || (g_str_equal(phase, "AttachedToNode") && !is_pod_ready);
}

/* What the status tells of. */
typedef struct {
    const ChJson *attachments, *claims, *failures;
} Facts;

static void
set_hotplug(ChJson *status, const char *claim_name, const ChJson *claim, const Facts *facts)
{
    const char *volume = ch_json_string_at(status, "name");
    const ChJson *attachment = ch_hotplug_find(facts->attachments, volume);
    const ChJson *failure = ch_json_at(facts->failures, volume);
    const char *pod = ch_json_string_at(attachment, "podName");
    const bool is_ready = ch_json_bool_at(attachment, false, "ready");
    ChJson *hotplug = ch_json_ensure_object(status, "hotplugVolume");
    g_autofree char *message = NULL;

    if (attachment != NULL)
        ch_json_set_string(hotplug, "attachPodName", pod);
    ch_json_set_string(
        hotplug, "attachPodUID", is_ready ? ch_json_string_at(attachment, "podUID") : NULL);
    if (!is_early(ch_json_string_at(status, "phase"), is_ready))
        return;
    if (failure != NULL) {
        set_phase(status,
                  attachment != NULL ? "AttachedToNode" : "Bound",
                  ch_json_string_at(failure, "reason"),
                  ch_json_string_at(failure, "message"));
    } else if (attachment != NULL) {
        message = g_strdup_printf("Volume %s is attached by the pod %s", volume, pod);
        set_phase(status, "AttachedToNode", "SuccessfulCreate", message);
    } else if (claim != NULL) {
        message = g_strdup_printf("The pod for the claim %s is not there yet", claim_name);
        set_phase(status, "Bound", "PVCNotReady", message);
    } else {
        message = g_strdup_printf("There is no claim %s", claim_name);
        set_phase(status, "Pending", "FailedPvcNotFound", message);
    }
}

/* (transfer full): of a volume of the spec. @old: (nullable) */
static ChJson *
new_status(const ChJson *volume, const ChJson *old, const Facts *facts)
{
    const char *name = ch_json_string_at(volume, "name");
    const char *claim_name = ch_json_string_at(volume, "persistentVolumeClaim", "claimName");
    const ChJson *claim = claim_name != NULL ? ch_json_at(facts->claims, claim_name) : NULL;
    ChJson *status = old != NULL ? ch_json_dup(old) : ch_json_new_object();

    ch_json_set_string(status, "name", name);
    if (!ch_json_has(status, "target"))
        ch_json_set_string(status, "target", "");
    if (claim != NULL)
        ch_json_set(status, "persistentVolumeClaimInfo", new_claim_info(claim_name, claim));
    if (ch_hotplug_is_hotpluggable(volume))
        set_hotplug(status, claim_name, claim, facts);
    return status;
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    const ChJson *const *left = a;
    const ChJson *const *right = b;

    return g_strcmp0(ch_json_string_at(*left, "name"), ch_json_string_at(*right, "name"));
}

bool
ch_hotplug_set_status(ChJson *vmi,
                      const ChJson *attachments,
                      const ChJson *claims,
                      const ChJson *failures)
{
    const Facts facts = {attachments, claims, failures};
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");
    ChJson *status = ch_json_ensure_object(vmi, "status");
    const ChJson *old = ch_json_at(status, "volumeStatus");
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    g_autoptr(ChJson) list = ch_json_new_array();

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        const char *name = ch_json_string_at(volume, "name");

        if (name != NULL)
            g_ptr_array_add(items, new_status(volume, ch_json_find(old, "name", name), &facts));
    }
    for (gsize i = 0; i < ch_json_length(old); i++) {
        const ChJson *item = ch_json_item(old, i);
        const char *name = ch_json_string_at(item, "name");

        if (ch_json_find(volumes, "name", name) == NULL &&
            ch_hotplug_find(attachments, name) != NULL)
            g_ptr_array_add(items, ch_json_dup(item));
    }
    g_ptr_array_sort(items, compare_names);
    for (guint i = 0; i < items->len; i++)
        ch_json_append(list, items->pdata[i]);
    if (old != NULL ? ch_json_equal(old, list) : items->len == 0)
        return false;
    ch_json_set(status, "volumeStatus", g_steal_pointer(&list));
    return true;
}

/* --- claims and pods -------------------------------------------------------------------------- */

bool
ch_claim_read(const ChJson *claim, ChClaim *out_claim, GError **error)
{
    const char *name = ch_json_string_at(claim, "metadata", "name");
    const char *path =
        ch_json_string_at(claim, "metadata", "annotations", CH_CLAIM_PATH_ANNOTATION);
    const char *uid = ch_json_string_at(claim, "metadata", "uid");

    if (path == NULL || !g_path_is_absolute(path))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "the claim %s has no absolute path in its annotation %s: that says what it "
                       "stands for on this machine",
                       name,
                       CH_CLAIM_PATH_ANNOTATION);
    if (uid == NULL || strchr(uid, '/') != NULL || *uid == '.' || *uid == '\0')
        return ch_fail(error, CH_ERROR_INVALID, "the claim %s has no usable UID", name);
    *out_claim = (ChClaim){
        .path = path,
        .uid = uid,
        .is_block = g_strcmp0(ch_json_string_at(claim, "spec", "volumeMode"), "Block") == 0,
    };
    return true;
}

bool
ch_claim_bind(ChJson *claim)
{
    ChJson *status = ch_json_ensure_object(claim, "status");

    if (g_strcmp0(ch_json_string_at(status, "phase"), "Bound") == 0)
        return false;
    ch_json_set_string(status, "phase", "Bound");
    copy_member(status, "accessModes", ch_json_at(claim, "spec", "accessModes"));
    copy_member(status, "capacity", ch_json_at(claim, "spec", "resources", "requests"));
    return true;
}

static ChJson *
new_owner(const ChJson *launcher)
{
    ChJson *owner = ch_json_new_object();

    ch_json_set_string(owner, "apiVersion", "v1");
    ch_json_set_string(owner, "kind", "Pod");
    ch_json_set_string(owner, "name", ch_json_string_at(launcher, "metadata", "name"));
    ch_json_set_string(owner, "uid", ch_json_string_at(launcher, "metadata", "uid"));
    ch_json_set_bool(owner, "controller", true);
    ch_json_set_bool(owner, "blockOwnerDeletion", true);
    return owner;
}

static ChJson *
one(ChJson *item /* (transfer full) */)
{
    ChJson *array = ch_json_new_array();

    ch_json_append(array, item);
    return array;
}

static ChJson *
new_container(const ChJson *claim, const char *volume, const char *image)
{
    ChJson *container = ch_json_new_object();
    ChJson *use = ch_json_new_object();
    g_autofree char *mount_path = g_strconcat("/", volume, NULL);
    g_autofree char *device_path =
        g_strjoin("/", "/path", volume, ch_json_string_at(claim, "metadata", "uid"), NULL);
    const bool is_block = g_strcmp0(ch_json_string_at(claim, "spec", "volumeMode"), "Block") == 0;

    ch_json_set_string(use, "name", volume);
    ch_json_set_string(
        use, is_block ? "devicePath" : "mountPath", is_block ? device_path : mount_path);
    ch_json_set_string(container, "name", CH_POD_HOTPLUG_CONTAINER);
    ch_json_set_string(container, "image", image);
    ch_json_set(container, is_block ? "volumeDevices" : "volumeMounts", one(use));
    return container;
}

static ChJson *
new_volumes(const ChJson *claim, const char *volume)
{
    ChJson *shared = ch_json_new_object();
    ChJson *data = ch_json_new_object();
    ChJson *volumes = one(shared);

    ch_json_set_string(shared, "name", CH_POD_HOTPLUG_VOLUME);
    (void)ch_json_ensure_object(shared, "emptyDir");
    ch_json_set_string(data, "name", volume);
    ch_json_set_string(ch_json_ensure_object(data, "persistentVolumeClaim"),
                       "claimName",
                       ch_json_string_at(claim, "metadata", "name"));
    ch_json_append(volumes, data);
    return volumes;
}

ChJson *
ch_hotplug_pod_new(const ChJson *launcher,
                   const ChJson *claim,
                   const char *name,
                   const char *volume,
                   const char *node_name,
                   const char *image)
{
    ChJson *pod = ch_json_new_object();
    ChJson *metadata = ch_json_ensure_object(pod, "metadata");
    ChJson *spec = ch_json_ensure_object(pod, "spec");

    ch_json_set_string(pod, "apiVersion", "v1");
    ch_json_set_string(pod, "kind", "Pod");
    ch_json_set_string(metadata, "name", name);
    ch_json_set_string(metadata, "namespace", ch_json_string_at(launcher, "metadata", "namespace"));
    ch_json_set_string(ch_json_ensure_object(metadata, "labels"), "kubevirt.io", "hotplug-disk");
    ch_json_set(metadata, "ownerReferences", one(new_owner(launcher)));
    ch_json_set_string(spec, "nodeName", node_name);
    ch_json_set_string(spec, "restartPolicy", "Never");
    ch_json_set_int(spec, "terminationGracePeriodSeconds", 0);
    ch_json_set(spec, "containers", one(new_container(claim, volume, image)));
    ch_json_set(spec, "volumes", new_volumes(claim, volume));
    ch_json_set_string(ch_json_ensure_object(pod, "status"), "phase", "Pending");
    return pod;
}
