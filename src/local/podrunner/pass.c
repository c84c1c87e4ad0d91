/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pass.h"

#include <signal.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"
#include "local/podrunner/api.h"
#include "local/podrunner/handover.h"
#include "local/podrunner/hotplug.h"
#include "local/podrunner/launch.h"
#include "local/podrunner/multus.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/pod-object.h"
#include "local/podrunner/secondary-plan.h"
#include "local/podrunner/secondary.h"
#include "local/podrunner/vmi-defaults.h"
#include "local/podrunner/vmi-network.h"
#include "local/podrunner/vmi-volumes.h"
#include "local/podrunner/volume-pods.h"
#include "local/podrunner/volume-uses.h"

#define MAX_STEPS       16
#define PORTS           "host ports" /* a purpose of uses */
#define MAX_NAME_BYTES  220          /* of a VMI's name, within the pod's of at most 253 */
#define RM_TIMEOUT_US   (30 * CH_SECOND_US)
#define PLUG_RETRY_US   (CH_SECOND_US / 2) /* what a volume or network waits for is not watched */
#define FAILED_RETRY_US (2 * CH_SECOND_US) /* nor is what keeps a volume from coming */

typedef struct {
    const ChPassEnv *env;
    const ChPassInput *input;
    ChJson *vmi; /* (nullable) owned, as are the next two: as they are now */
    ChJson *pod;
    ChRecord *record;
    ChContainerPhase container;
    int64_t delay_us;
    bool is_over; /* nothing more before something changes */
    ChStep failed_step;
} Pass;

typedef bool (*StepFunc)(Pass *pass, GError **error);

/* --- helpers ---------------------------------------------------------------------------------- */

static ChLogContext
log_context(const Pass *pass)
{
    return (ChLogContext){.namespace_ = pass->input->namespace_,
                          .name = pass->input->name,
                          .kind = "VirtualMachineInstance",
                          .uid = pass->input->uid};
}

static void
tell(const Pass *pass, const char *type, const char *reason, const char *message)
{
    const ChObjectRef vmi = {
        .kind = "VirtualMachineInstance",
        .api_version = "kubevirt.io/v1",
        .namespace_ = pass->input->namespace_,
        .name = pass->input->name,
        .uid = pass->input->uid,
        .resource_version = ch_json_string_at(pass->vmi, "metadata", "resourceVersion"),
    };

    ch_recorder_event(pass->env->recorder, &vmi, type, reason, message);
}

/* For the waterfall of `chandler run`: what went before the agent. */
static void
log_stage(const Pass *pass, const char *stage, int64_t wall_us)
{
    g_autofree char *when = ch_time_format_micro(wall_us);
    const ChLogField fields[] = {{"stage", stage, 0}, {"timestamp", when, 0}};
    ChLogContext context = log_context(pass);

    context.fields = fields;
    context.n_fields = G_N_ELEMENTS(fields);
    ch_log_info(&context, "stage finished");
}

/* Stores @vmi, which becomes the current one. */
static bool
put_vmi(Pass *pass, ChJson *vmi /* (transfer full) */, GError **error)
{
    g_autoptr(ChJson) edited = vmi;
    ChJson *stored = ch_api_put_vmi(pass->env->kube, edited, error);

    if (stored == NULL)
        return false;
    ch_json_unref(pass->vmi);
    pass->vmi = stored;
    return true;
}

static bool
save_record(const Pass *pass, GError **error)
{
    return ch_record_save(pass->record, pass->env->container.state_dir, error);
}

static bool
set_pod_state(Pass *pass, ChPodPhase phase, const char *reason, const char *message, GError **error)
{
    g_autoptr(ChJson) pod = NULL;
    ChJson *stored;

    if (pass->pod == NULL)
        return true; /* somebody removed it */
    pod = ch_json_dup(pass->pod);
    ch_pod_object_set_state(pod,
                            &(ChPodState){.phase = phase,
                                          .reason = reason,
                                          .message = message,
                                          .exit_code = pass->input->exit_code,
                                          .image = pass->env->version,
                                          .ips = pass->record != NULL ? pass->record->ips : NULL,
                                          .wall_us = ch_time_wall_us()});
    stored = ch_api_put_pod_status(pass->env->kube, pod, error);
    if (stored == NULL)
        return false;
    ch_json_unref(pass->pod);
    pass->pod = stored;
    return true;
}

