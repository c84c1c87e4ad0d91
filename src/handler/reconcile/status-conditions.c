/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of conditions, and the conditions that follow from the domain directly.
 */

#include "handler/reconcile/status-internal.h"

#include "lib/base/time.h"

ChJson *
ch_condition_find(const ChJson *status, const char *type)
{
    return ch_json_find(ch_json_at(status, "conditions"), "type", type);
}

/* Absent, null and "" are the same text to the API. */
static bool
has_text(const ChJson *entry, const char *key, const char *text)
{
    const char *own = ch_json_string_at(entry, key);

    return g_str_equal(own != NULL ? own : "", text != NULL ? text : "");
}

bool
ch_condition_equals(const ChJson *entry, const ChCondition *condition)
{
    return has_text(entry, "type", condition->type) &&
           has_text(entry, "status", condition->status) &&
           has_text(entry, "reason", condition->reason) &&
           has_text(entry, "message", condition->message) &&
           ch_json_at(entry, "lastProbeTime") == NULL &&
           ch_json_at(entry, "lastTransitionTime") == NULL;
}

static void
set_optional_time(ChJson *entry, const char *key, bool has_time, int64_t now_us)
{
    if (has_time)
        ch_status_set_time(entry, key, now_us);
    else
        ch_json_set(entry, key, NULL);
}

static void
fill(ChJson *entry, const ChCondition *condition, int64_t now_us)
{
    ch_json_set_string(entry, "type", condition->type);
    ch_json_set_string(entry, "status", condition->status);
    set_optional_time(entry, "lastProbeTime", condition->has_probe_time, now_us);
    set_optional_time(entry, "lastTransitionTime", condition->has_transition_time, now_us);
    ch_status_set_text(entry, "reason", condition->reason);
    ch_status_set_text(entry, "message", condition->message);
}

void
ch_condition_add(ChStatusPass *pass, const ChCondition *condition)
{
    ChJson *list = ch_json_at(pass->status, "conditions");
    ChJson *entry = ch_json_new_object();

    if (!ch_json_is_array(list)) {
        list = ch_json_new_array();
        ch_json_set(pass->status, "conditions", list);
    }
    fill(entry, condition, pass->input->now_us);
    ch_json_append(list, entry);
}

void
ch_condition_remove(ChStatusPass *pass, const char *type)
{
    ChJson *list = ch_json_at(pass->status, "conditions");

    for (gsize i = ch_json_length(list); i > 0; i--)
        if (g_strcmp0(ch_json_string_at(ch_json_item(list, i - 1), "type"), type) == 0)
            ch_json_remove_item(list, i - 1);
    if (ch_json_is_array(list) && ch_json_length(list) == 0)
        ch_json_remove(pass->status, "conditions");
}

void
ch_condition_update(ChStatusPass *pass, const ChCondition *condition)
{
    ChJson *entry = ch_condition_find(pass->status, condition->type);

    if (entry == NULL)
        ch_condition_add(pass, condition);
    else if (!has_text(entry, "status", condition->status) ||
             !has_text(entry, "reason", condition->reason))
        fill(entry, condition, pass->input->now_us);
}

/* --- AccessCredentialsSynchronized (02 §8.3) --- */

static ChEvent *
credential_event(const ChDomainAccessCredential *credential)
{
    if (!credential->succeeded)
        return ch_event_new(CH_EVENT_CREDENTIALS_FAILED, credential->message);
    if (credential->message[0] == '\0')
        return ch_event_new(CH_EVENT_CREDENTIALS_SYNCED, NULL);
    return ch_event_new(CH_EVENT_CREDENTIALS_SYNCED_WITH_MESSAGE, credential->message);
}

