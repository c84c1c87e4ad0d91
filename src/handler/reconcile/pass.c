/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/pass.h"

#include <string.h>

#include "handler/reconcile/cluster-lookup.h"
#include "handler/reconcile/observe.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

void
ch_pass_free(ChPass *pass)
{
    if (pass == NULL)
        return;
    g_free(pass->key);
    g_free(pass->namespace_);
    g_free(pass->name);
    g_free(pass->ghost_uid);
    g_free(pass->ghost_socket);
    g_free(pass->found_socket);
    ch_object_unref(pass->object);
    ch_cluster_config_unref(pass->config);
    g_clear_pointer(&pass->plugins, g_bytes_unref);
    ch_json_unref(pass->document);
    ch_json_unref(pass->launcher_document);
    ch_domain_unref(pass->domain);
    g_free(pass->write.body);
    g_free(pass->write.stored);
    ch_event_free(pass->write.phase_event);
    g_clear_error(&pass->error);
    g_free(pass);
}

void
ch_pass_requeue_after(ChPass *pass, int64_t delay_us)
{
    if (delay_us > 0 && (pass->requeue_us == 0 || delay_us < pass->requeue_us))
        pass->requeue_us = delay_us;
}

const ChJson *
ch_pass_launcher_document(const ChPass *pass)
{
    return pass->launcher_document != NULL ? pass->launcher_document : pass->document;
}

ChLogContext
ch_pass_log_context(const ChPass *pass)
{
    return (ChLogContext){.controller = "vm",
                          .namespace_ = pass->namespace_,
                          .name = pass->name,
                          .kind = "VirtualMachineInstance",
                          .uid = ch_decide_uid(&pass->facts)};
}

void
ch_pass_record(const ChPass *pass, ChEvent *event)
{
    const char *version = ch_json_string_at(pass->document, "metadata", "resourceVersion");
    const ChObjectRef object = {.kind = "VirtualMachineInstance",
                                .api_version = "kubevirt.io/v1",
                                .namespace_ = pass->namespace_,
                                .name = pass->name,
                                .uid = ch_decide_uid(&pass->facts),
                                .resource_version = version != NULL ? version : ""};

    ch_recorder_event(pass->env->recorder, &object, event->type, event->reason, event->message);
    ch_event_free(event);
}

ChLauncherVmi
ch_pass_launcher_vmi(const ChPass *pass, const char *uid, GArray **out_pods)
{
    GArray *pods = g_array_new(FALSE, FALSE, sizeof(ChLauncherPod));
    int64_t user = 0;
    ChJsonIter iter;
    const char *pod_uid;
    ChJson *node;

    ch_json_iter_init(&iter, ch_json_at(pass->document, "status", "activePods"));
    while (ch_json_iter_next(&iter, &pod_uid, &node)) {
        const ChLauncherPod pod = {pod_uid, ch_json_as_string(node)};

        g_array_append_val(pods, pod);
    }
    *out_pods = pods;
    return (ChLauncherVmi){
        .namespace_ = pass->namespace_,
        .name = pass->name,
        .uid = uid,
        .pods = (const ChLauncherPod *)(gpointer)pods->data,
        .n_pods = pods->len,
        .known_socket = g_strcmp0(pass->ghost_uid, uid) == 0 ? pass->ghost_socket : NULL,
        .found_socket = g_strcmp0(pass->vmi.uid, uid) == 0 ? pass->found_socket : NULL,
        .is_nonroot =
            (ch_json_int_at(pass->document, &user, "status", "runtimeUser") && user != 0) ||
            ch_json_at(pass->document, "metadata", "annotations", "kubevirt.io/nonroot") != NULL,
    };
}

/* --- facts */

static void
take_document(ChPass *pass, ChJson *document /* (transfer full) */)
{
    ch_json_unref(pass->document);
    pass->document = document;
    ch_vmi_view_init(&pass->vmi, document);
    pass->facts.vmi = &pass->vmi;
    pass->facts.existence = CH_EXISTENCE_EXISTS;
}

/* Whether the VMI's own guest was seen alive. */
static bool
is_seen_alive(const ChPass *pass)
{
    const ChDomain *domain = ch_domain_live(pass->domain);

    return ch_domain_is_alive(domain) && domain->status != CH_DOMAIN_UNKNOWN &&
           g_str_equal(domain->uid, pass->vmi.uid);
}

/* The final phase that an earlier pass computed, unless it is stored, which an earlier agent did
 * not live to see, or the guest did not end after all. */
static void
recall_phase(ChPass *pass)
{
    if (pass->document == NULL)
        return;
    if (ch_phase_is_final(pass->vmi.phase) || is_seen_alive(pass))
        ch_controller_forget_phase(pass->controller, pass->vmi.uid);
    pass->facts.remembered = ch_controller_recall_phase(pass->controller, pass->vmi.uid);
}