static ChPodSeen
seen_pod(const Pass *pass)
{
    const bool is_ending = ch_json_at(pass->pod, "metadata", "deletionTimestamp") != NULL;

    if (pass->record == NULL)
        return CH_POD_SEEN_NONE;
    if (is_ending || pass->record->is_tidied || pass->container == CH_CONTAINER_ENDED)
        return CH_POD_SEEN_ENDING;
    return pass->container == CH_CONTAINER_READY ? CH_POD_SEEN_READY : CH_POD_SEEN_STARTING;
}

/* --- steps of the start ----------------------------------------------------------------------- */

/* What the KubeVirt object says is asked when it is needed: once a VM. */
static bool
set_network_defaults(const Pass *pass, ChJson *vmi, GError **error)
{
    g_autoptr(GArray) ports = NULL;

    if (ch_vmi_wants_default_network(vmi)) {
        g_autoptr(ChJson) kubevirt = ch_api_get_kubevirt(pass->env->kube, error);

        if (kubevirt == NULL ||
            !ch_vmi_add_default_network(
                vmi,
                ch_json_string_at(
                    kubevirt, "spec", "configuration", "network", "defaultNetworkInterface"),
                error))
            return false;
    }
    if (!ch_vmi_check_networks(vmi, error))
        return false;
    ports = ch_vmi_host_ports(vmi, error);
    return ports != NULL;
}

static bool
step_accept(Pass *pass, GError **error)
{
    g_autoptr(ChJson) vmi = ch_json_dup(pass->vmi);
    g_autofree char *uuid = g_uuid_string_random();
    const int64_t now_us = ch_time_wall_us();

    if (!ch_vmi_check_volumes(vmi, error) || !set_network_defaults(pass, vmi, error) ||
        !ch_vmi_set_defaults(vmi, pass->env->architecture, uuid, error))
        return false;
    ch_vmi_clear_failure(vmi);
    ch_vmi_set_phase(vmi, "Pending", now_us);
    (void)ch_vmi_set_ready(vmi, CH_POD_SEEN_NONE, now_us);
    if (!put_vmi(pass, g_steal_pointer(&vmi), error))
        return false;
    log_stage(pass, "accepted", now_us);
    return true;
}

static ChRecord *
new_record(const Pass *pass, const ChJson *pod)
{
    ChRecord *record = g_new0(ChRecord, 1);

    record->uid = g_strdup(ch_json_string_at(pod, "metadata", "uid"));
    record->name = g_strdup(ch_json_string_at(pod, "metadata", "name"));
    record->namespace_ = g_strdup(pass->input->namespace_);
    record->vmi_name = g_strdup(pass->input->name);
    record->vmi_uid = g_strdup(pass->input->uid);
    record->grace_s = ch_vmi_grace_seconds(pass->vmi) + CH_POD_GRACE_PADDING_S;
    return record;
}

static bool
create_pod(Pass *pass, GError **error)
{
    g_autofree char *name = g_strdup_printf("virt-launcher-%.*s-%05x",
                                            MAX_NAME_BYTES,
                                            pass->input->name,
                                            (guint)g_random_int_range(0, 1 << 20));
    g_autofree char *message = g_strdup_printf("Created virtual machine pod %s", name);
    g_autoptr(ChJson) pod =
        ch_pod_object_new(pass->vmi, name, pass->env->node_name, pass->env->version);
    ChJson *stored = ch_api_create_pod(pass->env->kube, pod, error);

    if (stored == NULL)
        return false;
    ch_json_unref(pass->pod);
    pass->pod = stored;
    pass->record = new_record(pass, stored);
    tell(pass, "Normal", "SuccessfulCreate", message);
    return save_record(pass, error);
}

