/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pod-object.h"

#include <string.h>

#include "lib/base/time.h"
#include "local/podrunner/handover.h"
#include "local/podrunner/multus.h"
#include "local/podrunner/pod-layout.h"

#define CONTAINER       "compute"
#define DEFAULT_GRACE_S 30
#define MAX_GRACE_S     (24 * 3600)

int64_t
ch_vmi_grace_seconds(const ChJson *vmi)
{
    int64_t seconds = DEFAULT_GRACE_S;

    (void)ch_json_int_at(vmi, &seconds, "spec", "terminationGracePeriodSeconds");
    return CLAMP(seconds, 0, MAX_GRACE_S);
}

char *
ch_pod_cut_name(const char *name)
{
    gsize length = MIN(strlen(name), CH_POD_MAX_LABEL_BYTES);

    while (length > 0 && !g_ascii_isalnum(name[length - 1]))
        length--;
    return g_strndup(name, length);
}

static ChJson *
new_metadata(const ChJson *vmi, const char *name)
{
    const char *vmi_name = ch_json_string_at(vmi, "metadata", "name");
    const char *uid = ch_json_string_at(vmi, "metadata", "uid");
    g_autofree char *label = ch_pod_cut_name(vmi_name);
    ChJson *metadata = ch_json_new_object();
    ChJson *labels = ch_json_ensure_object(metadata, "labels");
    ChJson *owners = ch_json_new_array();
    ChJson *owner = ch_json_new_object();
    g_autoptr(ChJson) attachments = ch_multus_attachments(vmi);
    g_autofree char *networks = ch_multus_networks_text(attachments);

    ch_json_set_string(metadata, "name", name);
    ch_json_set_string(metadata, "namespace", ch_json_string_at(vmi, "metadata", "namespace"));
    ch_json_set_string(labels, "kubevirt.io", "virt-launcher");
    ch_json_set_string(labels, "kubevirt.io/created-by", uid);
    ch_json_set_string(labels, "vm.kubevirt.io/name", label);
    ch_json_set_string(
        ch_json_ensure_object(metadata, "annotations"), "kubevirt.io/domain", vmi_name);
    ch_json_set_string(
        ch_json_at(metadata, "annotations"), CH_MULTUS_NETWORKS_ANNOTATION, networks);
    ch_json_set_string(owner, "apiVersion", "kubevirt.io/v1");
    ch_json_set_string(owner, "kind", "VirtualMachineInstance");
    ch_json_set_string(owner, "name", vmi_name);
    ch_json_set_string(owner, "uid", uid);
    ch_json_set_bool(owner, "controller", true);
    ch_json_set_bool(owner, "blockOwnerDeletion", true);
    ch_json_append(owners, owner);
    ch_json_set(metadata, "ownerReferences", owners);
    return metadata;
}

static void
add_volume(ChJson *volumes, ChJson *mounts, const ChPodVolume *volume)
{
    ChJson *item = ch_json_new_object();
    ChJson *mount = ch_json_new_object();

    ch_json_set_string(item, "name", volume->name);
    ch_json_set(item, "emptyDir", ch_json_new_object());
    ch_json_append(volumes, item);
    ch_json_set_string(mount, "name", volume->name);
    ch_json_set_string(mount, "mountPath", volume->mount_path);
    if (volume->is_propagated)
        ch_json_set_string(mount, "mountPropagation", "HostToContainer");
    ch_json_append(mounts, mount);
}

static ChJson *
new_spec(const ChJson *vmi, const char *node_name, const char *image)
{
    ChJson *spec = ch_json_new_object();
    ChJson *containers = ch_json_new_array();
    ChJson *container = ch_json_new_object();
    ChJson *volumes = ch_json_new_array();
    ChJson *mounts = ch_json_new_array();
    ChJson *security = ch_json_ensure_object(spec, "securityContext");

    for (gsize i = 0; i < ch_pod_n_volumes; i++)
        add_volume(volumes, mounts, &ch_pod_volumes[i]);
    ch_json_set_string(container, "name", CONTAINER);
    ch_json_set_string(container, "image", image);
    ch_json_set(container, "volumeMounts", mounts);
    ch_json_append(containers, container);
    ch_json_set_int(security, "runAsUser", CH_POD_USER);
    ch_json_set_int(security, "fsGroup", CH_POD_USER);
    ch_json_set_string(spec, "nodeName", node_name);
    ch_json_set_string(spec, "restartPolicy", "Never");
    ch_json_set_int(
        spec, "terminationGracePeriodSeconds", ch_vmi_grace_seconds(vmi) + CH_POD_GRACE_PADDING_S);
    ch_json_set(spec, "containers", containers);
    ch_json_set(spec, "volumes", volumes);
    return spec;
}

