/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/vmi.h"

#include "lib/base/time.h"

static const char *const phase_texts[] = {
    [CH_PHASE_UNSET] = "",
    [CH_PHASE_PENDING] = "Pending",
    [CH_PHASE_SCHEDULING] = "Scheduling",
    [CH_PHASE_SCHEDULED] = "Scheduled",
    [CH_PHASE_RUNNING] = "Running",
    [CH_PHASE_SUCCEEDED] = "Succeeded",
    [CH_PHASE_FAILED] = "Failed",
    [CH_PHASE_WAITING_FOR_SYNC] = "WaitingForSync",
    [CH_PHASE_UNKNOWN] = "Unknown",
};
G_STATIC_ASSERT(G_N_ELEMENTS(phase_texts) == CH_PHASE_N);

ChPhase
ch_phase_from_text(const char *text)
{
    if (text == NULL)
        return CH_PHASE_UNSET;
    for (ChPhase phase = CH_PHASE_UNSET; phase < CH_PHASE_N; phase++)
        if (g_str_equal(text, phase_texts[phase]))
            return phase;
    return CH_PHASE_UNKNOWN;
}

const char *
ch_phase_text(ChPhase phase)
{
    g_return_val_if_fail(phase < CH_PHASE_N, "");
    return phase_texts[phase];
}

bool
ch_phase_is_final(ChPhase phase)
{
    return phase == CH_PHASE_SUCCEEDED || phase == CH_PHASE_FAILED;
}

static const char *
text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* What is no time counts as unset: the API server would not have stored it. */
static bool
read_time(const ChJson *object, const char *key, int64_t *out_wall_us)
{
    const char *text = ch_json_string_at(object, key);

    return text != NULL && ch_time_parse(text, out_wall_us, NULL);
}

static ChMigrationView
read_migration(const ChJson *state)
{
    ChMigrationView migration = {
        .exists = ch_json_is_object(state),
        .completed = ch_json_bool_at(state, false, "completed"),
        .failed = ch_json_bool_at(state, false, "failed"),
        .abort_requested = ch_json_bool_at(state, false, "abortRequested"),
        .mode = text_or_empty(ch_json_string_at(state, "mode")),
        .source_node = text_or_empty(ch_json_string_at(state, "sourceNode")),
        .target_node = text_or_empty(ch_json_string_at(state, "targetNode")),
        .target_node_address = text_or_empty(ch_json_string_at(state, "targetNodeAddress")),
    };

    migration.has_start = read_time(state, "startTimestamp", &migration.start_us);
    migration.has_end = read_time(state, "endTimestamp", &migration.end_us);
    return migration;
}

void
ch_vmi_view_init(ChVmiView *view, const ChJson *document)
{
    const ChJson *metadata = ch_json_at(document, "metadata");
    const ChJson *status = ch_json_at(document, "status");
    const ChJson *state = ch_json_at(status, "migrationState");
    const ChJson *source = ch_json_at(state, "sourceState");
    const ChJson *target = ch_json_at(state, "targetState");
    const bool source_syncs = ch_json_at(source, "syncAddress") != NULL;
    const bool target_syncs = ch_json_at(target, "syncAddress") != NULL;

    *view = (ChVmiView){
        .document = document,
        .namespace_ = text_or_empty(ch_json_string_at(metadata, "namespace")),
        .name = text_or_empty(ch_json_string_at(metadata, "name")),
        .uid = text_or_empty(ch_json_string_at(metadata, "uid")),
        .phase = ch_phase_from_text(ch_json_string_at(status, "phase")),
        .phase_text = text_or_empty(ch_json_string_at(status, "phase")),
        .is_deleting = ch_json_at(metadata, "deletionTimestamp") != NULL,
        .node_label = text_or_empty(ch_json_string_at(metadata, "labels", CH_LABEL_NODE_NAME)),
        .target_node_label =
            text_or_empty(ch_json_string_at(metadata, "labels", CH_LABEL_TARGET_NODE_NAME)),
        .status_node = text_or_empty(ch_json_string_at(status, "nodeName")),
        .is_migration_target =
            g_strcmp0(ch_json_string_at(metadata, "annotations", CH_ANNOTATION_MIGRATION_TARGET),
                      "true") == 0,
        .is_migration_source = target_syncs && ch_json_at(target, "nodeAddress") != NULL,
        .is_decentralised = source != NULL && target != NULL && source_syncs != target_syncs,
        .migration = read_migration(state),
    };
    view->has_grace =
        ch_json_int_at(document, &view->grace_s, "spec", "terminationGracePeriodSeconds");
}

bool
ch_vmi_is_owned_by(const ChVmiView *vmi, const char *node)
{
    return node[0] != '\0' &&
           (g_str_equal(vmi->node_label, node) || g_str_equal(vmi->status_node, node));
}

bool
ch_vmi_is_migrating(const ChVmiView *vmi, int64_t now_us)
{
    const ChMigrationView *migration = &vmi->migration;

    return migration->has_start && migration->start_us <= now_us &&
           (!migration->has_end || migration->end_us > now_us);
}

bool
ch_vmi_is_source_of_running_migration(const ChVmiView *vmi, const char *node)
{
    const ChMigrationView *migration = &vmi->migration;

    return migration->exists && g_str_equal(migration->source_node, node) &&
           (!vmi->is_decentralised || vmi->is_migration_source) &&
           migration->target_node_address[0] != '\0' && !migration->completed;
}

bool
ch_vmi_has_source_role(const ChVmiView *vmi, const char *node)
{
    if (!vmi->migration.exists || !g_str_equal(vmi->migration.source_node, node))
        return false;
    return vmi->is_decentralised ? vmi->is_migration_source : g_str_equal(vmi->status_node, node);
}

bool
ch_vmi_is_migration_done(const ChVmiView *vmi)
{
    const ChMigrationView *migration = &vmi->migration;

    return !migration->exists ||
           (migration->has_end && (migration->completed || migration->failed));
}

bool
ch_vmi_has_annotation(const ChVmiView *vmi, const char *key)
{
    return ch_json_at(vmi->document, "metadata", "annotations", key) != NULL;
}

bool
ch_vmi_awaits_sev_session(const ChVmiView *vmi)
{
    const ChJson *sev = ch_json_at(vmi->document, "spec", "domain", "launchSecurity", "sev");

    return ch_json_is_object(ch_json_at(sev, "attestation")) &&
           (text_or_empty(ch_json_string_at(sev, "session"))[0] == '\0' ||
            text_or_empty(ch_json_string_at(sev, "dhCert"))[0] == '\0');
}
