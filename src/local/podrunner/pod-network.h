/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-network: gives a pod's namespace its interfaces by CNI plugins, and takes them back.
 *
 * Theory of operation: what is about to be done is on record before a plugin is asked, so whoever
 * comes later (the next attempt, the next pod runner) takes everything back first. The namespace
 * may be gone by then, and with it the link: what DEL has to free are addresses and host ports,
 * and plugins free these by the container's id. Thread: a worker's. Blocks: for plugins
 * (cni-call.h), and the disk. Spec: CNI specification 1.0.
 */

#pragma once

#include "local/podrunner/cni.h"
#include "local/podrunner/record.h"

#define CH_CNI_DEFAULT_PATH "/usr/lib/cni:/opt/cni/bin"

/* So often in a row plugins may fail to take something back. */
#define CH_POD_NETWORK_MAX_FAILED_DELS 3

typedef struct {
    const char *state_dir;
    const char *cni_path;        /* where plugins are looked for, as CNI_PATH */
    const ChCniNetwork *network; /* (nullable): this machine offers none; */
    const char *why_no_network;  /* (nullable): then it says why */
    const char *lease_dir;       /* of all networks */
} ChPodNetworkEnv;

/* What one pod shall have. */
typedef struct {
    bool has_pod_network;
    const ChHostPort *ports; /* that lead to it */
    gsize n_ports;
    ChJson *attachments; /* to secondary networks (multus.h), with plugins; gets results */
} ChPodNetworkWish;

/**
 * ch_pod_network_connect: loopback; bridge, and portmap if ports are asked for; then the others.
 * @record: of a running container that is not connected; what an earlier attempt left was taken
 * back (ch_pod_network_disconnect()), as the specification wants it. network, ips and attachments
 * are set, and stored
 *
 * Returns: false with one sentence for people; what was begun is on record
 */
bool ch_pod_network_connect(const ChPodNetworkEnv *env,
                            ChRecord *record,
                            const ChPodNetworkWish *wish,
                            GError **error);

/**
 * ch_pod_network_disconnect: takes back what is on record. Idempotent.
 *
 * After some failures it gives up: addresses are freed without the plugins then.
 *
 * Returns: false: try again later
 */
bool ch_pod_network_disconnect(const ChPodNetworkEnv *env, ChRecord *record, GError **error);
