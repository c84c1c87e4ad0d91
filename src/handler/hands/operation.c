/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/operation.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "handler/hands/cache.h"
#include "handler/hands/labeller.h"
#include "handler/hands/launcher.h"
#include "handler/hands/net-check.h"
#include "handler/hands/pod-table.h"
#include "handler/hands/reply.h"
#include "handler/hands/source.h"
#include "handler/hands/step.h"
#include "lib/base/fd.h"
#include "lib/linux/pidfd.h"

#define MAX_REPAIRS 8 /* at a time; each takes a minute */

static bool
begin_connect(const ChHandsRequest *request, int channel_fd, ChHandsReply *reply)
{
    ChTask task = {.request = *request, .channel_fd = channel_fd};

    if (!ch_launcher_connect(request->uid, &task.connection, reply))
        return true;
    if (!ch_launcher_identify(request->uid, &task.connection, &task.pod, reply)) {
        close(task.connection.socket_fd);
        return true;
    }
    if (!ch_task_start(&task, NULL, task.pod.pidfd, ch_step_do, reply)) {
        close(task.connection.socket_fd);
        close(task.pod.pidfd);
        return true;
    }
    return false;
}

static int
given_fd(const ChPodEntry *pod, const ChHandsRequest *request)
{
    switch (ch_step_on(request->op)) {
    case CH_STEP_ON_ROOT:
        return pod->root_fd;
    case CH_STEP_ON_PROCESS:
        return pod->pidfd;
    case CH_STEP_ON_NET:
        return pod->net_fds[request->net];
    case CH_STEP_ON_MOUNTS:
    case CH_STEP_ON_FILES:
    case CH_STEP_ON_SOURCE:
    case CH_STEP_ON_NOTHING:
        break;
    }
    g_assert_not_reached();
}

/* The pod of the request's handle; NULL with the reply filled in: nothing is to be done in it. */
static const ChPodEntry *
find_pod(const ChHandsRequest *request, ChHandsReply *reply)
{
    const ChPodEntry *pod = ch_pod_table_find(request->handle);

    /* The root of a launcher that is gone may still be there, with nobody in it to serve. Removing
     * our own socket is fine even then. */
    if (pod == NULL)
        (void)ch_reply_fail(reply, ENOENT, "no such pod handle");
    else if (request->op != CH_HANDS_OP_PIPE_CLOSE && !ch_pidfd_is_alive(pod->pidfd))
        (void)ch_reply_fail(reply, ESRCH, "launcher of pod '%s'", pod->uid);
    return reply->errnum == 0 ? pod : NULL;
}

/* Returns as ch_operation_begin() does. */
static bool
begin_inside(const ChHandsRequest *request, const void *bytes, int channel_fd, ChHandsReply *reply)
{
    const ChPodEntry *pod = find_pod(request, reply);
    /* A netlink socket comes into the table with the answer. */
    ChTask task = {.request = *request,
                   .channel_fd = channel_fd,
                   .is_direct = request->op != CH_HANDS_OP_NET_OPEN};

    if (pod == NULL)
        return true;
    task.pod = *pod;
    return !ch_task_start(&task, bytes, given_fd(pod, request), ch_step_do, reply);
}

/* With a label: the child waits for who makes it. */
static bool
begin_labelled_tap(const ChHandsRequest *request, int channel_fd, ChHandsReply *reply)
{
    const ChPodEntry *pod = find_pod(request, reply);
    ChTask task = {.request = *request, .channel_fd = channel_fd};
    ChTapOrder order = {.flags = request->flags};
    ch_autofd int fd = -EBADF;
    int result;

    if (pod == NULL)
        return true;
    order.pid = pod->pid;
    memcpy(order.name, request->name, sizeof(order.name));
    result = ch_labeller_ask(&order, pod->pidfd, &fd);
    if (result != 0)
        return !ch_reply_fail(reply, result, "ask for tap device named %s", request->name);
    task.pod = *pod;
    return !ch_task_start(&task, NULL, fd, ch_step_do, reply);
}