ChJson *
ch_pod_object_new(const ChJson *vmi, const char *name, const char *node_name, const char *image)
{
    ChJson *pod = ch_json_new_object();

    ch_json_set_string(pod, "apiVersion", "v1");
    ch_json_set_string(pod, "kind", "Pod");
    ch_json_set(pod, "metadata", new_metadata(vmi, name));
    ch_json_set(pod, "spec", new_spec(vmi, node_name, image));
    ch_json_set_string(ch_json_ensure_object(pod, "status"), "phase", "Pending");
    ch_json_set_string(ch_json_at(pod, "status"), "qosClass", ch_vmi_qos_class(vmi));
    return pod;
}

/* --- status ----------------------------------------------------------------------------------- */

static void
add_condition(ChJson *conditions, const char *type, bool is_true, const char *now)
{
    ChJson *condition = ch_json_new_object();

    ch_json_set_string(condition, "type", type);
    ch_json_set_string(condition, "status", is_true ? "True" : "False");
    ch_json_set_string(condition, "lastTransitionTime", now);
    ch_json_append(conditions, condition);
}

static ChJson *
waiting_state(const ChPodState *state)
{
    ChJson *waiting = ch_json_new_object();

    ch_json_set_string(
        waiting, "reason", state->reason != NULL ? state->reason : "ContainerCreating");
    ch_json_set_string(waiting, "message", state->message);
    return waiting;
}

static ChJson *
terminated_state(const ChJson *old, const ChPodState *state, const char *now)
{
    ChJson *terminated = ch_json_new_object();
    const bool is_known = state->exit_code >= 0;

    ch_json_set_int(terminated, "exitCode", is_known ? state->exit_code : 137);
    ch_json_set_string(terminated,
                       "reason",
                       !is_known               ? "ContainerStatusUnknown"
                       : state->exit_code == 0 ? "Completed"
                                               : "Error");
    ch_json_set_string(
        terminated, "startedAt", ch_json_string_at(old, "state", "running", "startedAt"));
    ch_json_set_string(terminated, "finishedAt", now);
    return terminated;
}

static ChJson *
new_container_status(const ChJson *old, const ChPodState *state, const char *now)
{
    ChJson *status = ch_json_new_object();
    ChJson *container_state = ch_json_ensure_object(status, "state");
    ChJson *running = NULL;

    ch_json_set_string(status, "name", state->container != NULL ? state->container : CONTAINER);
    ch_json_set_string(status, "image", state->image);
    ch_json_set_string(status, "imageID", "");
    ch_json_set_int(status, "restartCount", 0);
    ch_json_set_bool(status, "ready", state->phase == CH_POD_PHASE_RUNNING);
    ch_json_set_bool(status, "started", state->phase == CH_POD_PHASE_RUNNING);
    switch (state->phase) {
    case CH_POD_PHASE_WAITING:
    case CH_POD_PHASE_STARTING:
        ch_json_set(container_state, "waiting", waiting_state(state));
        break;
    case CH_POD_PHASE_RUNNING:
        running = ch_json_ensure_object(container_state, "running");
        ch_json_set_string(running, "startedAt", now);
        break;
    case CH_POD_PHASE_ENDED:
        ch_json_set(container_state, "terminated", terminated_state(old, state, now));
        break;
    }
    return status;
}

/* As a kubelet tells them; they stay when the pod has ended. */
static void
set_addresses(ChJson *status, const char *ips)
{
    g_auto(GStrv) addresses = g_strsplit(ips != NULL ? ips : "", ",", -1);
    ChJson *array;

    if (addresses[0] == NULL)
        return;
    array = ch_json_new_array();
    for (gsize i = 0; addresses[i] != NULL; i++) {
        ChJson *item = ch_json_new_object();

        ch_json_set_string(item, "ip", addresses[i]);
        ch_json_append(array, item);
    }
    ch_json_set_string(status, "podIP", addresses[0]);
    ch_json_set(status, "podIPs", array);
}

void
ch_pod_object_set_state(ChJson *pod, const ChPodState *state)
{
    ChJson *status = ch_json_ensure_object(pod, "status");
    const bool is_running = state->phase == CH_POD_PHASE_RUNNING;
    const bool has_ended = state->phase == CH_POD_PHASE_ENDED;
    const char *phase = is_running              ? "Running"
                        : !has_ended            ? "Pending"
                        : state->exit_code == 0 ? "Succeeded"
                                                : "Failed";
    g_autofree char *now = ch_time_format(state->wall_us);
    ChJson *conditions = ch_json_new_array();
    ChJson *containers = ch_json_new_array();

    ch_json_set_string(status, "phase", phase);
    if (ch_json_string_at(status, "startTime") == NULL)
        ch_json_set_string(status, "startTime", now);
    set_addresses(status, state->ips);
    add_condition(conditions, "Initialized", true, now);
    add_condition(conditions, "Ready", is_running, now);
    add_condition(conditions, "ContainersReady", is_running, now);
    add_condition(conditions, "PodScheduled", true, now);
    ch_json_set(status, "conditions", conditions);
    ch_json_append(
        containers,
        new_container_status(ch_json_item(ch_json_at(status, "containerStatuses"), 0), state, now));
    ch_json_set(status, "containerStatuses", containers);
}
