/* SPDX-License-Identifier: Apache-2.0 */

/*
 * clients: the launcher connections of this node, one per VMI UID. Spec 01 §14, 03 §4.8.
 *
 * Theory of operation: an entry is made when a launcher is first looked for and goes with
 * ch_launcher_clients_close(). Connecting takes several steps (find the socket, write the ghost
 * record, dial, agree on a version, put the notify pipe into the pod); a failing step undoes the
 * earlier ones. A connection that was lost is made again when it is next asked for, as grpc-go does
 * below its callers, and so is one that was closed since nothing used it for a while: to the same
 * process nothing but the connection is made; another one, with another socket or in the place of
 * one that ended, is a launcher that was never connected to, but for the ghost record. What touches
 * a pod or the disk is done through ChLauncherSeam, which main fills with pod's and watch's
 * functions. One lock guards the table; no lock is held during a step. The work queue gives a key
 * to one worker at a time; should two workers connect one VMI all the same, the second takes the
 * first one's connection.
 *
 * Thread: workers (all functions); they block up to the deadlines of the steps.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/grpc/client.h"

#define CH_LAUNCHER_DIAL_TIMEOUT_US (2 * G_GINT64_CONSTANT(1000000))
/* Until a connection that nothing uses is closed. Longer than the pauses between the passes of a
 * start, a stop or a failing VM, so that only a VM at rest pays for another connection: 0.3 ms of a
 * processor. It saves 12 KB, and a launcher does not notice (grpc-go's client does the same after
 * 30 min: spec 03 §3.3). */
#define CH_LAUNCHER_IDLE_US (10 * G_GINT64_CONSTANT(1000000))
#define CH_LAUNCHER_READY_TIMEOUT_US                                                               \
    (180 * G_GINT64_CONSTANT(1000000)) /* from the first look to "unresponsive" */

typedef struct {
    const char *uid;
    const char *node;
} ChLauncherPod;

/* Who the launcher works for. Borrowed for the call. A VMI that is known by key only has no pods.
 */
typedef struct {
    const char *namespace_;
    const char *name;
    const char *uid;
    const ChLauncherPod *pods; /* status.activePods */
    gsize n_pods;
    bool is_nonroot;
    const char *known_socket; /* (nullable): on record for this very VMI; where its launcher is
                                 looked for when no pods are known */
    const char *found_socket; /* (nullable): ch_launcher_clients_probe() has just found it */
} ChLauncherVmi;

/* What the table cannot do itself. Functions run on worker threads and may block with a deadline.
 */
typedef struct {
    /* (transfer full): path of the pod's command socket, NULL when there is none.
     * @out_is_unresponsive: set when there is one: what is_unresponsive() would say at this moment
     */
    char *(*find_socket)(gpointer data, const char *pod_uid, bool *out_is_unresponsive);
    /* False only when there is certainly none: the VM then counts as ended */
    bool (*has_socket_dir)(gpointer data, const char *pod_uid);
    /* Spec 01 §14.4 note 3: by the files beside the socket, without connecting */
    bool (*is_unresponsive)(gpointer data, const char *socket_path);
    /* Whether somebody takes connections there, and the socket is not marked */
    bool (*is_live)(gpointer data, const char *socket_path);
    /* Ghost record. @out_is_new: whether it was not there before; only a new one is taken back when
     * connecting fails, since an old one may stand for a VM that runs */
    bool (*record)(gpointer data,
                   const ChLauncherVmi *vmi,
                   const char *socket_path,
                   bool *out_is_new,
                   GError **error);
    void (*forget)(gpointer data, const char *namespace_, const char *name, const char *uid);
    /* Connects and takes the pod into the hands' table. @out_fd: (transfer full) */
    bool (*connect)(
        gpointer data, const char *socket_path, int *out_fd, gpointer *out_pod, GError **error);
    /* Another connection to the process that @pod stands for, if that still listens. @out_fd:
     * (transfer full). Several threads at a time */
    bool (*reconnect)(gpointer data, gpointer pod, int *out_fd, GError **error);
    /* (transfer full): the listening notify pipe inside the pod; closed by close_pipe */
    gpointer (*open_pipe)(gpointer data, gpointer pod, const ChLauncherVmi *vmi, GError **error);
    void (*close_pipe)(gpointer data, gpointer pipe);
    void (*release)(gpointer data, gpointer pod);
} ChLauncherSeam;