static bool
begin_send_net(const ChHandsRequest *request,
               const void *bytes,
               int channel_fd,
               ChHandsReply *reply)
{
    const ChPodEntry *pod = ch_pod_table_find(request->handle);
    int refusal;

    if (pod != NULL && pod->net_fds[request->net] < 0)
        return !ch_reply_fail(reply, ENOTCONN, "no netlink socket in pod '%s'", pod->uid);
    refusal = ch_net_check(request->net, bytes, request->n_bytes);
    if (pod != NULL && refusal != 0)
        return !ch_reply_fail(reply, refusal, "refused netlink messages");
    return begin_inside(request, bytes, channel_fd, reply);
}

static bool
begin_repair(const ChHandsRequest *request, int channel_fd, ChHandsReply *reply)
{
    if (ch_task_count(CH_HANDS_OP_PASST_REPAIR) >= MAX_REPAIRS)
        return !ch_reply_fail(reply, EAGAIN, "more than %d migrations with passt", MAX_REPAIRS);
    return begin_inside(request, NULL, channel_fd, reply);
}

/* By UID: a pod whose launcher is gone is cleaned up too. Or about no pod. */
static bool
begin_by_uid(const ChHandsRequest *request, const void *bytes, int channel_fd, ChHandsReply *reply)
{
    ChTask task = {.request = *request,
                   .channel_fd = channel_fd,
                   .is_direct = true,
                   .is_on_mounts = ch_step_on(request->op) == CH_STEP_ON_MOUNTS};

    if (request->n_bytes > 0 && !ch_hands_path_is_valid(bytes, request->n_bytes))
        return !ch_reply_fail(reply, EINVAL, "refused the path in an image");
    (void)g_strlcpy(task.pod.uid, request->uid, sizeof(task.pod.uid));
    return !ch_task_start(&task, bytes, -EBADF, ch_step_do, reply);
}

static void
look_at_source(const ChHandsRequest *request, ChHandsReply *reply)
{
    const ChSourceName name = {request->uid, request->mount, request->index};

    (void)ch_source_look(&name, reply);
}

/* At once, unlike CONNECT: the pod's root is open already. */
static void
reconnect(const ChHandsRequest *request, int *out_fd, ChHandsReply *reply)
{
    const ChPodEntry *pod = ch_pod_table_find(request->handle);

    if (pod == NULL)
        (void)ch_reply_fail(reply, ENOENT, "no such pod handle");
    else
        (void)ch_launcher_reconnect(pod, out_fd, reply);
}

static void
probe(const ChHandsRequest *request, ChHandsReply *reply)
{
    ChLauncherConnection connection;

    if (ch_launcher_connect(request->uid, &connection, reply))
        close(connection.socket_fd);
}