static bool
step_create_pod(Pass *pass, GError **error)
{
    ChJson *vmi;
    const int64_t now_us = ch_time_wall_us();

    if (pass->record == NULL && !create_pod(pass, error))
        return false;
    vmi = ch_json_dup(pass->vmi);
    ch_vmi_set_phase(vmi, "Scheduling", now_us);
    (void)ch_vmi_set_ready(vmi, CH_POD_SEEN_STARTING, now_us);
    return put_vmi(pass, vmi, error);
}

/* The VMI and its pod say why there is no container. What cannot be stored is tried again with the
 * next attempt. */
static void
show_failure(Pass *pass, const char *reason, const char *message)
{
    g_autoptr(ChJson) vmi = ch_json_dup(pass->vmi);
    g_autoptr(GError) failure = NULL;
    const ChLogContext context = log_context(pass);

    tell(pass, "Warning", reason, message);
    if (ch_vmi_set_failure(vmi, reason, message, ch_time_wall_us()) &&
        !put_vmi(pass, g_steal_pointer(&vmi), &failure))
        ch_log_warning(&context, failure, "ignoring that the condition could not be stored");
    g_clear_error(&failure);
    if (!set_pod_state(pass, CH_POD_PHASE_WAITING, reason, message, &failure))
        ch_log_warning(&context, failure, "ignoring that the pod's status could not be stored");
}

static bool
step_start(Pass *pass, GError **error)
{
    const ChVolumePods pods = {pass->env, pass->vmi, pass->pod, pass->record};
    g_autoptr(GError) failure = NULL;
    const char *reason = CH_VOLUME_IN_USE;

    if (!ch_volume_uses_reserve(&pods, &failure) ||
        !ch_launch(pass->env, pass->vmi, pass->record, &reason, &failure)) {
        show_failure(pass, reason, failure->message);
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    if (!save_record(pass, error)) { /* no container without a record */
        (void)ch_container_signal(pass->record, SIGKILL, NULL);
        return false;
    }
    pass->container = CH_CONTAINER_STARTING;
    log_stage(pass, "created", ch_time_wall_us());
    return true;
}

/* A rule for the port of another VM would lead nowhere, or take it away from that one. */
static bool
take_ports(const Pass *pass, const GArray *ports, GError **error)
{
    (void)ch_uses_release(pass->env->uses, pass->record, PORTS);
    for (guint i = 0; i < ports->len; i++) {
        const ChHostPort *port = &g_array_index(ports, ChHostPort, i);
        g_autofree char *what = g_strdup_printf("port %u/%s", port->host, port->protocol);
        g_autofree char *user = NULL;

        if (!ch_uses_take(pass->env->uses, pass->record, PORTS, &(ChUse){.what = what}, &user))
            return ch_fail(error,
                           CH_ERROR_EXISTS,
                           "%s of this machine, which " CH_HOST_PORTS_ANNOTATION
                           " names, is in use by %s",
                           what,
                           user);
    }
    return true;
}

static bool
connect_pod(Pass *pass, GError **error)
{
    g_autoptr(GArray) ports = ch_vmi_host_ports(pass->vmi, error);
    g_autoptr(ChJson) attachments = ch_multus_attachments(pass->vmi);

    if (ports == NULL || !ch_vmi_check_networks(pass->vmi, error) ||
        !ch_secondary_define(pass->env, attachments, error))
        return false;
    if (!take_ports(pass, ports, error))
        return false;
    return ch_pod_network_connect(
        &pass->env->network,
        pass->record,
        &(ChPodNetworkWish){.has_pod_network = ch_vmi_pod_network(pass->vmi) != NULL,
                            .ports = (const ChHostPort *)(gpointer)ports->data,
                            .n_ports = ports->len,
                            .attachments = attachments},
        error);
}

static bool
step_connect(Pass *pass, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (!connect_pod(pass, &failure)) {
        show_failure(pass, "FailedCreatePodSandBox", failure->message);
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    log_stage(pass, "pod-network", ch_time_wall_us());
    return true;
}

static bool
step_hand_over(Pass *pass, GError **error)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChJson) attachments = ch_record_list(pass->record->attachments);
    const int64_t now_us = ch_time_wall_us();

    if (!ch_secondary_annotate(pass->env, pass->record, &pass->pod, error) ||
        !set_pod_state(pass, CH_POD_PHASE_RUNNING, NULL, NULL, error))
        return false;
    vmi = ch_json_dup(pass->vmi);
    ch_vmi_clear_failure(vmi);
    ch_multus_set_interfaces(vmi, attachments);
    ch_vmi_hand_over(
        vmi, &(ChHandover){pass->env->node_name, pass->record->uid, pass->env->version}, now_us);
    (void)ch_vmi_set_ready(vmi, CH_POD_SEEN_READY, now_us);
    if (!put_vmi(pass, g_steal_pointer(&vmi), error))
        return false;
    log_stage(pass, "serving", now_us); /* the agent may have seen it by now */
    return true;
}

