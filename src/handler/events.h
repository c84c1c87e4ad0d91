/* SPDX-License-Identifier: Apache-2.0 */

/*
 * events: what others ask the agent to tell the cluster.
 *
 * Thread: the loop's.
 */

#pragma once

#include "handler/watch/domain-watch.h"
#include "lib/kube/informer.h"
#include "lib/kube/recorder.h"

/**
 * ch_events_tell_for_launcher: an event of a launcher's, for the VMI that it names, if this node
 * has that very one. Spec 01 §12.4
 *
 * Returns: what the launcher is told; NULL: it was taken
 */
const char *ch_events_tell_for_launcher(ChRecorder *recorder,
                                        const ChInformer *vmis,
                                        const ChLauncherEvent *event);

/* That launchers cannot report: on the node, under its kernel's name. Spec 01 §12.5 */
void ch_events_tell_notify_failure(ChRecorder *recorder, const char *message);
