/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network: sets up a pod's networks for its VM, and takes them away.
 *
 * Theory of operation: each network is pending, started or finished, on disk. What the launcher and
 * the status need of the untouched pod is written down first, then `started`; then the links are
 * brought to the wanted state step by step (network-plan.h), sysctls and rules follow, then
 * `finished`. A network whose interface is absent loses its links, its file in the launcher, and
 * last its state. All of it can be interrupted anywhere and done again. Spec: 04 §3, §13 to §15.
 *
 * Thread: any but the loop's, one at a time per VMI. Blocks: for the hands and the kernel, normally
 * a few milliseconds.
 */

#pragma once

#include "handler/config/cluster-config.h"
#include "handler/pod/network-filter.h"
#include "handler/pod/pod.h"
#include "lib/json/json.h"

typedef enum {
    CH_POD_NETWORK_OK = 0,
    CH_POD_NETWORK_RETRY,    /* nothing is lost: another pass may do it */
    CH_POD_NETWORK_CRITICAL, /* "Critical network error: ..." */
} ChPodNetworkOutcome;

typedef struct {
    const char *private_dir;
    const char *own_ip;            /* MY_POD_IP: its family comes first; NULL: IPv4 does */
    const ChClusterConfig *config; /* binding plugins, feature gates */
} ChPodNetworkOptions;

/**
 * ch_pod_network_set_up: of the networks that @run is about.
 * @vmi: its document
 *
 * Networks that are finished and stay, and those that are gone, cost nothing. CRITICAL says that
 * the pod refuses; what a VM makes of it is the caller's: one that runs already goes on.
 */
ChPodNetworkOutcome ch_pod_network_set_up(ChPod *pod,
                                          const ChJson *vmi,
                                          ChNetworkRun run,
                                          const ChPodNetworkOptions *options,
                                          GError **error);
