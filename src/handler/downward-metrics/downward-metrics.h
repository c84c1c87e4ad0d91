/* SPDX-License-Identifier: Apache-2.0 */

/*
 * downward-metrics: metrics of node and VM for the guests that want them: on a disk (a volume
 * `downwardMetrics`), or on a channel (the device of that name). Spec 05 §14, 07 §7.
 *
 * Theory of operation: each pass over a running VM says what the VM has; what is served already
 * stays as it is, so that after a restart of the agent the first pass brings it back. The clean-up
 * of the VM ends it. A disk is written at once and then every five seconds: a round makes each disk
 * due, and a few jobs at a time work off those that are due, in order, so that launchers that hang
 * hold up a few of the pool's threads at most. One disk has one writer. A channel has a server
 * (serial-server.h). One lock guards what a pass asks, and is never held across I/O; the rest
 * belongs to the loop's thread.
 */

#pragma once

#include "handler/downward-metrics/serial-server.h"
#include "lib/json/json.h"

typedef struct ChDownwardMetrics ChDownwardMetrics;

#define CH_DOWNWARD_METRICS_ROUND_US G_GINT64_CONSTANT(5000000)
#define CH_DOWNWARD_METRICS_JOBS     8 /* at a time */

/* What it needs of the world. All run on workers, and block with a deadline. */
typedef struct {
    ChSerialSeam serial;
    /* Puts a report with its last newline on the VM's disk. */
    bool (*write)(gpointer data, const char *uid, const char *text, gsize length, GError **error);
    /* Whether there is a launcher to ask; before a server is started. Returns: false with
     * CH_ERROR_NOT_FOUND (there is certainly none), or why it cannot be told */
    bool (*has_launcher)(gpointer data, const char *uid, GError **error);
    int64_t round_us;
} ChDownwardMetricsSeam;

/* @loop, @pool, @seam, @seam_data: borrowed; outlive the pool's jobs. Thread: the loop's. */
ChDownwardMetrics *ch_downward_metrics_new(ChLoop *loop,
                                           ChWorkerPool *pool,
                                           const ChDownwardMetricsSeam *seam,
                                           gpointer seam_data);
/* Ends all. The pool has to be freed first. NULL is fine. Thread: the loop's. */
void ch_downward_metrics_free(ChDownwardMetrics *metrics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChDownwardMetrics, ch_downward_metrics_free)

/* Pure: whether a VMI has such a volume, such a device. */
bool ch_downward_metrics_has_disk(const ChJson *vmi);
bool ch_downward_metrics_has_channel(const ChJson *vmi);

/**
 * ch_downward_metrics_begin: serves what the VMI has, unless that is done already.
 * @metrics: NULL: nothing is done
 * @vmi: which runs
 *
 * Thread: any but the loop's. Blocks: for the hands, when a channel is new.
 *
 * Returns: false: no server was started for its channel, with the text that fails the sync of its
 * VM
 */
bool ch_downward_metrics_begin(ChDownwardMetrics *metrics, const ChJson *vmi, GError **error);

/* Ends what is served for VMI @uid. @metrics: NULL: nothing is done. Thread: any; never blocks. */
void ch_downward_metrics_end(ChDownwardMetrics *metrics, const char *uid);

/* For tests. Thread: the loop's. */
guint ch_downward_metrics_n_vms(const ChDownwardMetrics *metrics);
