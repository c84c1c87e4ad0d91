/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/ownership.h"

#include "lib/base/errors.h"

/* --- what is to be done */

static void
add_step(GArray *plan, ChOwnershipKind kind, const char *name)
{
    const ChOwnershipStep step = {.kind = kind, .name = name};

    g_array_append_val(plan, step);
}

static void
add_device(GArray *plan, ChPodDevice device)
{
    ChOwnershipStep *last =
        plan->len > 0 ? &g_array_index(plan, ChOwnershipStep, plan->len - 1) : NULL;

    if (last == NULL || last->kind != CH_OWNERSHIP_DEVICES) {
        add_step(plan, CH_OWNERSHIP_DEVICES, NULL);
        last = &g_array_index(plan, ChOwnershipStep, plan->len - 1);
    }
    last->devices |= device;
}

/* An image that may have to be made, or, for another user than root, a directory to own. */
static void
add_disks(GArray *plan, const ChJson *vmi, bool is_nonroot)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        ChOwnershipStep step = {.kind = CH_OWNERSHIP_HOST_DISK};

        if (ch_host_disk_of(ch_json_item(volumes, i), &step.disk) &&
            (is_nonroot || step.disk.makes_image))
            g_array_append_val(plan, step);
    }
}

/* Row a: claims only; data volumes have their nodes by other means. */
static void
add_blocks(GArray *plan, const ChJson *vmi)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        const char *name = ch_json_string_at(volume, "name");
        const ChJson *status;

        if (name == NULL || ch_json_at(volume, "persistentVolumeClaim") == NULL)
            continue;
        status = ch_json_find(ch_json_at(vmi, "status", "volumeStatus"), "name", name);
        if (status == NULL)
            add_step(plan, CH_OWNERSHIP_NO_STATUS, name);
        else if (g_strcmp0(ch_json_string_at(status, "persistentVolumeClaimInfo", "volumeMode"),
                           "Block") == 0)
            add_step(plan, CH_OWNERSHIP_BLOCK, name);
    }
}

static bool
has_virtio_interface(const ChJson *interfaces)
{
    for (gsize i = 0; i < ch_json_length(interfaces); i++) {
        const char *model = ch_json_string_at(ch_json_item(interfaces, i), "model");

        if (model == NULL || model[0] == '\0' || g_str_equal(model, "virtio"))
            return true;
    }
    return false;
}

static void
add_nonroot(GArray *plan, const ChJson *vmi, const ChOwnershipOptions *options)
{
    const ChJson *devices = ch_json_at(vmi, "spec", "domain", "devices");
    const ChJson *interfaces = ch_json_at(devices, "interfaces");

    add_blocks(plan, vmi);
    add_device(plan, CH_POD_DEVICE_VFIO);
    if (has_virtio_interface(interfaces) && !options->use_emulation)
        add_device(plan, CH_POD_DEVICE_VHOST_NET);
    if (ch_json_length(interfaces) > 0 || ch_json_bool_at(devices, true, "autoattachPodInterface"))
        add_device(plan, CH_POD_DEVICE_TUN);
}

GArray *
ch_ownership_plan(const ChJson *vmi, const ChOwnershipOptions *options)
{
    const ChJson *domain = ch_json_at(vmi, "spec", "domain");
    const ChJson *filesystems = ch_json_at(domain, "devices", "filesystems");
    GArray *plan = g_array_new(FALSE, FALSE, sizeof(ChOwnershipStep));

    add_device(plan, options->is_mshv ? CH_POD_DEVICE_MSHV : CH_POD_DEVICE_KVM);
    if (ch_json_bool_at(domain, false, "devices", "autoattachVSOCK"))
        add_device(plan, CH_POD_DEVICE_VHOST_VSOCK);
    add_disks(plan, vmi, options->is_nonroot);
    if (ch_json_at(domain, "launchSecurity", "sev") != NULL ||
        ch_json_at(domain, "launchSecurity", "snp") != NULL)
        add_device(plan, CH_POD_DEVICE_SEV);
    if (options->is_nonroot)
        add_nonroot(plan, vmi, options);
    for (gsize i = 0; i < ch_json_length(filesystems); i++) {
        const char *name = ch_json_string_at(ch_json_item(filesystems, i), "name");

        add_step(plan, CH_OWNERSHIP_VIRTIOFS, name != NULL ? name : "");
    }
    return plan;
}

/* --- doing it */

