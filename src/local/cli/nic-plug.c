/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/nic-plug.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/cli/resource.h"
#include "local/cli/start-failure.h"
#include "local/cli/vm-edit.h"
#include "local/cli/vms.h"

/* With what the launcher refuses: it may change its mind. */
#define PATIENCE_US (10 * CH_SECOND_US)
#define POLL_MS     200

/* --- waiting ---------------------------------------------------------------------------------- */

typedef struct {
    const ChNicPlug *plug;
    ChNetworkQuestion question;
    int64_t begin_us;
    int64_t refused_us; /* since when the launcher refuses; 0: it does not */
} Wait;

/* (transfer full) (nullable) */
static ChJson *
list_events(const ChNicPlug *plug, GError **error)
{
    const ChCliResource *resource = ch_cli_resource_by_name("events");
    g_autofree char *path = ch_cli_resource_path(resource, plug->cli->namespace_, NULL);

    return ch_client_get(plug->client, path, error);
}

/* Before anything is changed. */
static bool
begin(Wait *wait, GError **error)
{
    g_autoptr(ChJson) events = list_events(wait->plug, error);

    wait->question.since = ch_events_revision(events);
    wait->begin_us = ch_time_now_us();
    return events != NULL;
}

/* (transfer full) (nullable): what the pod runner complains of. */
static char *
find_trouble(const Wait *wait, const ChJson *vmi)
{
    g_autoptr(ChJson) events = list_events(wait->plug, NULL);

    return g_strdup(ch_network_trouble(vmi, events, &wait->question));
}

/* (transfer full) (nullable): what the launcher said of this interface for a while now. */
static char *
find_refusal(Wait *wait, const ChJson *vmi)
{
    g_autofree char *words = g_strdup_printf("interface '%s': ", wait->question.name);
    const char *message = ch_start_failure_now(vmi);
    const int64_t now_us = ch_time_now_us();

    if (message == NULL || strstr(message, words) == NULL) {
        wait->refused_us = 0;
        return NULL;
    }
    if (wait->refused_us == 0)
        wait->refused_us = now_us;
    return now_us - wait->refused_us > PATIENCE_US ? g_strdup(message) : NULL;
}

static bool
fail_unless_fine(Wait *wait, const ChJson *vmi, GError **error)
{
    const char *done = wait->question.attaches ? "attached" : "detached";
    g_autofree char *trouble = find_trouble(wait, vmi);

    if (trouble == NULL)
        trouble = find_refusal(wait, vmi);
    if (trouble == NULL && ch_time_now_us() - wait->begin_us < wait->plug->limit_s * CH_SECOND_US)
        return true;
    if (trouble == NULL && ch_start_failure_now(vmi) != NULL)
        trouble = g_strdup(ch_start_failure_now(vmi));
    if (trouble == NULL)
        trouble = g_strdup(wait->question.attaches ? "the guest does not have it yet"
                                                   : "the guest does not let go of it");
    if (!wait->question.attaches)
        return ch_fail(error,
                       CH_ERROR_TIMEOUT,
                       "network '%s' is not %s: %s; it goes on trying",
                       wait->question.name,
                       done,
                       trouble);
    return ch_fail(error,
                   CH_ERROR_TIMEOUT,
                   "network '%s' is not %s: %s; it goes on trying until 'chandler detach %s %s'",
                   wait->question.name,
                   done,
                   trouble,
                   wait->plug->vm,
                   wait->question.name);
}

static bool
is_done(const Wait *wait, const ChJson *vmi)
{
    return wait->question.attaches ? ch_vmi_plugged_network(vmi, wait->question.name) != NULL
                                   : !ch_vmi_has_network(vmi, wait->question.name);
}

/* (transfer full): the VMI as it is then; NULL with @error */
static ChJson *
wait_until_done(Wait *wait, GError **error)
{
    const ChNicPlug *plug = wait->plug;

    for (;;) {
        g_autoptr(ChJson) vmi = ch_vm_get(plug->client, plug->cli, plug->vm, error);

        if (vmi == NULL)
            return NULL;
        if (ch_vm_is_final(vmi)) {
            ch_fail(error, CH_ERROR_INVALID, "the VM '%s' has ended", plug->vm);
            return NULL;
        }
        if (is_done(wait, vmi))
            return g_steal_pointer(&vmi);
        if (!fail_unless_fine(wait, vmi, error))
            return NULL;
        ch_cli_wait_ms(POLL_MS);
    }
}

/* --- coming ----------------------------------------------------------------------------------- */

static bool
add(ChJson *vmi, gpointer data, GError **error)
{
    return ch_vmi_add_network(vmi, data, error);
}

static bool
check_definition(const ChNicPlug *plug, const char *definition, GError **error)
{
    const ChCliResource *resource = ch_cli_resource_by_name("nad");
    const char *slash = strchr(definition, '/');
    g_autofree char *space = slash != NULL ? g_strndup(definition, (gsize)(slash - definition))
                                           : g_strdup(plug->cli->namespace_);
    const char *name = slash != NULL ? slash + 1 : definition;
    g_autofree char *path = ch_cli_resource_path(resource, space, name);
    g_autoptr(GError) failure = NULL;
    g_autoptr(ChJson) found = ch_client_get(plug->client, path, &failure);

    if (found != NULL)
        return true;
    if (ch_client_is_not_found(failure))
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "there is no NetworkAttachmentDefinition '%s' in namespace '%s': 'chandler "
                       "get nad' lists them, 'chandler apply' makes one",
                       name,
                       space);
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

bool
ch_nic_plug(const ChNicPlug *plug, const ChNetworkEdit *edit, GError **error)
{
    ChNetworkEdit copy = *edit;
    Wait wait = {.plug = plug, .question = {.name = edit->name, .attaches = true}};
    g_autoptr(ChJson) vmi = NULL;
    const char *mac;

    if (!ch_network_edit_check(edit, error) || !check_definition(plug, edit->definition, error) ||
        !begin(&wait, error) || !ch_vm_edit(plug->client, plug->cli, plug->vm, add, &copy, error))
        return false;
    if (plug->limit_s == 0) {
        printf("network \"%s\" is being attached\n", edit->name);
        return true;
    }
    vmi = wait_until_done(&wait, error);
    if (vmi == NULL)
        return false;
    mac = ch_json_string_at(ch_vmi_plugged_network(vmi, edit->name), "mac");
    printf("network \"%s\" attached, with the MAC address %s\n",
           edit->name,
           mac != NULL ? mac : "of its pod");
    return true;
}

/* --- going ------------------------------------------------------------------------------------ */

static bool
remove_one(ChJson *vmi, gpointer name, GError **error)
{
    return ch_vmi_remove_network(vmi, name, error);
}

bool
ch_nic_unplug(const ChNicPlug *plug, const char *name, GError **error)
{
    g_autofree char *copy = g_strdup(name);
    Wait wait = {.plug = plug, .question = {.name = name}};
    g_autoptr(ChJson) vmi = NULL;

    if (!begin(&wait, error) ||
        !ch_vm_edit(plug->client, plug->cli, plug->vm, remove_one, copy, error))
        return false;
    if (plug->limit_s > 0) {
        vmi = wait_until_done(&wait, error);
        if (vmi == NULL)
            return false;
    }
    printf("network \"%s\" %s\n", name, plug->limit_s > 0 ? "detached" : "is being detached");
    return true;
}
