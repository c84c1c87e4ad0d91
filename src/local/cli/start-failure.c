/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/start-failure.h"

#include <string.h>

#include "local/cli/vms.h"

#define LAUNCHERS_ANSWER                                                                           \
    "server error. command " /* the agent puts it before what a launcher says */

const char *
ch_start_failure_now(const ChJson *vmi)
{
    const ChJson *synchronized = ch_vm_condition(vmi, "Synchronized");

    if (g_strcmp0(ch_json_string_at(synchronized, "status"), "False") != 0)
        return NULL;
    return ch_json_string_at(synchronized, "message");
}

bool
ch_start_failure_is_final(const char *failure)
{
    return strstr(failure, "not supported by this launcher") != NULL ||
           strstr(failure, "this launcher does not support") != NULL;
}

static bool
is_warning_about(const ChJson *event, const char *uid)
{
    return g_strcmp0(ch_json_string_at(event, "type"), "Warning") == 0 &&
           g_strcmp0(ch_json_string_at(event, "reason"), "Stopped") != 0 &&
           g_strcmp0(ch_json_string_at(event, "involvedObject", "uid"), uid) == 0;
}

/* Within a second the list's order counts: events are listed by names that end with the time. */
static const char *
first_warning(const ChJson *events, const char *uid, const char *with)
{
    const ChJson *items = ch_json_at(events, "items");
    const char *message = NULL, *earliest = NULL;

    for (gsize i = 0; i < ch_json_length(items); i++) {
        const ChJson *event = ch_json_item(items, i);
        const char *when = ch_json_string_at(event, "firstTimestamp");
        const char *says = ch_json_string_at(event, "message");

        if (when == NULL || says == NULL || !is_warning_about(event, uid) ||
            strstr(says, with) == NULL || (earliest != NULL && strcmp(when, earliest) >= 0))
            continue;
        earliest = when;
        message = says;
    }
    return message;
}

const char *
ch_start_failure_reason(const ChJson *vmi, const ChJson *events)
{
    const char *uid = ch_json_string_at(vmi, "metadata", "uid");
    const char *reason = first_warning(events, uid, LAUNCHERS_ANSWER);

    if (reason == NULL)
        reason = ch_start_failure_now(vmi);
    return reason != NULL ? reason : first_warning(events, uid, "");
}