void
ch_status_access_credential(ChStatusPass *pass)
{
    const ChDomainAccessCredential *credential;
    const ChJson *entry;

    if (pass->domain == NULL || !pass->domain->access_credential.exists)
        return;
    credential = &pass->domain->access_credential;

    const ChCondition condition = {
        .type = "AccessCredentialsSynchronized",
        .status = credential->succeeded ? "True" : "False",
        .message = credential->message,
        .has_transition_time = true,
    };
    entry = ch_condition_find(pass->status, condition.type);
    if (entry != NULL && has_text(entry, "status", condition.status) &&
        has_text(entry, "message", condition.message))
        return;

    ch_condition_remove(pass, condition.type);
    ch_condition_add(pass, &condition);
    ch_status_record(pass, credential_event(credential));
}

/* --- Paused (02 §8.7) --- */

static const struct {
    ChDomainReason domain_reason;
    const char *reason, *message;
} pauses[] = {
    {CH_REASON_USER, "PausedByUser", "VMI was paused by user"},
    {CH_REASON_IO_ERROR, "PausedIOError", "VMI was paused, low-level IO error detected"},
    {CH_REASON_MIGRATION, "PausedByMigrationMonitor", "VMI was paused by the migration monitor"},
};

static bool
is_paused_by_migration_monitor(const ChStatusPass *pass)
{
    return g_str_equal(pass->old.migration.mode, "Paused") &&
           ch_vmi_is_source_of_running_migration(&pass->old, pass->node->name);
}

void
ch_status_paused(ChStatusPass *pass)
{
    if (pass->domain == NULL || pass->domain->status != CH_DOMAIN_PAUSED) {
        ch_condition_remove(pass, "Paused");
        return;
    }
    if (ch_condition_find(pass->status, "Paused") != NULL)
        return;

    for (gsize i = 0; i < G_N_ELEMENTS(pauses); i++) {
        if (pauses[i].domain_reason != pass->domain->reason)
            continue;
        if (pauses[i].domain_reason == CH_REASON_MIGRATION && !is_paused_by_migration_monitor(pass))
            continue;
        ch_condition_add(pass,
                         &(ChCondition){
                             .type = "Paused",
                             .status = "True",
                             .reason = pauses[i].reason,
                             .message = pauses[i].message,
                             .has_probe_time = true,
                             .has_transition_time = true,
                         });
    }
}

/* --- SoftwareEmulation (02 §8.7) --- */

void
ch_status_emulation(ChStatusPass *pass)
{
    const char *guest = ch_json_string_at(pass->vmi, "spec", "architecture");
    const char *host = pass->node->architecture;
    g_autofree char *message = NULL;

    if (!pass->node->gate_cross_architecture)
        return;
    if (pass->domain == NULL || !g_str_equal(pass->domain->type, "qemu") || guest == NULL ||
        guest[0] == '\0' || g_strcmp0(guest, host) == 0) {
        ch_condition_remove(pass, "SoftwareEmulation");
        return;
    }
    if (ch_condition_find(pass->status, "SoftwareEmulation") != NULL)
        return;

    message =
        g_strdup_printf("VM running with software emulation (host=%s, guest=%s)", host, guest);
    ch_condition_add(pass,
                     &(ChCondition){
                         .type = "SoftwareEmulation",
                         .status = "True",
                         .reason = "CrossArchitectureEmulation",
                         .message = message,
                         .has_probe_time = true,
                         .has_transition_time = true,
                     });
}

/* --- Synchronized (02 §8.8) --- */

void
ch_status_synchronized(ChStatusPass *pass)
{
    const ChCondition failed = {
        .type = "Synchronized",
        .status = "False",
        .reason = "Synchronizing with the Domain failed.",
        .message = pass->input->sync_text,
        .has_transition_time = true,
    };
    const ChJson *entry = ch_condition_find(pass->status, failed.type);

    if (pass->input->sync == CH_SYNC_OK) {
        ch_condition_remove(pass, failed.type);
        return;
    }
    if (entry != NULL && has_text(entry, "status", failed.status) &&
        has_text(entry, "reason", failed.reason))
        return;
    ch_condition_remove(pass, failed.type);
    ch_condition_add(pass, &failed);
}