static const char *
message_of(const ChJson *vmi, const char *volume)
{
    return ch_json_string_at(
        ch_json_find(ch_json_at(vmi, "status", "volumeStatus"), "name", volume), "message");
}

/* Once, not at every attempt. */
static void
tell_failures(const Pass *pass, const ChJson *failures)
{
    ChJsonIter iter;
    const char *volume = NULL;
    ChJson *failure = NULL;

    ch_json_iter_init(&iter, failures);
    while (ch_json_iter_next(&iter, &volume, &failure)) {
        const char *message = ch_json_string_at(failure, "message");
        g_autofree char *text = g_strdup_printf("volume %s: %s", volume, message);

        if (g_strcmp0(message_of(pass->vmi, volume), message) != 0)
            tell(pass, "Warning", "FailedAttachVolume", text);
    }
}

static bool
is_pod_alive(const Pass *pass)
{
    return !pass->record->is_tidied && pass->pod != NULL &&
           (pass->container == CH_CONTAINER_STARTING || pass->container == CH_CONTAINER_READY);
}

/* Volumes that come and go while the launcher is there. */
static bool
sync_volumes(Pass *pass, ChJson *vmi, bool *out_is_changed, GError **error)
{
    g_autoptr(ChJson) claims = NULL;
    g_autoptr(ChJson) failures = NULL;
    g_autoptr(ChJson) attachments = NULL;
    bool is_waiting = false;

    if (!ch_volume_pods_update(&(ChVolumePods){pass->env, pass->vmi, pass->pod, pass->record},
                               &claims,
                               &failures,
                               &is_waiting,
                               error))
        return false;
    attachments = ch_record_list(pass->record->hotplugs);
    if (ch_hotplug_set_status(vmi, attachments, claims, failures))
        *out_is_changed = true;
    tell_failures(pass, failures);
    if (is_waiting)
        pass->delay_us = PLUG_RETRY_US;
    else if (ch_json_length(failures) > 0 && pass->delay_us < 0)
        pass->delay_us = FAILED_RETRY_US;
    return true;
}

/* Once, not at every attempt. */
static void
tell_troubles(Pass *pass, const ChJson *troubles)
{
    g_autoptr(ChJson) told = ch_record_list(pass->record->troubles);
    g_autoptr(ChJson) news = ch_secondary_news(told, troubles);

    for (gsize i = 0; i < ch_json_length(news); i++) {
        const ChJson *trouble = ch_json_item(news, i);
        g_autofree char *text = g_strdup_printf("network '%s': %s",
                                                ch_json_string_at(trouble, "network"),
                                                ch_json_string_at(trouble, "message"));

        tell(pass, "Warning", ch_json_string_at(trouble, "reason"), text);
    }
    ch_record_set_list(&pass->record->troubles, told);
    if (ch_json_length(news) > 0)
        (void)save_record(pass, NULL); /* else the next pod runner tells them once more */
}