static const char *
text_of(ChPodDevice device)
{
    switch (device) {
    case CH_POD_DEVICE_KVM:
        return "failed to set up file ownership for /dev/kvm: ";
    case CH_POD_DEVICE_MSHV:
        return "failed to set up file ownership for /dev/mshv: ";
    case CH_POD_DEVICE_VHOST_VSOCK:
        return "failed to set up file ownership for /dev/vhost-vsock: ";
    case CH_POD_DEVICE_SEV:
        return "failed to set SEV device owner: ";
    case CH_POD_DEVICE_VHOST_NET:
        return "Critical network error: failed to set up vhost-net device, ";
    case CH_POD_DEVICE_TUN:
        return "Critical network error: failed to set up tun device, ";
    case CH_POD_DEVICE_VFIO:
        break; /* names the node itself */
    }
    return "";
}

/* The hands did not get as far as to a device: the first one was to be done. */
static ChPodDevice
first_of(uint32_t devices)
{
    return devices & -devices;
}

/* A network device that cannot be given away fails the VM for ever, unless the failure says nothing
 * about the device. */
static ChOwnershipOutcome
own_devices(ChPod *pod, uint32_t devices, bool may_lack_kvm, GError **error)
{
    g_autoptr(GError) reason = NULL;
    ChPodDevice failed = 0;
    bool is_critical;

    if (ch_pod_own_devices(pod, devices, may_lack_kvm, &failed, &reason))
        return CH_OWNERSHIP_OK;
    if (failed == 0)
        failed = first_of(devices);
    is_critical = (failed == CH_POD_DEVICE_VHOST_NET || failed == CH_POD_DEVICE_TUN) &&
                  !ch_pod_error_is_passing(reason);
    (void)ch_fail(error, CH_ERROR_FAILED, "%s%s", text_of(failed), reason->message);
    return is_critical ? CH_OWNERSHIP_CRITICAL : CH_OWNERSHIP_RETRY;
}

static bool
prepare_disk(ChPod *pod,
             const ChHostDisk *disk,
             const ChOwnershipOptions *options,
             GPtrArray *tolerated,
             GError **error)
{
    int64_t size = 0;

    if (!ch_pod_prepare_disk(pod,
                             disk,
                             options->is_nonroot,
                             options->disk_reserve,
                             options->disk_tolerated_percent,
                             &size,
                             error))
        return false;
    if (size > 0 && size < disk->capacity)
        g_ptr_array_add(tolerated,
                        g_strdup_printf("PV size too small: expected %" G_GINT64_FORMAT
                                        " B, found %" G_GINT64_FORMAT
                                        " B. Using it anyway, it is within %d %% toleration",
                                        disk->capacity,
                                        size,
                                        options->disk_tolerated_percent));
    return true;
}

static bool
do_step(ChPod *pod,
        const ChOwnershipStep *step,
        const ChOwnershipOptions *options,
        GPtrArray *tolerated,
        GError **error)
{
    switch (step->kind) {
    case CH_OWNERSHIP_HOST_DISK:
        return prepare_disk(pod, &step->disk, options, tolerated, error);
    case CH_OWNERSHIP_BLOCK:
        return ch_pod_own_block(pod, step->name, error);
    case CH_OWNERSHIP_NO_STATUS:
        return ch_fail(
            error, CH_ERROR_NOT_FOUND, "missing volume status for volume %s", step->name);
    case CH_OWNERSHIP_VIRTIOFS:
        return ch_pod_own_virtiofs(pod, step->name, error);
    case CH_OWNERSHIP_DEVICES:
    case CH_OWNERSHIP_INVALID:
    case CH_OWNERSHIP_N:
        break;
    }
    g_assert_not_reached();
}

ChOwnershipOutcome
ch_ownership_apply(ChPod *pod,
                   const ChJson *vmi,
                   const ChOwnershipOptions *options,
                   GPtrArray *tolerated,
                   GError **error)
{
    g_autoptr(GArray) plan = ch_ownership_plan(vmi, options);

    for (guint i = 0; i < plan->len; i++) {
        const ChOwnershipStep *step = &g_array_index(plan, ChOwnershipStep, i);
        ChOwnershipOutcome outcome;

        if (step->kind == CH_OWNERSHIP_DEVICES)
            outcome = own_devices(pod, step->devices, options->use_emulation, error);
        else
            outcome = do_step(pod, step, options, tolerated, error) ? CH_OWNERSHIP_OK
                                                                    : CH_OWNERSHIP_RETRY;
        if (outcome != CH_OWNERSHIP_OK)
            return outcome;
    }
    return CH_OWNERSHIP_OK;
}
