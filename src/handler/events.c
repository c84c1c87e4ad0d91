/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/events.h"

const char *
ch_events_tell_for_launcher(ChRecorder *recorder,
                            const ChInformer *vmis,
                            const ChLauncherEvent *event)
{
    g_autofree char *key = g_strdup_printf("%s/%s", event->namespace_, event->name);
    const ChObject *vmi = ch_informer_lookup(vmis, key);

    if (vmi == NULL || !g_str_equal(vmi->uid, event->uid))
        return "VMI not found";
    ch_recorder_event(recorder,
                      &(ChObjectRef){"VirtualMachineInstance",
                                     "kubevirt.io/v1",
                                     event->namespace_,
                                     event->name,
                                     vmi->uid,
                                     vmi->resource_version},
                      event->type,
                      event->reason,
                      event->message);
    return NULL;
}

void
ch_events_tell_notify_failure(ChRecorder *recorder, const char *message)
{
    ch_recorder_event(recorder,
                      &(ChObjectRef){"Node", "v1", "", g_get_host_name(), "", ""},
                      "Warning",
                      "NotifyServerFailure",
                      message);
}