/* The same of networks. What was done is told, whatever failed. */
static bool
sync_networks(Pass *pass, ChJson *vmi, bool *out_is_changed, GError **error)
{
    g_autoptr(ChJson) attachments = NULL;
    g_autoptr(ChJson) troubles = NULL;
    const ChJson *first;
    bool is_waiting = false;
    bool is_annotated;

    troubles = ch_secondary_update(&(ChSecondary){pass->env, pass->vmi, pass->record}, &is_waiting);
    tell_troubles(pass, troubles);
    if (is_waiting)
        pass->delay_us = PLUG_RETRY_US;
    is_annotated = ch_secondary_annotate(pass->env, pass->record, &pass->pod, error);
    attachments = ch_record_list(pass->record->attachments);
    if (ch_secondary_set_spec(vmi, attachments))
        *out_is_changed = true;
    if (ch_secondary_set_status(vmi, attachments))
        *out_is_changed = true;
    if (!is_annotated || ch_json_length(troubles) == 0)
        return is_annotated;
    first = ch_json_item(troubles, 0);
    return ch_fail(error,
                   CH_ERROR_FAILED,
                   "network '%s': %s",
                   ch_json_string_at(first, "network"),
                   ch_json_string_at(first, "message"));
}

/* The first that failed is what the pass failed of. */
static bool
sync_plugged(Pass *pass, ChJson *vmi, bool *out_is_changed, GError **error)
{
    g_autoptr(GError) failure = NULL;
    bool is_good;

    if (!is_pod_alive(pass))
        return true;
    is_good = sync_networks(pass, vmi, out_is_changed, error);
    if (sync_volumes(pass, vmi, out_is_changed, &failure))
        return is_good;
    if (!ch_api_is_conflict(failure))
        tell(pass, "Warning", "FailedAttachVolume", failure->message);
    if (is_good)
        g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

/* What cannot be plugged in is told, and does not keep the rest from going on. */
static bool
step_sync_ready(Pass *pass, GError **error)
{
    g_autoptr(ChJson) vmi = ch_json_dup(pass->vmi);
    g_autoptr(GError) failure = NULL;
    bool is_changed = false;

    pass->is_over = true;
    if (pass->record == NULL)
        return true;
    (void)sync_plugged(pass, vmi, &is_changed, &failure);
    if (ch_vmi_set_ready(vmi, seen_pod(pass), ch_time_wall_us()))
        is_changed = true;
    if (is_changed && !put_vmi(pass, g_steal_pointer(&vmi), error))
        return false;
    if (failure == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

static bool
step_fail(Pass *pass, GError **error)
{
    g_autoptr(ChJson) vmi = ch_json_dup(pass->vmi);
    const int64_t now_us = ch_time_wall_us();

    ch_vmi_set_phase(vmi, "Failed", now_us);
    (void)ch_vmi_set_ready(vmi, seen_pod(pass), now_us);
    return put_vmi(pass, g_steal_pointer(&vmi), error);
}

/* --- steps of the end ------------------------------------------------------------------------- */

static bool
step_delete_pod(Pass *pass, GError **error)
{
    if (!ch_api_delete_pod(
            pass->env->kube, pass->input->namespace_, pass->record->name, false, error))
        return false;
    /* What the server did to it comes over the watch; here it is enough to know that. */
    ch_json_set_string(ch_json_ensure_object(pass->pod, "metadata"), "deletionTimestamp", "now");
    return true;
}

static bool
step_stop(Pass *pass, GError **error)
{
    const int64_t now_us = ch_time_wall_us();
    const ChLogContext context = log_context(pass);
    int64_t kill_us;

    pass->is_over = true;
    if (pass->record->stop_us == 0) {
        ch_log_info(&context, "Stopping the pod %s", pass->record->name);
        if (!ch_container_signal(pass->record, SIGTERM, error))
            return false;
        pass->record->stop_us = now_us;
        if (!save_record(pass, error))
            return false;
    }
    kill_us = pass->record->stop_us + pass->record->grace_s * CH_SECOND_US;
    pass->delay_us = MAX(kill_us - now_us, CH_SECOND_US);
    if (now_us < kill_us)
        return true;
    ch_log_warning(&context, NULL, "the grace period is over: killing pod %s", pass->record->name);
    return ch_container_signal(pass->record, SIGKILL, error);
}

/* An event tells what is in the way, since nothing else shows why a VM does not go. */
static bool
disconnect(const Pass *pass, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (ch_pod_network_disconnect(&pass->env->network, pass->record, &failure)) {
        (void)ch_uses_release(pass->env->uses, pass->record, PORTS); /* its record is stored next */
        return true;
    }
    tell(pass, "Warning", "FailedKillPod", failure->message);
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

static bool
step_tidy(Pass *pass, GError **error)
{
    const ChLogContext context = log_context(pass);

    ch_log_info(&context,
                "The pod %s has ended with status %d",
                pass->record->name,
                pass->input->exit_code);
    if (!ch_volume_pods_remove_all(pass->env, pass->record, error) ||
        !ch_container_remove(pass->env->container.state_dir, pass->record->uid, error) ||
        !disconnect(pass, error))
        return false;
    pass->record->is_tidied = true;
    pass->record->pid = 0;
    pass->container = CH_CONTAINER_NONE;
    return save_record(pass, error) && set_pod_state(pass, CH_POD_PHASE_ENDED, NULL, NULL, error);
}

static bool
step_forget_pod(Pass *pass, GError **error)
{
    const char *name = ch_json_string_at(pass->pod, "metadata", "name");

    if (!ch_api_delete_pod(pass->env->kube, pass->input->namespace_, name, true, error))
        return false;
    g_clear_pointer(&pass->pod, ch_json_unref);
    return true;
}

static bool
step_release(Pass *pass, GError **error)
{
    ChJson *vmi = ch_json_dup(pass->vmi);

    ch_vmi_remove_finalizer(vmi);
    if (!put_vmi(pass, vmi, error))
        return false;
    g_clear_pointer(&pass->vmi, ch_json_unref); /* gone, or waits for others */
    return true;
}

/* With the VMI gone, so is every reason to remember its pod. */
static bool
forget_record(Pass *pass, GError **error)
{
    g_autofree char *run_dir = ch_pod_run_dir(pass->env->container.state_dir, pass->record->uid);
    const char *const argv[] = {"rm", "-rf", "--one-file-system", "--", run_dir, NULL};

    if (!ch_volume_pods_remove_all(pass->env, pass->record, error) ||
        !ch_container_remove(pass->env->container.state_dir, pass->record->uid, error) ||
        !disconnect(pass, error) ||
        !ch_command_run(&(ChCommand){argv, RM_TIMEOUT_US, 0, 0}, NULL, error))
        return false;
    g_clear_pointer(&pass->record, ch_record_free);
    return true;
}

static bool
step_rest(Pass *pass, GError **error)
{
    pass->is_over = true;
    if (pass->vmi == NULL && pass->record != NULL)
        return forget_record(pass, error);
    return true;
}

/* --- the walk --------------------------------------------------------------------------------- */

static const StepFunc steps[CH_STEP_N] = {
    [CH_STEP_REST] = step_rest,
    [CH_STEP_ACCEPT] = step_accept,
    [CH_STEP_CREATE_POD] = step_create_pod,
    [CH_STEP_START] = step_start,
    [CH_STEP_CONNECT] = step_connect,
    [CH_STEP_HAND_OVER] = step_hand_over,
    [CH_STEP_SYNC_READY] = step_sync_ready,
    [CH_STEP_FAIL] = step_fail,
    [CH_STEP_DELETE_POD] = step_delete_pod,
    [CH_STEP_STOP] = step_stop,
    [CH_STEP_TIDY] = step_tidy,
    [CH_STEP_FORGET_POD] = step_forget_pod,
    [CH_STEP_RELEASE] = step_release,
};

static ChPlanFacts
facts_of(const Pass *pass)
{
    return (ChPlanFacts){
        .vmi = pass->vmi == NULL
                   ? CH_VMI_GONE
                   : ch_plan_vmi_phase(ch_json_string_at(pass->vmi, "status", "phase")),
        .is_deleting = ch_json_at(pass->vmi, "metadata", "deletionTimestamp") != NULL,
        .has_finalizer = pass->vmi != NULL && ch_vmi_has_finalizer(pass->vmi),
        .has_pod = pass->pod != NULL,
        .is_pod_deleting = ch_json_at(pass->pod, "metadata", "deletionTimestamp") != NULL,
        .is_tidied = pass->record != NULL && pass->record->is_tidied,
        .needs_network =
            ch_vmi_needs_network(pass->vmi, pass->record != NULL ? pass->record->network : NULL),
        .container = pass->container,
    };
}

static bool
walk(Pass *pass, GError **error)
{
    const ChLogContext context = log_context(pass);

    for (int i = 0; i < MAX_STEPS && !pass->is_over; i++) {
        const ChPlanFacts facts = facts_of(pass);
        const ChStep step = ch_plan(&facts);

        ch_log_verbose(3, &context, "step: %s", ch_step_text(step));
        if (!steps[step](pass, error)) {
            pass->failed_step = step;
            return false;
        }
    }
    return true;
}

static ChJson *
parse_object(const ChObject *object, const char *uid)
{
    if (object == NULL || (uid != NULL && !g_str_equal(object->uid, uid)))
        return NULL;
    return ch_json_parse(object->text, (gssize)object->length, NULL); /* it was JSON before */
}

/* A pod whose record was lost before its container was made: it is started again. */
static void
find_record(Pass *pass)
{
    if (pass->record == NULL && pass->pod != NULL && pass->vmi != NULL)
        pass->record = new_record(pass, pass->pod);
}

static void
report(Pass *pass, const GError *failure, ChPassResult *out_result)
{
    const ChLogContext context = log_context(pass);

    out_result->record = g_steal_pointer(&pass->record);
    out_result->delay_us = pass->delay_us;
    out_result->pod = pass->pod != NULL ? ch_object_new(pass->pod, "v1", "Pod", NULL) : NULL;
    if (failure == NULL) {
        out_result->outcome = CH_PASS_DONE;
    } else if (ch_api_is_conflict(failure)) {
        out_result->outcome = CH_PASS_CONFLICT;
    } else {
        out_result->outcome = CH_PASS_FAILED;
        ch_log_error(&context,
                     failure,
                     "%s failed, retrying with back-off",
                     ch_step_text(pass->failed_step));
    }
}

/* Before there is a pod, nothing else would tell why the VM does not start. (Later failures of the
 * start are shown where they happen.) */
static bool
has_no_pod_yet(const Pass *pass)
{
    const ChVmiPhase phase = ch_plan_vmi_phase(ch_json_string_at(pass->vmi, "status", "phase"));

    return pass->vmi != NULL && (phase == CH_VMI_NEW || phase == CH_VMI_PENDING);
}

void
ch_pass_run(const ChPassEnv *env, const ChPassInput *input, ChPassResult *out_result)
{
    Pass pass = {
        .env = env,
        .input = input,
        .vmi = parse_object(input->vmi, input->uid),
        .pod = parse_object(input->pod, NULL),
        .record = input->record != NULL ? ch_record_dup(input->record) : NULL,
        .container = input->container,
        .delay_us = -1,
    };
    g_autoptr(GError) failure = NULL;

    find_record(&pass);
    (void)walk(&pass, &failure); /* the error says it all */
    if (failure != NULL && !ch_api_is_conflict(failure) && has_no_pod_yet(&pass))
        show_failure(&pass, "FailedCreate", failure->message);
    report(&pass, failure, out_result);
    ch_json_unref(pass.vmi);
    ch_json_unref(pass.pod);
    ch_record_free(pass.record);
}

void
ch_pass_input_free(ChPassInput *input)
{
    if (input == NULL)
        return;
    g_free(input->namespace_);
    g_free(input->name);
    g_free(input->uid);
    ch_object_unref(input->vmi);
    ch_object_unref(input->pod);
    ch_record_free(input->record);
    g_free(input);
}
