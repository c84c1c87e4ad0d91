/* SPDX-License-Identifier: Apache-2.0 */

/*
 * launcher-socket: a launcher's command socket, found by the UID of its pod.
 *
 * The socket is `<pods-dir>/<pod UID>/volumes/kubernetes.io~empty-dir/sockets/launcher-sock`. The
 * hands look, component by component, following no link. Thread: any but the loop's (they wait for
 * the hands: 20 us, at worst 8 s). Spec: 01 §11.1, §11.4, §14.2, §14.4.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#include "handler/hands/client.h"

typedef struct {
    bool is_dir_missing; /* no directory `sockets`: the pod is gone */
    bool is_found;  /* something is at the socket's place, its type unchecked (a link is not) */
    bool is_absent; /* certainly nothing there; neither this nor is_found: it cannot be told */
    bool is_unresponsive; /* the verdict of §14.4 ³ */
} ChLauncherSocketFacts;

/**
 * ch_launcher_socket_look: takes all facts at once; makes no connection.
 *
 * Returns: false when @pod_uid cannot be a pod's (CH_ERROR_INVALID) or the hands fail
 */
bool ch_launcher_socket_look(ChHands *hands,
                             const char *pod_uid,
                             ChLauncherSocketFacts *out_facts,
                             GError **error);

/**
 * ch_launcher_socket_probe: connects and closes; stale detection's plain test, with no handle made.
 *
 * Returns: false with CH_ERRNO when no connection is taken (also EAGAIN: the backlog is full)
 */
bool ch_launcher_socket_probe(ChHands *hands, const char *pod_uid, GError **error);

/* Makes the marker `launcher-unresponsive` beside the socket; one that exists is success. */
bool ch_launcher_socket_mark_unresponsive(ChHands *hands, const char *pod_uid, GError **error);

/* (transfer full): the socket's path, as ghost records and log lines hold it. Pure. */
char *ch_launcher_socket_path(const char *pods_dir, const char *pod_uid);

/* (transfer full): the pod UID in such a path (doubled slashes and "." are tolerated), NULL for any
 * other path. Pure. */
char *ch_launcher_socket_pod_uid(const char *pods_dir, const char *socket_path);