typedef struct ChLauncherClients ChLauncherClients;

/**
 * ch_launcher_clients_new:
 * @loop: where the channels live
 * @node_name: (nullable): only pods of this node are looked at when a socket is searched; NULL or
 * "": all (NODE_NAME)
 */
ChLauncherClients *ch_launcher_clients_new(ChLoop *loop,
                                           const char *node_name,
                                           const ChLauncherSeam *seam,
                                           gpointer seam_data);
void ch_launcher_clients_free(ChLauncherClients *clients);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLauncherClients, ch_launcher_clients_free)

typedef enum {
    CH_LAUNCHER_LIVENESS_NOT_INITIALIZED,
    CH_LAUNCHER_LIVENESS_UNRESPONSIVE,
    CH_LAUNCHER_LIVENESS_RESPONSIVE,
} ChLauncherLiveness;

/* Spec 01 §14.4, with its side effects on the entry. No connection is made. @now_us: monotonic.
 * @out_found: (optional) (transfer full) (nullable): the socket, if it was looked for and found */
ChLauncherLiveness ch_launcher_clients_probe(ChLauncherClients *clients,
                                             const ChLauncherVmi *vmi,
                                             int64_t now_us,
                                             char **out_found);

/* Spec 01 §14.4 note 3 alone: by the files beside a socket that is known. */
ChLauncherLiveness ch_launcher_clients_probe_socket(ChLauncherClients *clients,
                                                    const char *socket_path);

/* A connected launcher. Counted, immutable: whoever holds one may use channel and pod across a
 * close (calls then end with CANCELED). */
typedef struct {
    ChGrpcChannel *channel; /* owned */
    gpointer pod;           /* the seam's, released with the last reference */
    int64_t since_us; /* when it was connected, monotonic: base of the container disks' grace */
} ChLauncherClient;

void ch_launcher_client_unref(ChLauncherClient *client); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLauncherClient, ch_launcher_client_unref)

/**
 * ch_launcher_clients_get: spec 01 §14.2. A cached connection is returned as it is; one that was
 * lost or closed is made again at the same socket. When that fails, a connection is returned on
 * which every call fails with UNAVAILABLE.
 *
 * Returns: (transfer full): NULL with @error
 */
ChLauncherClient *
ch_launcher_clients_get(ChLauncherClients *clients, const ChLauncherVmi *vmi, GError **error);

/* The same, and a Ping has been answered; the entry stays when it was not. Spec 01 §14.3 */
ChLauncherClient *ch_launcher_clients_get_verified(ChLauncherClients *clients,
                                                   const ChLauncherVmi *vmi,
                                                   GError **error);

/* (transfer full) (nullable): the VMI's launcher, for what concerns its pod (client.h), if it was
 * connected to; neither looked for nor connected to. Never blocks. */
struct ChLauncherPeer *ch_launcher_clients_find_peer(ChLauncherClients *clients, const char *uid);

/* Spec 01 §14.5: connection, pipe, pod handle, ghost record, entry. Nothing for an empty UID.
 * Idempotent. */
void ch_launcher_clients_close(ChLauncherClients *clients,
                               const char *namespace_,
                               const char *name,
                               const char *uid);

/* Closes the connections that nobody holds and nobody held for CH_LAUNCHER_IDLE_US before @now_us.
 * The table calls it itself. Returns: when the next one is due at the earliest; 0: none is left.
 * Thread: any; never blocks. */
int64_t ch_launcher_clients_close_idle(ChLauncherClients *clients, int64_t now_us);

/* Drops the entry of a VMI that was looked for and never connected. Thread: any; never blocks. */
void ch_launcher_clients_forget(ChLauncherClients *clients, const char *uid);

/**
 * ch_launcher_dial: a connection of its own for @fd: HTTP/2 up, version agreed.
 * @fd: (transfer full)
 * Returns: (transfer full): NULL with the texts of spec 03 §4.3
 */
ChGrpcChannel *ch_launcher_dial(ChLoop *loop, int fd, GError **error);