/* Fills the facts that the snapshot gives. Returns: false when an object cannot be read */
static bool
gather_facts(ChPass *pass, GError **error)
{
    g_autoptr(ChGhostRecord) record =
        ch_ghost_records_find(pass->env->records, pass->namespace_, pass->name);

    if (record != NULL) {
        pass->ghost_uid = g_strdup(record->uid);
        pass->ghost_socket = g_strdup(record->socket_file);
    }
    pass->facts = (ChFacts){.node = pass->env->node_name,
                            .ghost_uid = pass->ghost_uid,
                            .expectations_satisfied = pass->expectations_satisfied,
                            .now_us = ch_time_wall_us()};
    if (pass->object != NULL) {
        ChJson *document = ch_json_parse(pass->object->text, (gssize)pass->object->length, error);

        if (document == NULL)
            return false;
        take_document(pass, document);
    }
    pass->facts.domain = pass->domain;
    recall_phase(pass);
    return true;
}

static const ChLauncherState launcher_states[] = {
    [CH_LAUNCHER_LIVENESS_NOT_INITIALIZED] = CH_LAUNCHER_NOT_INITIALIZED,
    [CH_LAUNCHER_LIVENESS_UNRESPONSIVE] = CH_LAUNCHER_UNRESPONSIVE,
    [CH_LAUNCHER_LIVENESS_RESPONSIVE] = CH_LAUNCHER_RESPONSIVE,
};

static ChLauncherState
probe_launcher(ChPass *pass)
{
    g_autoptr(GArray) pods = NULL;
    const ChLauncherVmi vmi = ch_pass_launcher_vmi(pass, pass->vmi.uid, &pods);

    g_clear_pointer(&pass->found_socket, g_free);
    return launcher_states[ch_launcher_clients_probe(
        pass->env->clients, &vmi, ch_time_now_us(), &pass->found_socket)];
}

/* The VMI's pods say nothing about another VM: its own record does, else its entry. */
static ChLauncherState
probe_stale(const ChPass *pass, const char *uid)
{
    g_autoptr(ChGhostRecord) record =
        ch_ghost_records_find(pass->env->records, pass->namespace_, pass->name);
    const ChLauncherVmi vmi = {.namespace_ = pass->namespace_, .name = pass->name, .uid = uid};

    if (record != NULL && g_str_equal(record->uid, uid))
        return launcher_states[ch_launcher_clients_probe_socket(pass->env->clients,
                                                                record->socket_file)];
    return launcher_states[ch_launcher_clients_probe(
        pass->env->clients, &vmi, ch_time_now_us(), NULL)];
}

static bool
ask_cluster(ChPass *pass, GError **error)
{
    ChJson *document = NULL;

    if (!ch_cluster_lookup_vmi(pass->env->kube, pass->namespace_, pass->name, &document, error))
        return false;
    if (document == NULL) {
        pass->facts.existence = CH_EXISTENCE_GONE;
        return true;
    }
    take_document(pass, document);
    recall_phase(pass);
    return true;
}

/* Carries out an action of decide's first group. */
static bool
fetch_fact(ChPass *pass, GError **error)
{
    const ChDecision *decision = &pass->decision;

    if (decision->action == CH_ACTION_ASK_CLUSTER) {
        return ask_cluster(pass, error);
    } else if (decision->action == CH_ACTION_PROBE_LAUNCHER) {
        pass->facts.launcher = probe_launcher(pass);
    } else if (decision->action == CH_ACTION_PROBE_STALE) {
        pass->facts.stale_launcher = probe_stale(pass, decision->uid);
    } else if (decision->action == CH_ACTION_CLEAN_UP_FAILED) {
        pass->facts.cleaned_up_failed = true;
        return ch_act_clean_up(pass, decision->uid, error);
    } else if (decision->action == CH_ACTION_ASK_IO_RETRY) {
        pass->facts.io_retry_delay_us = ch_controller_ask_io_retry(pass->controller, decision->uid);
        pass->facts.io_retry =
            pass->facts.io_retry_delay_us > 0 ? CH_IO_RETRY_LATER : CH_IO_RETRY_NOW;
    }
    return true;
}

static void
decide_once(ChPass *pass)
{
    const char *uid = ch_decide_uid(&pass->facts);

    pass->facts.stopping_for_us = ch_controller_stopping_for(pass->controller, uid, false);
    pass->facts.is_sync_fresh = ch_controller_is_sync_fresh(pass->controller, uid);
    pass->decision = ch_decide(&pass->facts);
}

