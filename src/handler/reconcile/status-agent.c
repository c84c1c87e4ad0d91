/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The guest agent: is it connected, and is it good enough (02 §8.6); what it says of the guest
 * (02 §6.4, §6.6).
 */

#include "handler/reconcile/status-internal.h"

bool
ch_status_wants_guest_info(const ChDomain *domain)
{
    /* In a guest that ended nobody answers, whatever the channel's last state was. */
    return ch_domain_is_alive(domain) && domain->agent_connected;
}

static void
judge_version(ChStatusPass *pass)
{
    g_autofree char *reason = NULL;

    if (pass->input->guest_info == NULL)
        return;
    reason = ch_guest_agent_unsupported_reason(
        pass->input->guest_info, pass->vmi, pass->node->agent_versions);
    if (reason == NULL)
        ch_condition_remove(pass, "AgentVersionNotSupported");
    else if (ch_condition_find(pass->status, "AgentVersionNotSupported") == NULL)
        ch_condition_add(pass,
                         &(ChCondition){
                             .type = "AgentVersionNotSupported",
                             .status = "True",
                             .reason = reason,
                             .has_probe_time = true,
                         });
}

void
ch_status_agent(ChStatusPass *pass)
{
    if (!ch_status_wants_guest_info(pass->domain)) {
        /* The verdict on its version outlives the connection, as upstream has it. */
        ch_condition_remove(pass, "AgentConnected");
        return;
    }
    if (ch_condition_find(pass->status, "AgentConnected") == NULL)
        ch_condition_add(pass,
                         &(ChCondition){
                             .type = "AgentConnected",
                             .status = "True",
                             .has_probe_time = true,
                         });
    judge_version(pass);
}

/* The name decides whether anything is new; nothing is ever cleared. */
void
ch_status_guest_os(ChStatusPass *pass)
{
    const ChGuestOs *os;
    ChJson *info;

    if (pass->domain == NULL || pass->domain->os.name[0] == '\0' ||
        g_strcmp0(ch_json_string_at(pass->status, "guestOSInfo", "name"), pass->domain->os.name) ==
            0)
        return;

    os = &pass->domain->os;
    info = ch_json_ensure_object(pass->status, "guestOSInfo");
    ch_status_set_text(info, "name", os->name);
    ch_status_set_text(info, "kernelRelease", os->kernel_release);
    ch_status_set_text(info, "version", os->version);
    ch_status_set_text(info, "prettyName", os->pretty_name);
    ch_status_set_text(info, "versionId", os->version_id);
    ch_status_set_text(info, "kernelVersion", os->kernel_version);
    ch_status_set_text(info, "machine", os->machine);
    ch_status_set_text(info, "id", os->id);
}

/* A domain that was asked for with GetDomain has no freeze status: that is no news (02 trap 17). */
void
ch_status_freeze(ChStatusPass *pass)
{
    const char *freeze = pass->domain != NULL ? pass->domain->freeze_status : "";

    if (freeze[0] == '\0')
        return;
    ch_status_set_text(pass->status, "fsFreezeStatus", g_str_equal(freeze, "thawed") ? "" : freeze);
}
