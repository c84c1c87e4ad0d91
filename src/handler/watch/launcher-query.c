/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/launcher-query.h"

#include <string.h>

#include "handler/launcher/clients.h"
#include "handler/launcher/rpc.h"
#include "handler/pod/launcher-socket.h"
#include "handler/pod/pod.h"
#include "lib/base/errors.h"

/* The pod UID in the record's path; NULL: such a path was never written by this agent, nobody
 * listens there. */
static char *
record_pod_uid(ChHands *hands, const ChGhostRecord *record)
{
    return ch_launcher_socket_pod_uid(ch_hands_peek_pods_dir(hands), record->socket_file);
}

static ChGrpcChannel *
connect_channel(ChLoop *loop, ChHands *hands, const char *pod_uid, GError **error)
{
    int fd;
    g_autoptr(ChPod) pod = ch_pod_connect(hands, pod_uid, &fd, error);

    return pod != NULL ? ch_launcher_dial(loop, fd, error) : NULL;
}

static ChLauncherQueryOutcome
ask_domain(ChGrpcChannel *channel,
           const ChGhostRecord *record,
           ChKnownDomain **out_domain,
           GError **error)
{
    g_autofree char *key = g_strdup_printf("%s/%s", record->namespace_, record->name);
    g_autofree char *json = NULL;
    g_autoptr(ChKnownDomain) domain = NULL;

    if (!ch_launcher_get_domain(channel, &json, error))
        return CH_LAUNCHER_QUERY_NO_ANSWER;
    if (json == NULL)
        return CH_LAUNCHER_QUERY_NO_DOMAIN;
    domain = ch_known_domain_new(json, strlen(json), error);
    if (domain == NULL)
        return CH_LAUNCHER_QUERY_NO_ANSWER;
    if (!ch_known_domain_is_of(domain, key, record->uid)) {
        ch_fail(error,
                CH_ERROR_INVALID,
                "the launcher of %s (UID %s) describes %s (UID %.64s)",
                key,
                record->uid,
                domain->key,
                domain->uid);
        return CH_LAUNCHER_QUERY_NO_ANSWER;
    }
    *out_domain = g_steal_pointer(&domain);
    return CH_LAUNCHER_QUERY_DOMAIN;
}

ChLauncherQueryOutcome
ch_launcher_query(ChLoop *loop,
                  ChHands *hands,
                  const ChGhostRecord *record,
                  ChKnownDomain **out_domain,
                  GError **error)
{
    g_autofree char *pod_uid = record_pod_uid(hands, record);
    ChLauncherSocketFacts facts;
    g_autoptr(ChGrpcChannel) channel = NULL;
    ChLauncherQueryOutcome outcome;

    if (pod_uid == NULL)
        return CH_LAUNCHER_QUERY_NO_SOCKET;
    if (!ch_launcher_socket_look(hands, pod_uid, &facts, error))
        return CH_LAUNCHER_QUERY_NO_ACCESS;
    if (facts.is_absent)
        return CH_LAUNCHER_QUERY_NO_SOCKET;
    channel = connect_channel(loop, hands, pod_uid, error);
    if (channel == NULL)
        return CH_LAUNCHER_QUERY_UNREACHABLE;
    outcome = ask_domain(channel, record, out_domain, error);
    ch_grpc_channel_close(channel);
    return outcome;
}