static bool
decide(ChPass *pass, GError **error)
{
    for (decide_once(pass); ch_action_fetches_fact(pass->decision.action); decide_once(pass)) {
        if (!fetch_fact(pass, error))
            return false;
    }
    return true;
}

/* --- status */

static bool
has_true_condition(const ChJson *vmi, const char *type)
{
    const ChJson *condition = ch_json_find(ch_json_at(vmi, "status", "conditions"), "type", type);

    return g_strcmp0(ch_json_string_at(condition, "status"), "True") == 0;
}

/* Takes what ch_status() made: its events, and what is to be written. */
static void
take_status(ChPass *pass, ChStatusResult *status)
{
    for (guint i = 0; i < status->events->len; i++)
        ch_pass_record(pass, g_steal_pointer(&status->events->pdata[i]));
    ch_pass_requeue_after(pass, status->requeue_us);
    if (!status->changed)
        return;
    pass->write = (ChPassWrite){.body = ch_json_print(status->vmi, NULL),
                                .phase = status->phase,
                                .phase_event = g_steal_pointer(&status->phase_event),
                                .has_agent = has_true_condition(status->vmi, "AgentConnected")};
}

/* Not with each pass: when the agent came, or is good enough by now. 02 §8.6 */
static void
log_agent(const ChPass *pass, const ChGuestInfo *info, const char *const *versions)
{
    const ChLogContext context = ch_pass_log_context(pass);
    const bool is_news = !has_true_condition(pass->document, "AgentConnected") ||
                         has_true_condition(pass->document, "AgentVersionNotSupported");
    g_autofree char *reason = ch_guest_agent_unsupported_reason(info, pass->document, versions);

    if (reason == NULL && (is_news || ch_log_wants(3)))
        ch_log_info(&context, "This guest agent is supported");
}

static bool
update_status(ChPass *pass, const ChActResult *act, GError **error)
{
    const ChReconcileEnv *env = pass->env;
    const ChDomain *domain = ch_domain_live(pass->domain);
    const ChStatusNode node = {
        .name = env->node_name,
        .architecture = env->architecture,
        .cpu_model = env->cpu_model,
        .gate_vgpu_live_migration = ch_cluster_config_has_gate(pass->config, "VGPULiveMigration"),
        .gate_cross_architecture =
            ch_cluster_config_has_gate(pass->config, "CrossArchitectureVirtualization"),
        .gate_image_volume = ch_cluster_config_has_gate(pass->config, "ImageVolume"),
        .eviction_strategy = pass->config->eviction_strategy,
        .agent_versions = (const char *const *)pass->config->supported_guest_agent_versions,
        .permitted_mdevs = (const char *const *)pass->config->permitted_mdevs,
        .migratable_plugins = (const char *const *)pass->config->migratable_bindings,
    };
    g_auto(ChObservations) observations = {0};
    g_autoptr(ChStatusResult) status = NULL;
    ChStatusInput input = {.vmi = pass->document,
                           .domain = domain,
                           .launcher = pass->facts.launcher,
                           .remembered = pass->facts.remembered,
                           .sync = act->outcome,
                           .sync_text = act->error != NULL ? act->error->message : NULL,
                           .selinux_context = env->selinux_context,
                           .now_us = ch_time_wall_us()};

    if (ch_phase_is_final(pass->vmi.phase))
        return true;
    if (!ch_observe(pass, domain, &observations, error))
        return false;
    if (ch_status_wants_checksums(&pass->vmi, &node, act->outcome) &&
        !ch_observe_checksums(pass, &observations, error))
        return false;
    ch_observations_fill(&observations, &input);
    status = ch_status(&input, &node);
    if (observations.guest_info != NULL)
        log_agent(pass, observations.guest_info, node.agent_versions);
    take_status(pass, status);
    return true;
}

/* --- the pass */

/* How the VM is is said at each change, and at each pass only to who asks for more. FR-A10 */
static void
log_sync(ChPass *pass)
{
    const ChLogContext context = ch_pass_log_context(pass);
    g_autofree char *line = ch_decide_log_line(
        pass->facts.existence == CH_EXISTENCE_EXISTS ? &pass->vmi : NULL, pass->domain);

    pass->is_news = ch_controller_is_news(pass->controller, pass, line);
    if (pass->is_news)
        ch_log_info(&context, "%s", line);
    else
        ch_log_verbose(3, &context, "%s", line);
    if (pass->facts.existence == CH_EXISTENCE_GONE && pass->domain != NULL &&
        pass->domain->uid[0] != '\0')
        ch_log_info(&context, "Using cached UID for vmi found in domain cache");
    if (pass->facts.io_retry == CH_IO_RETRY_LATER)
        ch_log_info(&context,
                    "Delay vm update for %f seconds",
                    (double)pass->facts.io_retry_delay_us / CH_SECOND_US);
    ch_log_verbose(
        3, &context, "%s: %s", ch_action_text(pass->decision.action), pass->decision.reason);
}