bool
ch_operation_begin(const ChHandsRequest *request,
                   const void *bytes,
                   int channel_fd,
                   int *out_fd,
                   ChHandsReply *reply)
{
    switch ((ChHandsOp)request->op) {
    case CH_HANDS_OP_HELLO:
        reply->pid = getpid();
        return true;
    case CH_HANDS_OP_LOOK:
        (void)ch_launcher_look(request->uid, reply);
        return true;
    case CH_HANDS_OP_MARK:
        (void)ch_launcher_mark(request->uid, reply);
        return true;
    case CH_HANDS_OP_PROBE:
        probe(request, reply);
        return true;
    case CH_HANDS_OP_CONNECT:
        return begin_connect(request, channel_fd, reply);
    case CH_HANDS_OP_RECONNECT:
        reconnect(request, out_fd, reply);
        return true;
    case CH_HANDS_OP_RELEASE:
        return ch_pod_table_release(request->handle) ||
               !ch_reply_fail(reply, ENOENT, "no such pod handle");
    case CH_HANDS_OP_NET_SEND:
        return begin_send_net(request, bytes, channel_fd, reply);
    case CH_HANDS_OP_NET_CLOSE:
        return ch_pod_table_close_net(request->handle) ||
               !ch_reply_fail(reply, ENOENT, "no such pod handle");
    case CH_HANDS_OP_PIPE_OPEN:
    case CH_HANDS_OP_PIPE_CLOSE:
    case CH_HANDS_OP_DEVICES_OWN:
    case CH_HANDS_OP_BLOCK_OWN:
    case CH_HANDS_OP_VIRTIOFS_OWN:
    case CH_HANDS_OP_DISK_PREPARE:
    case CH_HANDS_OP_METRICS_WRITE:
    case CH_HANDS_OP_METRICS_CONNECT:
    case CH_HANDS_OP_NET_OPEN:
    case CH_HANDS_OP_SYSCTLS_SET:
    case CH_HANDS_OP_DHCP_STORE:
    case CH_HANDS_OP_DHCP_REMOVE:
    case CH_HANDS_OP_IMAGE_STAT:
    case CH_HANDS_OP_LABEL_READ:
    case CH_HANDS_OP_DEVICES_LOOK:
    case CH_HANDS_OP_DEVICES_SET:
    case CH_HANDS_OP_MEMLOCK_SET:
    case CH_HANDS_OP_HOUSE_KEEP:
    case CH_HANDS_OP_REALTIME_SET:
    case CH_HANDS_OP_PIT_SET:
        return begin_inside(request, bytes, channel_fd, reply);
    case CH_HANDS_OP_TAP_MAKE:
        return ch_labeller_is_wanted() ? begin_labelled_tap(request, channel_fd, reply)
                                       : begin_inside(request, bytes, channel_fd, reply);
    case CH_HANDS_OP_PASST_REPAIR:
        return begin_repair(request, channel_fd, reply);
    case CH_HANDS_OP_SOURCE_LOOK:
        look_at_source(request, reply);
        return true;
    case CH_HANDS_OP_TARGET_LOOK:
    case CH_HANDS_OP_MOUNT:
    case CH_HANDS_OP_UNMOUNT:
    case CH_HANDS_OP_SWEEP:
    case CH_HANDS_OP_NODE_LOOK:
    case CH_HANDS_OP_NODE_MAKE:
    case CH_HANDS_OP_NODE_REMOVE:
    case CH_HANDS_OP_IMAGE_SUM:
    case CH_HANDS_OP_MULTIPATH_WATCH:
    case CH_HANDS_OP_MULTIPATH_SET:
    case CH_HANDS_OP_RESERVATION_WATCH:
    case CH_HANDS_OP_RESERVATION_OWN:
        return begin_by_uid(request, bytes, channel_fd, reply);
    case CH_HANDS_OP_CACHE_OWN:
        (void)ch_cache_own(request->uid, request->name, reply);
        return true;
    case CH_HANDS_OP_INVALID:
    case CH_HANDS_OP_N:
        break;
    }
    return !ch_reply_fail(reply, ENOSYS, "operation %u", request->op);
}

static int
finish_connect(ChTask *task, int *fd, ChHandsReply *reply)
{
    if (*fd < 0) {
        (void)ch_reply_fail(reply, EPROTO, "an operation's process sent no descriptor");
        return -EBADF;
    }
    task->pod.root_fd = g_steal_fd(fd);
    reply->handle = ch_pod_table_add(&task->pod);
    if (reply->handle == 0) {
        (void)ch_reply_fail(reply, ENOSPC, "more than %d pods", CH_POD_TABLE_SIZE);
        return -EBADF;
    }
    reply->pid = task->pod.pid;
    task->pod.pidfd = task->pod.root_fd = -EBADF; /* the table's now */
    return task->connection.socket_fd;
}

/* Both keep the socket: the brain reads, the hands send. */
static int
finish_net_open(const ChTask *task, int *fd, ChHandsReply *reply)
{
    if (*fd < 0 || !ch_pod_table_keep_net(task->request.handle, task->request.net, *fd)) {
        (void)ch_reply_fail(reply, ENOENT, "no socket, or no such pod handle any more");
        return -EBADF;
    }
    return g_steal_fd(fd); /* borrowed from the table now */
}

int
ch_operation_finish(ChTask *task, int *fd, ChHandsReply *reply)
{
    if (reply->errnum != 0)
        return -EBADF;
    if (task->request.op == CH_HANDS_OP_CONNECT)
        return finish_connect(task, fd, reply);
    if (task->request.op == CH_HANDS_OP_NET_OPEN)
        return finish_net_open(task, fd, reply);
    return *fd;
}
