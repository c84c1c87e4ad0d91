/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-net: the hands' operations on a pod's network, typed. Thread, Blocks: as of pod.h.
 * Spec: DESIGN.md §4; 04 §5, §10, §11.
 */

#pragma once

#include "handler/pod/pod.h"
#include "lib/linux/netlink.h"

/* What one send of a netlink conversation takes. */
#define CH_POD_NET_MAX_BYTES CH_HANDS_MAX_BYTES

/* (transfer full): conversations in the pod's network namespace, on which the hands send. @pod is
 * borrowed and outlives them. NULL with CH_ERRNO: ESRCH (the launcher is gone), ... */
ChNetlink *ch_pod_net_open_route(ChPod *pod, GError **error);
/* @sysctls: set there first, as by ch_pod_net_set_sysctls(); 0: none */
ChNetlink *ch_pod_net_open_netfilter(ChPod *pod, uint32_t sysctls, GError **error);

/* Lets the hands forget their side of the pod's conversations. Never blocks. */
void ch_pod_net_close(ChPod *pod);

/* Makes a persistent tap, of root or of 107:107. */
bool ch_pod_net_make_tap(
    ChPod *pod, const char *name, bool is_non_root, bool is_multi_queue, GError **error);

/* @sysctls: CH_HANDS_SYSCTL_* */
bool ch_pod_net_set_sysctls(ChPod *pod, uint32_t sysctls, GError **error);

/* Writes the file that the launcher's DHCP server reads for @link. */
bool ch_pod_net_store_dhcp(ChPod *pod, const char *link, const char *json, GError **error);

/* Removes that file. None there: true. */
bool ch_pod_net_remove_dhcp(ChPod *pod, const char *link, GError **error);

/* Gives the new cache file of a network to 107:107, before it takes the old one's place. */
bool ch_pod_net_own_cache(ChPod *pod, const char *vmi_uid, const char *network, GError **error);
