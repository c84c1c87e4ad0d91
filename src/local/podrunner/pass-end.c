/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pass-internal.h"

#include <signal.h>

#include "lib/base/time.h"
#include "lib/linux/command.h"
#include "local/podrunner/api.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/vmi-defaults.h"
#include "local/podrunner/volume-pods.h"

#define RM_TIMEOUT_US (30 * CH_SECOND_US)

bool
ch_pass_step_delete_pod(ChPass *pass, GError **error)
{
    if (!ch_api_delete_pod(
            pass->env->kube, pass->input->namespace_, pass->record->name, false, error))
        return false;
    /* What the server did to it comes over the watch; here it is enough to know that. */
    ch_json_set_string(ch_json_ensure_object(pass->pod, "metadata"), "deletionTimestamp", "now");
    return true;
}

bool
ch_pass_step_stop(ChPass *pass, GError **error)
{
    const int64_t now_us = ch_time_wall_us();
    const ChLogContext context = ch_pass_log_context(pass);
    int64_t kill_us;

    pass->is_over = true;
    if (pass->record->stop_us == 0) {
        ch_log_info(&context, "Stopping the pod %s", pass->record->name);
        if (!ch_container_signal(pass->record, SIGTERM, error))
            return false;
        pass->record->stop_us = now_us;
        if (!ch_pass_save_record(pass, error))
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
disconnect(const ChPass *pass, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (ch_pod_network_disconnect(&pass->env->network, pass->record, &failure)) {
        (void)ch_uses_release(
            pass->env->uses, pass->record, CH_PASS_PORTS); /* its record is stored next */
        return true;
    }
    ch_pass_tell(pass, "Warning", "FailedKillPod", failure->message);
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

bool
ch_pass_step_tidy(ChPass *pass, GError **error)
{
    const ChLogContext context = ch_pass_log_context(pass);

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
    return ch_pass_save_record(pass, error) &&
           ch_pass_set_pod_state(pass, CH_POD_PHASE_ENDED, NULL, NULL, error);
}

bool
ch_pass_step_forget_pod(ChPass *pass, GError **error)
{
    const char *name = ch_json_string_at(pass->pod, "metadata", "name");

    if (!ch_api_delete_pod(pass->env->kube, pass->input->namespace_, name, true, error))
        return false;
    g_clear_pointer(&pass->pod, ch_json_unref);
    return true;
}

bool
ch_pass_step_release(ChPass *pass, GError **error)
{
    ChJson *vmi = ch_json_dup(pass->vmi);

    ch_vmi_remove_finalizer(vmi);
    if (!ch_pass_put_vmi(pass, vmi, error))
        return false;
    g_clear_pointer(&pass->vmi, ch_json_unref); /* gone, or waits for others */
    return true;
}

/* With the VMI gone, so is every reason to remember its pod. */
static bool
forget_record(ChPass *pass, GError **error)
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

bool
ch_pass_step_rest(ChPass *pass, GError **error)
{
    pass->is_over = true;
    if (pass->vmi == NULL && pass->record != NULL)
        return forget_record(pass, error);
    return true;
}
