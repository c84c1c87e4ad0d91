/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/launcher-socket.h"

#include <errno.h>
#include <string.h>

#include "handler/pod/hands-request.h"

#define SOCKET_BELOW_POD CH_HANDS_SOCKETS_DIR "/" CH_HANDS_SOCKET_NAME

/* What is there by a lookup's errno: certainly nothing. A link or file on the way is ELOOP, ENOTDIR
 * or EXDEV: something is there. */
static bool
says_absent(int errnum)
{
    return errnum == ENOENT;
}

/* The order is that of the check: directory, marker, socket. */
static bool
is_unresponsive(const ChHandsLook *look)
{
    if (look->dir_errno != 0)
        return says_absent(look->dir_errno);
    if (look->marker_errno == 0 || !says_absent(look->marker_errno))
        return true;
    return says_absent(look->socket_errno);
}

static bool
ask(ChHands *hands, ChHandsOp op, const char *pod_uid, ChHandsReply *out_reply, GError **error)
{
    ChHandsRequest request;

    return ch_hands_request_for_uid(&request, op, pod_uid, error) &&
           ch_hands_call(hands, &request, out_reply, NULL, error);
}

bool
ch_launcher_socket_look(ChHands *hands,
                        const char *pod_uid,
                        ChLauncherSocketFacts *out_facts,
                        GError **error)
{
    ChHandsReply reply;

    if (!ask(hands, CH_HANDS_OP_LOOK, pod_uid, &reply, error))
        return false;
    *out_facts = (ChLauncherSocketFacts){
        .is_dir_missing = says_absent(reply.look.dir_errno),
        .is_found = reply.look.socket_errno == 0,
        .is_absent = says_absent(reply.look.socket_errno),
        .is_unresponsive = is_unresponsive(&reply.look),
    };
    return true;
}

bool
ch_launcher_socket_probe(ChHands *hands, const char *pod_uid, GError **error)
{
    return ask(hands, CH_HANDS_OP_PROBE, pod_uid, NULL, error);
}

bool
ch_launcher_socket_mark_unresponsive(ChHands *hands, const char *pod_uid, GError **error)
{
    return ask(hands, CH_HANDS_OP_MARK, pod_uid, NULL, error);
}

char *
ch_launcher_socket_path(const char *pods_dir, const char *pod_uid)
{
    return g_build_filename(pods_dir, pod_uid, SOCKET_BELOW_POD, NULL);
}

char *
ch_launcher_socket_pod_uid(const char *pods_dir, const char *socket_path)
{
    g_autofree char *base = g_canonicalize_filename(pods_dir, "/");
    g_autofree char *path = g_canonicalize_filename(socket_path, "/");
    const char *below = g_str_has_prefix(path, base) ? path + strlen(base) : NULL;
    g_autofree char *uid = NULL;

    if (below == NULL || socket_path[0] != '/' || below[0] != '/')
        return NULL;
    uid = g_strndup(below + 1, strcspn(below + 1, "/"));
    if (!ch_hands_uid_is_valid(uid) || !g_str_equal(below + 1 + strlen(uid), "/" SOCKET_BELOW_POD))
        return NULL;
    return g_steal_pointer(&uid);
}