static void
log_ignored(const ChPass *pass)
{
    const ChLogContext context = ch_pass_log_context(pass);
    const ChDomain *domain = ch_domain_live(pass->domain);
    bool is_ours = pass->document == NULL || ch_vmi_is_owned_by(&pass->vmi, pass->env->node_name);

    if (is_ours && domain != NULL && domain->status == CH_DOMAIN_UNKNOWN &&
        !g_str_equal(domain->reason_text, CH_DOMAIN_REASON_AWAITED))
        ch_log_warning(
            &context,
            NULL,
            "Domain has Unknown status (virt-launcher unreachable), skipping processing for %s",
            pass->key);
    else
        ch_log_verbose(3, &context, "ignore: %s", pass->decision.reason);
}

/* The domain that says how the VM ended goes before the phase is stored. 01 trap 7 */
static void
save_final_phase(const ChPass *pass)
{
    const ChDomain *domain = ch_domain_live(pass->domain);
    ChPhaseVerdict verdict;

    if (pass->decision.action != CH_ACTION_DELETE || !pass->decision.updates_status ||
        domain == NULL)
        return;
    verdict = ch_phase_decide(&pass->vmi, domain, pass->facts.launcher, pass->facts.remembered);
    if (verdict.kind == CH_PHASE_VERDICT_CHANGE && ch_phase_is_final(verdict.phase))
        ch_controller_remember_phase(pass->controller, pass->vmi.uid, verdict.phase);
}

/* What was done, then the status. Spec 01 §18.2, §18.3 */
static bool
carry_out(ChPass *pass, GError **error)
{
    const ChLogContext context = ch_pass_log_context(pass);
    ChActResult act;
    g_autoptr(GError) act_error = NULL;

    log_sync(pass);
    if (pass->decision.post_stop_hook &&
        !ch_act_run_hooks(pass, CH_HOOK_POST_VM_STOP, pass->decision.uid, error))
        return false;
    save_final_phase(pass);
    CH_CRASH_POINT("pass/decided");
    act = ch_act(pass);
    act_error = act.error;
    CH_CRASH_POINT("pass/acted");
    if (act_error != NULL && pass->document != NULL && !ch_phase_is_final(pass->vmi.phase)) {
        ch_pass_record(pass, ch_event_new(CH_EVENT_SYNC_FAILED, act_error->message));
        ch_log_error(&context, act_error, "Synchronizing the VirtualMachineInstance failed.");
        if (act.outcome == CH_SYNC_CRITICAL_NETWORK)
            ch_log_error(&context,
                         NULL,
                         "virt-launcher crashed due to a network error. Updating VMI %s status to "
                         "Failed",
                         pass->name);
    }
    if (pass->decision.updates_status && !update_status(pass, &act, error)) {
        ch_log_error(&context, *error, "Updating the VirtualMachineInstance status failed.");
        return false;
    }
    if (act_error == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&act_error));
    return false;
}

static bool
run(ChPass *pass, GError **error)
{
    if (strchr(pass->name, '/') != NULL)
        return ch_fail(error, CH_ERROR_INVALID, "unexpected key format: \"%s\"", pass->key);
    if (!gather_facts(pass, error))
        return false;
    if (pass->object != NULL && !ch_phase_is_final(pass->vmi.phase) &&
        pass->vmi.phase != CH_PHASE_RUNNING)
        ch_controller_stage(pass->controller, pass, CH_STAGE_SEEN);
    if (!decide(pass, error))
        return false;
    if (pass->decision.drops_expectations)
        ch_controller_drop_expectations(pass->controller, pass->key);
    ch_pass_requeue_after(pass, pass->decision.requeue_us);
    if (pass->decision.action != CH_ACTION_IGNORE && pass->decision.action != CH_ACTION_LISTEN)
        return carry_out(pass, error);
    log_ignored(pass);
    (void)ch_act(pass); /* neither fails */
    return true;
}

void
ch_pass_log_failure(const ChPass *pass)
{
    const ChLogContext context = ch_pass_log_context(pass);

    if (pass->error != NULL)
        ch_log_info_reason(
            &context, pass->error, "re-enqueuing VirtualMachineInstance %s", pass->key);
}

void
ch_pass_run(ChPass *pass)
{
    (void)run(pass, &pass->error);
    CH_CRASH_POINT("pass/run");
    pass->facts.domain = NULL; /* the write may wait long: not with the domain */
    g_clear_pointer(&pass->domain, ch_domain_unref);
    g_clear_pointer(&pass->launcher_document, ch_json_unref);
    if (pass->write.body == NULL)
        ch_pass_log_failure(pass);
}
