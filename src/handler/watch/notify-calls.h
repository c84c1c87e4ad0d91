/* SPDX-License-Identifier: Apache-2.0 */

/*
 * notify-calls: what the notify server's calls mean: decodes a launcher's request and tells the
 * handlers. Knows no connections: fuzzed by tests/fuzz/fuzz-notify.c.
 *
 * Thread: loop. Spec 01 §12.3, §12.4.
 */

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "handler/watch/notify-server.h"

/**
 * ch_notify_domain_event:
 * @origin: whose pipe brought it: it counts for that VM only; NULL: it came straight to the shared
 * socket, and is refused
 * @message: a DomainEventRequest
 *
 * An event of an unknown type, or without a domain, is fine and has no effect.
 *
 * Returns: false with what the launcher is told
 */
bool ch_notify_domain_event(const ChNotifyHandlers *handlers,
                            gpointer data,
                            const ChNotifyOrigin *origin,
                            const ProtobufCMessage *message,
                            GError **error);

/* The same for a K8sEventRequest. */
bool ch_notify_k8s_event(const ChNotifyHandlers *handlers,
                         gpointer data,
                         const ChNotifyOrigin *origin,
                         const ProtobufCMessage *message,
                         GError **error);
