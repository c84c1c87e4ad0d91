/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/status.h"

#include "handler/reconcile/status-internal.h"

#include "lib/base/time.h"

/* --- small helpers of the steps --- */

const char *
ch_status_text(const ChJson *object, const char *key)
{
    const char *text = ch_json_string_at(object, key);

    return text != NULL ? text : "";
}

void
ch_status_set_text(ChJson *object, const char *key, const char *text)
{
    if (text == NULL || text[0] == '\0')
        ch_json_remove(object, key);
    else if (g_strcmp0(ch_json_string_at(object, key), text) != 0)
        ch_json_set_string(object, key, text);
}

void
ch_status_set_time(ChJson *object, const char *key, int64_t wall_us)
{
    g_autofree char *text = ch_time_format(wall_us);

    ch_json_set_string(object, key, text);
}

bool
ch_status_get_time(const ChJson *object, const char *key, int64_t *out_wall_us)
{
    const char *text = ch_json_string_at(object, key);

    return text != NULL && ch_time_parse(text, out_wall_us, NULL);
}

void
ch_status_record(ChStatusPass *pass, ChEvent *event)
{
    g_ptr_array_add(pass->events, event);
}

/* --- phase --- */

static void
enter_phase(ChStatusPass *pass, ChPhase phase)
{
    pass->phase = phase;
    ch_json_set_string(pass->status, "phase", ch_phase_text(phase));
}

static void
compute_phase(ChStatusPass *pass)
{
    const ChPhaseVerdict verdict =
        ch_phase_decide(&pass->old, pass->domain, pass->input->launcher, pass->input->remembered);

    pass->phase = pass->old.phase;
    if (verdict.kind == CH_PHASE_VERDICT_CHANGE)
        enter_phase(pass, verdict.phase);
}

/* Whether an action's end ends the VMI too. */
static const bool is_fatal[] = {
    [CH_SYNC_OK] = false,
    [CH_SYNC_FAILED] = false,
    [CH_SYNC_CRITICAL_NETWORK] = true,
    [CH_SYNC_SECURE_BOOT] = true,
    [CH_SYNC_IRRECOVERABLE] = true,
};
G_STATIC_ASSERT(G_N_ELEMENTS(is_fatal) == CH_SYNC_N);

/* The first time in a phase counts; a second one is not recorded. */
static void
note_transition(ChStatusPass *pass)
{
    ChJson *list = ch_json_at(pass->status, "phaseTransitionTimestamps");
    ChJson *entry;

    if (pass->phase == pass->old.phase)
        return;
    for (gsize i = 0; i < ch_json_length(list); i++)
        if (g_strcmp0(ch_json_string_at(ch_json_item(list, i), "phase"),
                      ch_phase_text(pass->phase)) == 0)
            return;
    if (!ch_json_is_array(list)) {
        list = ch_json_new_array();
        ch_json_set(pass->status, "phaseTransitionTimestamps", list);
    }
    entry = ch_json_new_object();
    ch_json_set_string(entry, "phase", ch_phase_text(pass->phase));
    ch_status_set_time(entry, "phaseTransitionTimestamp", pass->input->now_us);
    ch_json_append(list, entry);
}

static ChEvent *
event_of_phase(ChPhase phase)
{
    static const ChEventKind kinds[CH_PHASE_N] = {
        [CH_PHASE_RUNNING] = CH_EVENT_STARTED,
        [CH_PHASE_SUCCEEDED] = CH_EVENT_SHUT_DOWN,
        [CH_PHASE_FAILED] = CH_EVENT_CRASHED,
    };

    return kinds[phase] != CH_EVENT_INVALID ? ch_event_new(kinds[phase], NULL) : NULL;
}

/* --- the whole --- */

/* Members that the API's own encoder prints even when they are empty (02 §5). Null is what absent
 * means: nothing is said that nobody said before. */
static void
complete(ChJson *status)
{
    static const char *const times[] = {"lastProbeTime", "lastTransitionTime"};
    const ChJson *conditions = ch_json_at(status, "conditions");

    for (gsize i = 0; i < ch_json_length(conditions); i++) {
        ChJson *entry = ch_json_item(conditions, i);

        for (gsize j = 0; ch_json_is_object(entry) && j < G_N_ELEMENTS(times); j++)
            if (!ch_json_has(entry, times[j]))
                ch_json_set(entry, times[j], NULL);
    }
    (void)ch_json_ensure_object(status, "guestOSInfo");
    if (ch_json_at(status, "runtimeUser") == NULL)
        ch_json_set_int(status, "runtimeUser", 0);
}

static void
run_steps(ChStatusPass *pass)
{
    ch_status_volume_sizes(pass);
    ch_status_selinux_context(pass);
    ch_status_guest_os(pass);
    ch_status_volumes(pass);
    ch_status_freeze(pass);
    ch_status_backup(pass);
    ch_status_machine(pass);
    ch_status_memory(pass);
    ch_status_block_tracking(pass);
    ch_status_interfaces(pass);
    compute_phase(pass);
    ch_status_access_credential(pass);
    ch_status_migratable(pass);
    ch_status_agent(pass);
    ch_status_paused(pass);
    ch_status_emulation(pass);
    ch_status_checksums(pass);
    if (is_fatal[pass->input->sync])
        enter_phase(pass, CH_PHASE_FAILED);
    ch_status_synchronized(pass);
    note_transition(pass);
}

static void
event_free(void *data)
{
    ch_event_free(data);
}

ChStatusResult *
ch_status(const ChStatusInput *input, const ChStatusNode *node)
{
    ChStatusResult *result = g_new(ChStatusResult, 1);
    ChStatusPass pass = {
        .input = input,
        .node = node,
        .domain = ch_domain_live(input->domain),
        .vmi = ch_json_dup(input->vmi),
        .events = g_ptr_array_new_with_free_func(event_free),
    };

    ch_vmi_view_init(&pass.old, input->vmi);
    pass.phase = pass.old.phase;
    if (!ch_phase_is_final(pass.old.phase)) {
        pass.status = ch_json_ensure_object(pass.vmi, "status");
        run_steps(&pass);
    }

    *result = (ChStatusResult){
        .vmi = pass.vmi,
        .changed =
            !ch_status_is_equal(ch_json_at(input->vmi, "status"), ch_json_at(pass.vmi, "status")),
        .phase_changed = pass.phase != pass.old.phase,
        .phase = pass.phase,
        .events = pass.events,
        .requeue_us = pass.requeue_us,
    };
    if (result->phase_changed)
        result->phase_event = event_of_phase(result->phase);
    if (result->changed)
        complete(pass.status);
    return result;
}

void
ch_status_result_free(ChStatusResult *result)
{
    if (result == NULL)
        return;
    ch_json_unref(result->vmi);
    g_ptr_array_unref(result->events);
    ch_event_free(result->phase_event);
    g_free(result);
}
