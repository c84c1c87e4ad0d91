/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/handover.h"

#include "lib/base/quantity.h"
#include "lib/base/time.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/vmi-defaults.h"

void
ch_vmi_set_phase(ChJson *vmi, const char *phase, int64_t wall_us)
{
    ChJson *status = ch_json_ensure_object(vmi, "status");
    ChJson *stamps = ch_json_ensure_array(status, "phaseTransitionTimestamps");
    g_autofree char *now = ch_time_format(wall_us);

    ch_json_set_string(status, "phase", phase);
    (void)ch_json_ensure_object(status, "guestOSInfo");
    if (ch_json_find(stamps, "phase", phase) != NULL)
        return;
    ChJson *stamp = ch_json_new_object();
    ch_json_set_string(stamp, "phase", phase);
    ch_json_set_string(stamp, "phaseTransitionTimestamp", now);
    ch_json_append(stamps, stamp);
}

void
ch_vmi_hand_over(ChJson *vmi, const ChHandover *handover, int64_t wall_us)
{
    ChJson *status = ch_json_ensure_object(vmi, "status");
    ChJson *labels = ch_json_ensure_object(ch_json_ensure_object(vmi, "metadata"), "labels");

    ch_vmi_set_phase(vmi, "Scheduled", wall_us);
    ch_json_set_string(status, "nodeName", handover->node_name);
    ch_json_set_string(
        ch_json_ensure_object(status, "activePods"), handover->pod_uid, handover->node_name);
    ch_json_set_int(status, "runtimeUser", CH_POD_USER);
    ch_json_set_string(status, "qosClass", ch_vmi_qos_class(vmi));
    ch_json_set_string(status, "launcherContainerImageVersion", handover->launcher_version);
    ch_json_set_string(labels, "kubevirt.io/nodeName", handover->node_name);
    ch_json_set_string(labels, "kubevirt.io/created-by", ch_json_string_at(vmi, "metadata", "uid"));
}

/* --- conditions ------------------------------------------------------------------------------- */

typedef struct {
    const char *type, *status, *reason, *message;
} Condition;

static bool
set_condition(ChJson *vmi, const Condition *wanted, int64_t wall_us)
{
    ChJson *conditions = ch_json_ensure_array(ch_json_ensure_object(vmi, "status"), "conditions");
    ChJson *condition = ch_json_find(conditions, "type", wanted->type);
    g_autofree char *now = ch_time_format(wall_us);
    const bool is_same_status =
        condition != NULL && g_strcmp0(ch_json_string_at(condition, "status"), wanted->status) == 0;

    if (is_same_status && g_strcmp0(ch_json_string_at(condition, "reason"), wanted->reason) == 0 &&
        g_strcmp0(ch_json_string_at(condition, "message"), wanted->message) == 0)
        return false;
    if (condition == NULL) {
        condition = ch_json_new_object();
        ch_json_append(conditions, condition);
    }
    ch_json_set_string(condition, "type", wanted->type);
    ch_json_set_string(condition, "status", wanted->status);
    ch_json_set_string(condition, "lastProbeTime", now);
    if (!is_same_status)
        ch_json_set_string(condition, "lastTransitionTime", now);
    ch_json_set_string(condition, "reason", wanted->reason);
    ch_json_set_string(condition, "message", wanted->message);
    return true;
}

bool
ch_vmi_set_ready(ChJson *vmi, ChPodSeen seen, int64_t wall_us)
{
    static const Condition no_pod = {
        "Ready", "False", "PodNotExists", "virt-launcher pod has not yet been scheduled"};
    static const Condition ending = {
        "Ready", "False", "PodTerminating", "virt-launcher pod is terminating"};
    static const Condition not_running = {
        "Ready", "False", "GuestNotRunning", "Guest VM is not reported as running"};
    static const Condition ready = {"Ready", "True", NULL, NULL};
    const char *phase = ch_json_string_at(vmi, "status", "phase");
    const Condition *wanted = seen == CH_POD_SEEN_NONE           ? &no_pod
                              : seen == CH_POD_SEEN_ENDING       ? &ending
                              : g_strcmp0(phase, "Running") != 0 ? &not_running
                                                                 : &ready;

    return set_condition(vmi, wanted, wall_us);
}

bool
ch_vmi_set_failure(ChJson *vmi, const char *reason, const char *message, int64_t wall_us)
{
    return set_condition(vmi, &(Condition){"Synchronized", "False", reason, message}, wall_us);
}

void
ch_vmi_clear_failure(ChJson *vmi)
{
    ChJson *conditions = ch_json_at(vmi, "status", "conditions");
    gsize index = 0;

    if (ch_json_find_index(conditions, "type", "Synchronized", &index) != NULL)
        ch_json_remove_item(conditions, index);
}

/* --- the finalizer ---------------------------------------------------------------------------- */

static bool
find_finalizer(const ChJson *vmi, gsize *out_index)
{
    const ChJson *finalizers = ch_json_at(vmi, "metadata", "finalizers");

    for (gsize i = 0; i < ch_json_length(finalizers); i++) {
        if (g_strcmp0(ch_json_as_string(ch_json_item(finalizers, i)), CH_VMI_FINALIZER) == 0) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

bool
ch_vmi_has_finalizer(const ChJson *vmi)
{
    gsize index = 0;

    return find_finalizer(vmi, &index);
}

void
ch_vmi_remove_finalizer(ChJson *vmi)
{
    gsize index = 0;

    while (find_finalizer(vmi, &index))
        ch_json_remove_item(ch_json_at(vmi, "metadata", "finalizers"), index);
}

/* --- class of service ------------------------------------------------------------------------- */

static bool
is_limited_to_request(const ChJson *resources, const char *resource)
{
    const char *request = ch_json_string_at(resources, "requests", resource);
    const char *limit = ch_json_string_at(resources, "limits", resource);
    ChQuantity a, b;

    if (limit == NULL)
        return false;
    if (request == NULL)
        return true; /* the API server takes the limit as the request */
    return ch_quantity_parse(request, &a, NULL) && ch_quantity_parse(limit, &b, NULL) &&
           ch_quantity_compare(&a, &b) == 0;
}

const char *
ch_vmi_qos_class(const ChJson *vmi)
{
    const ChJson *resources = ch_json_at(vmi, "spec", "domain", "resources");

    return is_limited_to_request(resources, "cpu") && is_limited_to_request(resources, "memory")
               ? "Guaranteed"
               : "Burstable";
}
