/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pass.h"

#include "lib/base/time.h"
#include "local/podrunner/api.h"
#include "local/podrunner/pass-internal.h"
#include "local/podrunner/vmi-defaults.h"
#include "local/podrunner/vmi-network.h"

#define MAX_STEPS 16

typedef bool (*StepFunc)(ChPass *pass, GError **error);

/* --- helpers ---------------------------------------------------------------------------------- */

ChLogContext
ch_pass_log_context(const ChPass *pass)
{
    return (ChLogContext){.namespace_ = pass->input->namespace_,
                          .name = pass->input->name,
                          .kind = "VirtualMachineInstance",
                          .uid = pass->input->uid};
}

void
ch_pass_tell(const ChPass *pass, const char *type, const char *reason, const char *message)
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

void
ch_pass_log_stage(const ChPass *pass, const char *stage, int64_t wall_us)
{
    g_autofree char *when = ch_time_format_micro(wall_us);
    const ChLogField fields[] = {{"stage", stage, 0}, {"timestamp", when, 0}};
    ChLogContext context = ch_pass_log_context(pass);

    context.fields = fields;
    context.n_fields = G_N_ELEMENTS(fields);
    ch_log_info(&context, "stage finished");
}

bool
ch_pass_put_vmi(ChPass *pass, ChJson *vmi /* (transfer full) */, GError **error)
{
    g_autoptr(ChJson) edited = vmi;
    ChJson *stored = ch_api_put_vmi(pass->env->kube, edited, error);

    if (stored == NULL)
        return false;
    ch_json_unref(pass->vmi);
    pass->vmi = stored;
    return true;
}

bool
ch_pass_save_record(const ChPass *pass, GError **error)
{
    return ch_record_save(pass->record, pass->env->container.state_dir, error);
}

bool
ch_pass_set_pod_state(
    ChPass *pass, ChPodPhase phase, const char *reason, const char *message, GError **error)
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

ChPodSeen
ch_pass_seen_pod(const ChPass *pass)
{
    const bool is_ending = ch_json_at(pass->pod, "metadata", "deletionTimestamp") != NULL;

    if (pass->record == NULL)
        return CH_POD_SEEN_NONE;
    if (is_ending || pass->record->is_tidied || pass->container == CH_CONTAINER_ENDED)
        return CH_POD_SEEN_ENDING;
    return pass->container == CH_CONTAINER_READY ? CH_POD_SEEN_READY : CH_POD_SEEN_STARTING;
}

/* --- the walk --------------------------------------------------------------------------------- */

static const StepFunc steps[CH_STEP_N] = {
    [CH_STEP_REST] = ch_pass_step_rest,
    [CH_STEP_ACCEPT] = ch_pass_step_accept,
    [CH_STEP_CREATE_POD] = ch_pass_step_create_pod,
    [CH_STEP_START] = ch_pass_step_start,
    [CH_STEP_CONNECT] = ch_pass_step_connect,
    [CH_STEP_HAND_OVER] = ch_pass_step_hand_over,
    [CH_STEP_SYNC_READY] = ch_pass_step_sync_ready,
    [CH_STEP_FAIL] = ch_pass_step_fail,
    [CH_STEP_DELETE_POD] = ch_pass_step_delete_pod,
    [CH_STEP_STOP] = ch_pass_step_stop,
    [CH_STEP_TIDY] = ch_pass_step_tidy,
    [CH_STEP_FORGET_POD] = ch_pass_step_forget_pod,
    [CH_STEP_RELEASE] = ch_pass_step_release,
};

static ChPlanFacts
facts_of(const ChPass *pass)
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
walk(ChPass *pass, GError **error)
{
    const ChLogContext context = ch_pass_log_context(pass);

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
find_record(ChPass *pass)
{
    if (pass->record == NULL && pass->pod != NULL && pass->vmi != NULL)
        pass->record = ch_pass_new_record(pass, pass->pod);
}

static void
report(ChPass *pass, const GError *failure, ChPassResult *out_result)
{
    const ChLogContext context = ch_pass_log_context(pass);

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
has_no_pod_yet(const ChPass *pass)
{
    const ChVmiPhase phase = ch_plan_vmi_phase(ch_json_string_at(pass->vmi, "status", "phase"));

    return pass->vmi != NULL && (phase == CH_VMI_NEW || phase == CH_VMI_PENDING);
}

void
ch_pass_run(const ChPassEnv *env, const ChPassInput *input, ChPassResult *out_result)
{
    ChPass pass = {
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
        ch_pass_show_failure(&pass, "FailedCreate", failure->message);
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
