/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher-seam.h"

#include <errno.h>

#include "handler/pod/launcher-socket.h"
#include "handler/pod/pod.h"
#include "handler/watch/notify-pipe.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"

static char *
find_socket(gpointer data, const char *pod_uid, bool *out_is_unresponsive)
{
    const ChLauncherSeamData *seam = data;
    ChLauncherSocketFacts facts;

    if (!ch_launcher_socket_look(seam->hands, pod_uid, &facts, NULL) || !facts.is_found)
        return NULL;
    *out_is_unresponsive = facts.is_unresponsive;
    return ch_launcher_socket_path(ch_hands_peek_pods_dir(seam->hands), pod_uid);
}

static bool
has_socket_dir(gpointer data, const char *pod_uid)
{
    const ChLauncherSeamData *seam = data;
    g_autoptr(GError) reason = NULL;
    ChLauncherSocketFacts facts;

    if (!ch_launcher_socket_look(seam->hands, pod_uid, &facts, &reason))
        return ch_hands_is_passing(reason);
    return !facts.is_dir_missing;
}

static bool
is_unresponsive(gpointer data, const char *socket_path)
{
    const ChLauncherSeamData *seam = data;
    g_autofree char *pod_uid =
        ch_launcher_socket_pod_uid(ch_hands_peek_pods_dir(seam->hands), socket_path);
    ChLauncherSocketFacts facts;

    if (pod_uid == NULL)
        return true;
    return ch_launcher_socket_look(seam->hands, pod_uid, &facts, NULL) && facts.is_unresponsive;
}

static bool
is_live(gpointer data, const char *socket_path)
{
    const ChLauncherSeamData *seam = data;
    g_autofree char *pod_uid =
        ch_launcher_socket_pod_uid(ch_hands_peek_pods_dir(seam->hands), socket_path);

    return !is_unresponsive(data, socket_path) &&
           ch_launcher_socket_probe(seam->hands, pod_uid, NULL);
}

static bool
record(gpointer data,
       const ChLauncherVmi *vmi,
       const char *socket_path,
       bool *out_is_new,
       GError **error)
{
    const ChLauncherSeamData *seam = data;
    g_autoptr(ChGhostRecord) found =
        ch_ghost_records_find(seam->records, vmi->namespace_, vmi->name);

    *out_is_new = found == NULL;
    return ch_ghost_records_add(
        seam->records, vmi->namespace_, vmi->name, socket_path, vmi->uid, error);
}

/* Records are named by key; one that another VM of this name has by now stays. */
static void
forget(gpointer data, const char *namespace_, const char *name, const char *uid)
{
    const ChLauncherSeamData *seam = data;
    g_autoptr(ChGhostRecord) found = ch_ghost_records_find(seam->records, namespace_, name);
    g_autoptr(GError) error = NULL;

    if (found != NULL && g_str_equal(found->uid, uid) &&
        !ch_ghost_records_remove(seam->records, namespace_, name, &error))
        ch_log_warning(NULL,
                       error,
                       "ignoring that the ghost record of %s/%s could not be deleted",
                       namespace_,
                       name);
}

static bool
connect_pod(gpointer data, const char *socket_path, int *out_fd, gpointer *out_pod, GError **error)
{
    const ChLauncherSeamData *seam = data;
    g_autofree char *pod_uid =
        ch_launcher_socket_pod_uid(ch_hands_peek_pods_dir(seam->hands), socket_path);
    g_autoptr(GError) reason = NULL;
    ChPod *pod = ch_pod_connect(seam->hands, pod_uid, out_fd, &reason);

    if (pod != NULL) {
        *out_pod = pod;
        return true;
    }
    /* The original retries a refused connection until its 2 s are over and then says only this;
     * ours retries by the queue. */
    if (g_error_matches(reason, CH_ERRNO, ECONNREFUSED) ||
        g_error_matches(reason, CH_ERRNO, ENOENT) || g_error_matches(reason, CH_ERRNO, EAGAIN) ||
        g_error_matches(reason, CH_ERRNO, ETIMEDOUT)) {
        ch_log_info_reason(NULL, reason, "failed to dial cmd socket: %s", socket_path);
        return ch_fail(error, CH_ERROR_TIMEOUT, "context deadline exceeded");
    }
    g_propagate_error(error, g_steal_pointer(&reason));
    return false;
}

static bool
reconnect_pod(gpointer data, gpointer pod, int *out_fd, GError **error)
{
    return ch_pod_reconnect(pod, out_fd, error);
}

/* A pipe keeps its pod: closing it removes the socket from there. */
typedef struct {
    ChNotifyPipe *pipe;
    ChPod *pod; /* borrowed from the client's entry, which closes the pipe first */
} PodPipe;

static gpointer
open_pipe(gpointer data, gpointer pod, const ChLauncherVmi *vmi, GError **error)
{
    const ChLauncherSeamData *seam = data;
    PodPipe *pod_pipe;
    ChNotifyOrigin *origin;
    int fd;

    if (!ch_pod_open_notify_pipe(pod, vmi->is_nonroot, &fd, error))
        return NULL;
    origin = ch_notify_origin_new(vmi->namespace_, vmi->name, vmi->uid);
    pod_pipe = g_new(PodPipe, 1);
    *pod_pipe = (PodPipe){
        ch_notify_pipe_new(seam->loop, fd, ch_domain_watch_peek_server(seam->domain_watch), origin),
        pod};
    return pod_pipe;
}

static void
close_pipe(gpointer data, gpointer pipe)
{
    const ChLauncherSeamData *seam = data;
    PodPipe *pod_pipe = pipe;

    ch_notify_pipe_close(pod_pipe->pipe);
    if (!atomic_load(seam->is_ending)) /* as the original leaves it: the next agent puts its own in
                                          its place */
        ch_pod_close_notify_pipe(pod_pipe->pod);
    g_free(pod_pipe);
}

static void
release(gpointer data, gpointer pod)
{
    ch_pod_free(pod);
}

const ChLauncherSeam ch_launcher_seam = {
    .find_socket = find_socket,
    .has_socket_dir = has_socket_dir,
    .is_unresponsive = is_unresponsive,
    .is_live = is_live,
    .record = record,
    .forget = forget,
    .connect = connect_pod,
    .reconnect = reconnect_pod,
    .open_pipe = open_pipe,
    .close_pipe = close_pipe,
    .release = release,
};
