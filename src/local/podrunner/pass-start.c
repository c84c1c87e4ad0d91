/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pass-internal.h"

#include <signal.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/podrunner/api.h"
#include "local/podrunner/launch.h"
#include "local/podrunner/multus.h"
#include "local/podrunner/secondary.h"
#include "local/podrunner/vmi-defaults.h"
#include "local/podrunner/vmi-network.h"
#include "local/podrunner/vmi-volumes.h"
#include "local/podrunner/volume-pods.h"
#include "local/podrunner/volume-uses.h"

#define MAX_NAME_BYTES 220 /* of a VMI's name, within the pod's of at most 253 */

/* What the KubeVirt object says is asked when it is needed: once a VM. */
static bool
set_network_defaults(const ChPass *pass, ChJson *vmi, GError **error)
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

bool
ch_pass_step_accept(ChPass *pass, GError **error)
{
    g_autoptr(ChJson) vmi = ch_json_dup(pass->vmi);
    g_autofree char *uuid = g_uuid_string_random();
    const int64_t now_us = ch_time_wall_us();

    if (!set_network_defaults(pass, vmi, error) || !ch_vmi_check_volumes(vmi, error) ||
        !ch_vmi_set_defaults(vmi, pass->env->architecture, uuid, error))
        return false;
    ch_vmi_clear_failure(vmi);
    ch_vmi_set_phase(vmi, "Pending", now_us);
    (void)ch_vmi_set_ready(vmi, CH_POD_SEEN_NONE, now_us);
    if (!ch_pass_put_vmi(pass, g_steal_pointer(&vmi), error))
        return false;
    ch_pass_log_stage(pass, "accepted", now_us);
    return true;
}

ChRecord *
ch_pass_new_record(const ChPass *pass, const ChJson *pod)
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
create_pod(ChPass *pass, GError **error)
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
    pass->record = ch_pass_new_record(pass, stored);
    ch_pass_tell(pass, "Normal", "SuccessfulCreate", message);
    return ch_pass_save_record(pass, error);
}

bool
ch_pass_step_create_pod(ChPass *pass, GError **error)
{
    ChJson *vmi;
    const int64_t now_us = ch_time_wall_us();

    if (pass->record == NULL && !create_pod(pass, error))
        return false;
    vmi = ch_json_dup(pass->vmi);
    ch_vmi_set_phase(vmi, "Scheduling", now_us);
    (void)ch_vmi_set_ready(vmi, CH_POD_SEEN_STARTING, now_us);
    return ch_pass_put_vmi(pass, vmi, error);
}

void
ch_pass_show_failure(ChPass *pass, const char *reason, const char *message)
{
    g_autoptr(ChJson) vmi = ch_json_dup(pass->vmi);
    g_autoptr(GError) failure = NULL;
    const ChLogContext context = ch_pass_log_context(pass);

    ch_pass_tell(pass, "Warning", reason, message);
    if (ch_vmi_set_failure(vmi, reason, message, ch_time_wall_us()) &&
        !ch_pass_put_vmi(pass, g_steal_pointer(&vmi), &failure))
        ch_log_warning(&context, failure, "ignoring that the condition could not be stored");
    g_clear_error(&failure);
    if (!ch_pass_set_pod_state(pass, CH_POD_PHASE_WAITING, reason, message, &failure))
        ch_log_warning(&context, failure, "ignoring that the pod's status could not be stored");
}

bool
ch_pass_step_start(ChPass *pass, GError **error)
{
    const ChVolumePods pods = {pass->env, pass->vmi, pass->pod, pass->record};
    g_autoptr(GError) failure = NULL;
    const char *reason = CH_VOLUME_IN_USE;

    if (!ch_volume_uses_reserve(&pods, &failure) ||
        !ch_launch(pass->env, pass->vmi, pass->record, &reason, &failure)) {
        ch_pass_show_failure(pass, reason, failure->message);
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    if (!ch_pass_save_record(pass, error)) { /* no container without a record */
        (void)ch_container_signal(pass->record, SIGKILL, NULL);
        return false;
    }
    pass->container = CH_CONTAINER_STARTING;
    ch_pass_log_stage(pass, "created", ch_time_wall_us());
    return true;
}

/* A rule for the port of another VM would lead nowhere, or take it away from that one. All of them
 * or none: two VMs that want the same ones would wait for each other. */
static bool
take_ports(const ChPass *pass, const GArray *ports, GError **error)
{
    (void)ch_uses_release(pass->env->uses, pass->record, CH_PASS_PORTS);
    for (guint i = 0; i < ports->len; i++) {
        const ChHostPort *port = &g_array_index(ports, ChHostPort, i);
        g_autofree char *what = g_strdup_printf("port %u/%s", port->host, port->protocol);
        g_autofree char *user = NULL;

        if (!ch_uses_take(
                pass->env->uses, pass->record, CH_PASS_PORTS, &(ChUse){.what = what}, &user)) {
            (void)ch_uses_release(pass->env->uses, pass->record, CH_PASS_PORTS);
            return ch_fail(error,
                           CH_ERROR_EXISTS,
                           "%s of this machine, which " CH_HOST_PORTS_ANNOTATION
                           " names, is in use by %s",
                           what,
                           user);
        }
    }
    return true;
}

static bool
connect_pod(ChPass *pass, GError **error)
{
    g_autoptr(GArray) ports = ch_vmi_host_ports(pass->vmi, error);
    g_autoptr(ChJson) attachments = ch_multus_attachments(pass->vmi);

    if (ports == NULL || !ch_vmi_check_networks(pass->vmi, error) ||
        !ch_secondary_define(pass->env, attachments, error))
        return false;
    /* What is left of an earlier attempt goes first: its rules before others may have its ports. */
    if (!ch_pod_network_disconnect(&pass->env->network, pass->record, error) ||
        !take_ports(pass, ports, error))
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

bool
ch_pass_step_connect(ChPass *pass, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (!connect_pod(pass, &failure)) {
        ch_pass_show_failure(pass, "FailedCreatePodSandBox", failure->message);
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    ch_pass_log_stage(pass, "pod-network", ch_time_wall_us());
    return true;
}

bool
ch_pass_step_hand_over(ChPass *pass, GError **error)
{
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChJson) attachments = ch_record_list(pass->record->attachments);
    const int64_t now_us = ch_time_wall_us();

    if (!ch_secondary_annotate(pass->env, pass->record, &pass->pod, error) ||
        !ch_pass_set_pod_state(pass, CH_POD_PHASE_RUNNING, NULL, NULL, error))
        return false;
    vmi = ch_json_dup(pass->vmi);
    ch_vmi_clear_failure(vmi);
    ch_multus_set_interfaces(vmi, attachments);
    ch_vmi_hand_over(
        vmi, &(ChHandover){pass->env->node_name, pass->record->uid, pass->env->version}, now_us);
    (void)ch_vmi_set_ready(vmi, CH_POD_SEEN_READY, now_us);
    if (!ch_pass_put_vmi(pass, g_steal_pointer(&vmi), error))
        return false;
    ch_pass_log_stage(pass, "serving", now_us); /* the agent may have seen it by now */
    return true;
}

bool
ch_pass_step_fail(ChPass *pass, GError **error)
{
    g_autoptr(ChJson) vmi = ch_json_dup(pass->vmi);
    const int64_t now_us = ch_time_wall_us();

    ch_vmi_set_phase(vmi, "Failed", now_us);
    (void)ch_vmi_set_ready(vmi, ch_pass_seen_pod(pass), now_us);
    return ch_pass_put_vmi(pass, g_steal_pointer(&vmi), error);
}
