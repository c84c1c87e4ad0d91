/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/launcher-metrics.h"

#include <pthread.h>
#include <string.h>

#include "handler/downward-metrics/host-metrics.h"
#include "handler/downward-metrics/vm-metrics.h"
#include "handler/launcher/client.h"
#include "handler/launcher/rpc.h"
#include "handler/pod/launcher-socket.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"

#define MAX_VERSION 256u         /* bytes of QEMU's */
#define HOST_AGE_US CH_SECOND_US /* for which the node's metrics serve all its VMs */

struct ChLauncherMetrics {
    ChLoop *loop;
    ChLauncherClients *clients;
    ChHands *hands;
    const char *node_name;
    pthread_mutex_t lock; /* guards: */
    ChMetricList *host;   /* owned; NULL: none yet */
    int64_t host_us;      /* when it was made */
};

ChLauncherMetrics *
ch_launcher_metrics_new(ChLoop *loop,
                        ChLauncherClients *clients,
                        ChHands *hands,
                        const char *node_name)
{
    ChLauncherMetrics *source = g_new0(ChLauncherMetrics, 1);

    source->loop = loop;
    source->clients = clients;
    source->hands = hands;
    source->node_name = node_name;
    pthread_mutex_init(&source->lock, NULL);
    return source;
}

void
ch_launcher_metrics_free(ChLauncherMetrics *source)
{
    if (source == NULL)
        return;
    ch_metric_list_free(source->host);
    pthread_mutex_destroy(&source->lock);
    g_free(source);
}

/* --- the report */

/* Returns: whether they were there */
static bool
add_known_host(ChLauncherMetrics *source, ChMetricList *list)
{
    bool is_known;

    pthread_mutex_lock(&source->lock);
    is_known = source->host != NULL && ch_time_now_us() - source->host_us < HOST_AGE_US;
    if (is_known)
        ch_metric_list_append(list, source->host);
    pthread_mutex_unlock(&source->lock);
    return is_known;
}

/* Read once for all VMs of a round: on a large node that is a file for each of many processors. */
static void
add_host(ChLauncherMetrics *source, ChMetricList *list)
{
    g_autoptr(ChMetricList) host = NULL;
    g_autoptr(ChMetricList) old = NULL;

    if (add_known_host(source, list))
        return;
    host = ch_metric_list_new();
    ch_host_metrics_add(host, "/proc", "/sys", ch_time_wall_us());
    ch_metric_list_append(list, host);
    pthread_mutex_lock(&source->lock);
    old = source->host;
    source->host = g_steal_pointer(&host);
    source->host_us = ch_time_now_us();
    pthread_mutex_unlock(&source->lock);
}

/* (transfer full): NULL with @error */
static char *
ask_version(ChGrpcChannel *channel, GError **error)
{
    g_auto(ChLauncherAnswer) answer = {0};
    g_autoptr(GError) reason = NULL;

    if (ch_launcher_call(channel, CH_LAUNCHER_RPC_GET_QEMU_VERSION, NULL, &answer, &reason)) {
        if (strlen(answer.text) <= MAX_VERSION)
            return g_strdup(answer.text);
        (void)ch_fail(
            error, CH_ERROR_LIMIT, "the version of QEMU is %zu bytes", strlen(answer.text));
        return NULL;
    }
    if (g_error_matches(reason, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_UNIMPLEMENTED))
        return g_strdup(ch_launcher_rpc_stand_in(CH_LAUNCHER_RPC_GET_QEMU_VERSION));
    g_propagate_error(error, g_steal_pointer(&reason));
    return NULL;
}

static bool
ask_stats(ChGrpcChannel *channel, ChVmMetrics *out_metrics, GError **error)
{
    g_auto(ChLauncherAnswer) answer = {0};

    return ch_launcher_call(channel, CH_LAUNCHER_RPC_GET_DOMAIN_STATS, NULL, &answer, error) &&
           ch_vm_metrics_parse(answer.text, out_metrics, error);
}

