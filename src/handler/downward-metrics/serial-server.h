/* SPDX-License-Identifier: Apache-2.0 */

/*
 * serial-server: answers one guest that asks for metrics on a channel of its VM.
 *
 * Theory of operation: QEMU listens in the pod, and the guest's end of the channel is a device; the
 * server connects, in six attempts with growing pauses, as QEMU may not be there yet. Then it reads
 * a request, answers it, and only then reads the next, one a second at most: what the guest writes
 * meanwhile waits in the kernel. It ends when QEMU closes the connection, and is not made again
 * until the VM is. What blocks is done by the pool, on a counted reference, for a few servers at a
 * time, in the order in which they came: launchers that hang hold up a few of the pool's threads at
 * most. All else, and each decision, happens on the loop's thread. Thread: the loop's. Spec 05 §14,
 * 07 §7.3.
 */

#pragma once

#include "lib/io/loop.h"
#include "lib/io/worker-pool.h"

/* What it needs of the world; both run on a worker, and block with a deadline. */
typedef struct {
    /* Returns: false with CH_ERRNO (ENOENT, ECONNREFUSED, or what ch_pod_error_is_passing() says:
     * not yet). @out_fd: (transfer full): non-blocking */
    bool (*connect)(gpointer data, const char *uid, int *out_fd, GError **error);
    /* (transfer full): the metrics as XML */
    char *(*report)(gpointer data, const char *uid, GError **error);
    int64_t pause_us;   /* after the first attempt to connect; each later pause is twice as long */
    int64_t request_us; /* from one request to the next at least */
} ChSerialSeam;

#define CH_SERIAL_MAX_ATTEMPTS 6
#define CH_SERIAL_PAUSE_US     G_GINT64_CONSTANT(1000000)
#define CH_SERIAL_REQUEST_US   G_GINT64_CONSTANT(1000000)

typedef struct ChSerialServer ChSerialServer;

/* What the servers of a node share. */
typedef struct {
    guint n_running; /* jobs of the pool */
    GQueue waiting;  /* ChSerialServer, borrowed: who wants one */
} ChSerialJobs;
#define CH_SERIAL_MAX_JOBS 8
#define CH_SERIAL_JOBS_INIT                                                                        \
    {                                                                                              \
        0, G_QUEUE_INIT                                                                            \
    }

/**
 * ch_serial_server_new: begins at once.
 * @loop, @pool, @jobs, @seam, @seam_data: borrowed; outlive the pool's jobs
 * @key: of the VMI, for the log
 */
ChSerialServer *ch_serial_server_new(ChLoop *loop,
                                     ChWorkerPool *pool,
                                     ChSerialJobs *jobs,
                                     const ChSerialSeam *seam,
                                     gpointer seam_data,
                                     const char *key,
                                     const char *uid);
/* Closes the connection; what a worker does for it is dropped when it is done. NULL is fine. */
void ch_serial_server_free(ChSerialServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChSerialServer, ch_serial_server_free)

/* Whether it has come to its end by itself. */
bool ch_serial_server_has_ended(const ChSerialServer *server);

/* For tests: how many attempts to connect were made. */
unsigned ch_serial_server_n_attempts(const ChSerialServer *server);
