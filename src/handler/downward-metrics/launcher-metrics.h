/* SPDX-License-Identifier: Apache-2.0 */

/*
 * launcher-metrics: where the metrics come from and go to: the launcher's answers, the node's
 * files, and the hands' operations on the pod. Fills ChDownwardMetricsSeam. Spec 05 §14, 07 §7.1.
 *
 * A launcher is asked only after a pass has connected to it: this neither looks for launchers nor
 * leaves records of them. Each report has a connection of its own, to the process that the hands
 * have checked. Thread: workers.
 */

#pragma once

#include "handler/downward-metrics/downward-metrics.h"
#include "handler/launcher/clients.h"
#include "handler/pod/pod.h"

typedef struct ChLauncherMetrics ChLauncherMetrics;

/* What a report may take: what was asked first is too old then. */
#define CH_LAUNCHER_METRICS_MAX_US G_GINT64_CONSTANT(12000000)

/* All borrowed and used as long as it lives. @node_name: the metric HostName */
ChLauncherMetrics *ch_launcher_metrics_new(ChLoop *loop,
                                           ChLauncherClients *clients,
                                           ChHands *hands,
                                           const char *node_name);
void ch_launcher_metrics_free(ChLauncherMetrics *source); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLauncherMetrics, ch_launcher_metrics_free)

/* The seam's data is a ChLauncherMetrics. */
extern const ChDownwardMetricsSeam ch_launcher_metrics_seam;

/**
 * ch_launcher_metrics_report: what a launcher says, with what is known of its node.
 * @channel: to the launcher
 *
 * Blocks: for two calls of 5 s each.
 *
 * Returns: (transfer full): the metrics as XML; NULL with CH_ERROR or CH_LAUNCHER_ERROR
 */
char *ch_launcher_metrics_report(ChLauncherMetrics *source, ChGrpcChannel *channel, GError **error);