char *
ch_launcher_metrics_report(ChLauncherMetrics *source, ChGrpcChannel *channel, GError **error)
{
    const int64_t start_us = ch_time_now_us();
    g_autofree char *version = ask_version(channel, error);
    g_autoptr(ChMetricList) list = ch_metric_list_new();
    ChVmMetrics vm;
    int64_t took_us;

    if (version == NULL || !ask_stats(channel, &vm, error))
        return NULL;
    took_us = ch_time_now_us() - start_us;
    if (took_us > CH_LAUNCHER_METRICS_MAX_US) {
        (void)ch_fail(error,
                      CH_ERROR_TIMEOUT,
                      "took too long (%" G_GINT64_FORMAT " s) to collect stats: ignored",
                      took_us / CH_SECOND_US);
        return NULL;
    }
    ch_metric_list_add_string(list, CH_METRIC_HOST, "HostName", NULL, source->node_name);
    ch_metric_list_add_string(list, CH_METRIC_HOST, "HostSystemInfo", NULL, "linux");
    ch_metric_list_add_string(list, CH_METRIC_HOST, "VirtualizationVendor", NULL, "kubevirt.io");
    ch_metric_list_add_string(list, CH_METRIC_HOST, "VirtProductInfo", NULL, version);
    ch_vm_metrics_add(list, &vm);
    add_host(source, list);
    return ch_metric_list_print(list);
}

/* --- the seam */

/* (transfer full): NULL with CH_ERROR_CLOSED: no pass has connected to the launcher (yet) */
static ChLauncherPeer *
find_peer(const ChLauncherMetrics *source, const char *uid, GError **error)
{
    ChLauncherPeer *peer = ch_launcher_clients_find_peer(source->clients, uid);

    if (peer == NULL)
        (void)ch_fail(error, CH_ERROR_CLOSED, "the launcher is not connected");
    return peer;
}

static char *
report(gpointer data, const char *uid, GError **error)
{
    ChLauncherMetrics *source = data;
    g_autoptr(ChLauncherPeer) peer = find_peer(source, uid, error);
    g_autoptr(ChGrpcChannel) channel = NULL;
    char *text;
    int fd;

    if (peer == NULL || !ch_pod_reconnect(ch_launcher_peer_pod(peer), &fd, error))
        return NULL;
    channel = ch_launcher_dial(source->loop, fd, error);
    if (channel == NULL)
        return NULL;
    text = ch_launcher_metrics_report(source, channel, error);
    ch_grpc_channel_close(channel);
    return text;
}

static bool
write_disk(gpointer data, const char *uid, const char *text, gsize length, GError **error)
{
    g_autoptr(ChLauncherPeer) peer = find_peer(data, uid, error);

    return peer != NULL && ch_pod_write_metrics(ch_launcher_peer_pod(peer), text, length, error);
}

static bool
connect_channel(gpointer data, const char *uid, int *out_fd, GError **error)
{
    g_autoptr(ChLauncherPeer) peer = find_peer(data, uid, error);

    return peer != NULL && ch_pod_connect_metrics(ch_launcher_peer_pod(peer), out_fd, error);
}

static bool
has_launcher(gpointer data, const char *uid, GError **error)
{
    const ChLauncherMetrics *source = data;
    g_autoptr(ChLauncherPeer) peer = find_peer(source, uid, error);
    ChLauncherSocketFacts facts;

    if (peer == NULL ||
        !ch_launcher_socket_look(
            source->hands, ch_pod_peek_uid(ch_launcher_peer_pod(peer)), &facts, error))
        return false;
    return facts.is_found || ch_fail(error, CH_ERROR_NOT_FOUND, "virt-launcher socket not found");
}

const ChDownwardMetricsSeam ch_launcher_metrics_seam = {
    .serial =
        {
            .connect = connect_channel,
            .report = report,
            .pause_us = CH_SERIAL_PAUSE_US,
            .request_us = CH_SERIAL_REQUEST_US,
        },
    .write = write_disk,
    .has_launcher = has_launcher,
    .round_us = CH_DOWNWARD_METRICS_ROUND_US,
};
