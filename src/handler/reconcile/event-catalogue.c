/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/event-catalogue.h"

/* The argument follows the text: no message of ours has its gap elsewhere. */
typedef struct {
    const char *type, *reason, *text;
} Entry;

#define NORMAL  "Normal"
#define WARNING "Warning"

/* clang-format off */
static const Entry catalogue[] = {
    [CH_EVENT_INVALID]           = {NULL, NULL, NULL},
    [CH_EVENT_CREATED]           = {NORMAL,  "Created",       "VirtualMachineInstance defined."},
    [CH_EVENT_STARTED]           = {NORMAL,  "Started",       "VirtualMachineInstance started."},
    [CH_EVENT_SHUT_DOWN]         = {NORMAL,  "Stopped",       "The VirtualMachineInstance was shut down."},
    [CH_EVENT_CRASHED]           = {WARNING, "Stopped",       "The VirtualMachineInstance crashed."},
    [CH_EVENT_SHUTTING_DOWN]     = {NORMAL,  "ShuttingDown",  "Signaled Graceful Shutdown"},
    [CH_EVENT_STOPPING]          = {NORMAL,  "Deleted",       "VirtualMachineInstance stopping"},
    [CH_EVENT_SIGNALED_DELETION] = {NORMAL,  "Deleted",       "Signaled Deletion"},
    [CH_EVENT_SYNC_FAILED]       = {WARNING, "SyncFailed",    ""},
    [CH_EVENT_HOTPLUG_FAILED]    = {WARNING, "HotplugFailed", ""},
    [CH_EVENT_NIC_HOTPLUG]       = {WARNING, "NicHotplug",    ""},
    [CH_EVENT_SMALL_VOLUME]      = {NORMAL,  "ToleratedSmallPV", ""},
    [CH_EVENT_CREDENTIALS_SYNCED] =
        {NORMAL,  "AccessCredentialsSyncSuccess", "Access credentials sync successful."},
    [CH_EVENT_CREDENTIALS_SYNCED_WITH_MESSAGE] =
        {NORMAL,  "AccessCredentialsSyncSuccess", "Access credentials sync successful: "},
    [CH_EVENT_CREDENTIALS_FAILED] =
        {WARNING, "AccessCredentialsSyncFailed",  "Access credentials sync failed: "},
    [CH_EVENT_NOT_EVICTABLE] =
        {WARNING, "Migrated", "EvictionStrategy is set but vmi is not migratable; "},
};
/* clang-format on */
G_STATIC_ASSERT(G_N_ELEMENTS(catalogue) == CH_EVENT_N);

ChEvent *
ch_event_new(ChEventKind kind, const char *argument)
{
    g_autofree char *message = NULL;

    g_return_val_if_fail(kind > CH_EVENT_INVALID && kind < CH_EVENT_N, NULL);

    message = g_strconcat(catalogue[kind].text, argument, NULL);
    return ch_event_new_custom(catalogue[kind].type, catalogue[kind].reason, message);
}

ChEvent *
ch_event_new_custom(const char *type, const char *reason, const char *message)
{
    ChEvent *event = g_new(ChEvent, 1);

    *event = (ChEvent){
        .type = type,
        .reason = g_strdup(reason),
        .message = g_strdup(message),
    };
    return event;
}

void
ch_event_free(ChEvent *event)
{
    if (event == NULL)
        return;
    g_free(event->reason);
    g_free(event->message);
    g_free(event);
}
