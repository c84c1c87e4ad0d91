/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/pod-net.h"

#include <errno.h>
#include <string.h>

#include "handler/pod/pod-internal.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"

static bool
send_on(ChPod *pod, ChHandsNet net, const void *bytes, gsize n_bytes, GError **error)
{
    const ChHandsRequest request = {.op = CH_HANDS_OP_NET_SEND,
                                    .handle = pod->handle,
                                    .net = net,
                                    .n_bytes = (uint32_t)n_bytes};

    return ch_hands_call_with(pod->hands, &request, bytes, NULL, NULL, error);
}

static bool
send_route(gpointer pod, const void *bytes, gsize n_bytes, GError **error)
{
    return send_on(pod, CH_HANDS_NET_ROUTE, bytes, n_bytes, error);
}

static bool
send_netfilter(gpointer pod, const void *bytes, gsize n_bytes, GError **error)
{
    return send_on(pod, CH_HANDS_NET_NETFILTER, bytes, n_bytes, error);
}

static ChNetlink *
open_net(ChPod *pod, ChHandsNet net, uint32_t sysctls, ChNetlinkSend send, GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_NET_OPEN, .handle = pod->handle, .net = net, .sysctls = sysctls};
    ch_autofd int fd = -EBADF;

    if (!ch_hands_call(pod->hands, &request, NULL, &fd, error))
        return NULL;
    return ch_netlink_new(g_steal_fd(&fd), send, pod);
}

ChNetlink *
ch_pod_net_open_route(ChPod *pod, GError **error)
{
    ChNetlink *netlink = open_net(pod, CH_HANDS_NET_ROUTE, 0, send_route, error);

    if (netlink != NULL)
        ch_netlink_send_dumps(netlink);
    return netlink;
}

ChNetlink *
ch_pod_net_open_netfilter(ChPod *pod, uint32_t sysctls, GError **error)
{
    return open_net(pod, CH_HANDS_NET_NETFILTER, sysctls, send_netfilter, error);
}

void
ch_pod_net_close(ChPod *pod)
{
    ch_pod_tell(pod, &(ChHandsRequest){.op = CH_HANDS_OP_NET_CLOSE, .handle = pod->handle});
}

bool
ch_pod_net_make_tap(
    ChPod *pod, const char *name, bool is_non_root, bool is_multi_queue, GError **error)
{
    ChHandsRequest request = {
        .op = CH_HANDS_OP_TAP_MAKE,
        .handle = pod->handle,
        .flags =
            (is_non_root ? CH_HANDS_NON_ROOT : 0) | (is_multi_queue ? CH_HANDS_MULTI_QUEUE : 0),
    };

    g_strlcpy(request.name, name, sizeof(request.name));
    return ch_hands_call(pod->hands, &request, NULL, NULL, error);
}

bool
ch_pod_net_set_sysctls(ChPod *pod, uint32_t sysctls, GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_SYSCTLS_SET, .handle = pod->handle, .sysctls = sysctls};

    return ch_hands_call(pod->hands, &request, NULL, NULL, error);
}

bool
ch_pod_net_store_dhcp(ChPod *pod, const char *link, const char *json, GError **error)
{
    ChHandsRequest request = {
        .op = CH_HANDS_OP_DHCP_STORE, .handle = pod->handle, .n_bytes = (uint32_t)strlen(json)};

    if (!ch_hands_link_name_is_valid(link))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no name of a pod's link", link);
    g_strlcpy(request.name, link, sizeof(request.name));
    return ch_hands_call_with(pod->hands, &request, json, NULL, NULL, error);
}

bool
ch_pod_net_remove_dhcp(ChPod *pod, const char *link, GError **error)
{
    ChHandsRequest request = {.op = CH_HANDS_OP_DHCP_REMOVE, .handle = pod->handle};

    if (!ch_hands_link_name_is_valid(link))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no name of a pod's link", link);
    g_strlcpy(request.name, link, sizeof(request.name));
    return ch_hands_call(pod->hands, &request, NULL, NULL, error);
}

bool
ch_pod_net_own_cache(ChPod *pod, const char *vmi_uid, const char *network, GError **error)
{
    ChHandsRequest request = {.op = CH_HANDS_OP_CACHE_OWN};

    if (!ch_hands_uid_is_valid(vmi_uid) || !ch_hands_network_name_is_valid(network))
        return ch_fail(error, CH_ERROR_INVALID, "'%s/%s' names no network", vmi_uid, network);
    g_strlcpy(request.uid, vmi_uid, sizeof(request.uid));
    g_strlcpy(request.name, network, sizeof(request.name));
    return ch_hands_call(pod->hands, &request, NULL, NULL, error);
}
