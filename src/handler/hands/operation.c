/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/operation.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "handler/hands/cache.h"
#include "handler/hands/cgroup-step.h"
#include "handler/hands/inside-daemons.h"
#include "handler/hands/inside-devices.h"
#include "handler/hands/inside-disk.h"
#include "handler/hands/inside-look.h"
#include "handler/hands/inside-metrics.h"
#include "handler/hands/inside-mount.h"
#include "handler/hands/inside-net.h"
#include "handler/hands/inside-node.h"
#include "handler/hands/inside-own.h"
#include "handler/hands/inside-passt.h"
#include "handler/hands/inside-sum.h"
#include "handler/hands/inside-unmount.h"
#include "handler/hands/inside.h"
#include "handler/hands/labeller.h"
#include "handler/hands/launcher.h"
#include "handler/hands/net-check.h"
#include "handler/hands/pod-table.h"
#include "handler/hands/process-sched.h"
#include "handler/hands/process.h"
#include "handler/hands/reply.h"
#include "handler/hands/source.h"
#include "lib/base/fd.h"
#include "lib/linux/clock.h"
#include "lib/linux/pidfd.h"

/* Each takes a minute in which it mostly waits. */
#define MAX_REPAIRS       8
#define REPAIR_TIMEOUT_US INT64_C(60000000)

/* --- in the child */

/* What a step works on. */
typedef enum {
    ON_NOTHING = 0, /* no step */
    ON_ROOT,        /* the pod's */
    ON_PROCESS,     /* the launcher's pidfd */
    ON_NET,         /* the netlink socket in the pod */
    ON_MOUNTS,      /* the node's mounts: no descriptor */
    ON_FILES,       /* kubelet's directories, or the node's: no descriptor */
    ON_SOURCE,      /* who serves an image: no descriptor */
} On;

typedef bool (*Step)(
    const ChStep *step, const void *bytes, int fd, int *out_fd, ChHandsReply *reply);

static bool
open_root(const ChStep *step, const void *bytes, int pidfd, int *out_fd, ChHandsReply *reply)
{
    const ChPodEntry listener = {.pid = step->pid, .pidfd = pidfd};

    return ch_launcher_open_root(&listener, &step->inode, out_fd, reply);
}

static bool
open_pipe(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_open_pipe(root_fd, step->request.flags & CH_HANDS_NON_ROOT, out_fd, reply);
}

static bool
close_pipe(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    const ChFileId pipe = {step->request.dev, step->request.ino};

    return ch_inside_close_pipe(root_fd, &pipe, reply);
}

static bool
own_devices(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_own_devices(
        root_fd, step->request.devices, step->request.flags & CH_HANDS_EMULATION, reply);
}

static bool
own_block(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_own_block(root_fd, step->request.name, reply);
}

static bool
prepare_disk(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    ChHandsDisk disk;
    const int refusal = ch_hands_disk_check(bytes, step->request.n_bytes, &disk);

    if (refusal != 0)
        return ch_reply_fail(reply, refusal, "refused host disk");
    return ch_inside_prepare_disk(
        root_fd, step->request.name, &disk, step->request.flags & CH_HANDS_NON_ROOT, reply);
}

static bool
write_metrics(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_write_metrics(root_fd, bytes, step->request.n_bytes, reply);
}

static bool
connect_metrics(
    const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_connect_metrics(root_fd, out_fd, reply);
}

static bool
own_virtiofs(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_own_virtiofs(root_fd, step->request.name, reply);
}

static bool
store_dhcp(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_store_dhcp(root_fd, step->request.name, bytes, step->request.n_bytes, reply);
}

static bool
remove_dhcp(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_remove_dhcp(root_fd, step->request.name, reply);
}

static bool
stat_image(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_stat_image(
        root_fd, step->request.image, step->request.uid, step->request.name, reply);
}

static bool
read_label(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_read_label(root_fd, reply);
}

static bool
open_net(const ChStep *step, const void *bytes, int pidfd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_open_net(pidfd, step->request.net, step->request.sysctls, out_fd, reply);
}

/* In a child, since the kernel may have it wait: for another network's teardown, say. */
static bool
send_net(const ChStep *step, const void *bytes, int net_fd, int *out_fd, ChHandsReply *reply)
{
    const int result = ch_net_send(net_fd, bytes, step->request.n_bytes);

    return result == 0 || ch_reply_fail(reply, result, "send netlink messages");
}

/* @fd: where the labeller answers, else the launcher's pidfd */
static bool
make_tap(const ChStep *step, const void *bytes, int fd, int *out_fd, ChHandsReply *reply)
{
    if (ch_labeller_is_wanted())
        return ch_labeller_await(fd, reply);
    return ch_inside_make_tap(fd, step->request.name, step->request.flags, reply);
}

static bool
set_sysctls(const ChStep *step, const void *bytes, int pidfd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_set_sysctls(pidfd, step->request.sysctls, reply);
}

/* For less time than the hands give it, so that it says itself that it was too long. */
static bool
repair_passt(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_repair_passt(
        root_fd, step->request.flags & CH_HANDS_TARGET, ch_clock_us() + REPAIR_TIMEOUT_US, reply);
}

static bool
look_at_target(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_look_at_target(&step->request, bytes, reply);
}

static bool
mount_source(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_mount(&step->request, bytes, reply);
}

static bool
sum_image(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_sum_image(&step->request, bytes, reply);
}

static bool
unmount_target(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_unmount(&step->request, reply);
}

static bool
sweep(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_sweep(&step->request, reply);
}

static bool
look_at_node(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_look_at_node(&step->request, reply);
}

static bool
make_node(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_make_node(&step->request, reply);
}

static bool
remove_node(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_remove_node(&step->request, reply);
}

static bool
look_for_devices(
    const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_has_devices(root_fd, step->request.flags, reply);
}

static bool
set_devices(const ChStep *step, const void *bytes, int root_fd, int *out_fd, ChHandsReply *reply)
{
    return ch_cgroup_step_set_devices(step, bytes, root_fd, reply);
}

static bool
set_memlock(const ChStep *step, const void *bytes, int pidfd, int *out_fd, ChHandsReply *reply)
{
    return ch_cgroup_step_set_memlock(step, bytes, pidfd, reply);
}

static bool
keep_house(const ChStep *step, const void *bytes, int pidfd, int *out_fd, ChHandsReply *reply)
{
    return ch_cgroup_step_keep_house(step, bytes, pidfd, reply);
}

static bool
set_realtime(const ChStep *step, const void *bytes, int pidfd, int *out_fd, ChHandsReply *reply)
{
    return ch_cgroup_step_set_realtime(step, bytes, pidfd, reply);
}

static bool
set_pit(const ChStep *step, const void *bytes, int pidfd, int *out_fd, ChHandsReply *reply)
{
    return ch_process_set_pit(step->pid, pidfd, step->request.flags & CH_HANDS_REALTIME, reply);
}

static bool
watch_multipath(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_watch_multipath(out_fd, reply);
}

static bool
set_multipath(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_set_multipath(&step->request, reply);
}

static bool
watch_reservation(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_watch_reservation(out_fd, reply);
}

static bool
own_reservation(const ChStep *step, const void *bytes, int none, int *out_fd, ChHandsReply *reply)
{
    return ch_inside_own_reservation(reply);
}

static const struct {
    Step func;
    On on;
} steps[CH_HANDS_OP_N] = {
    /* clang-format off */
    [CH_HANDS_OP_CONNECT]      = {open_root,    ON_PROCESS},
    [CH_HANDS_OP_PIPE_OPEN]    = {open_pipe,    ON_ROOT},
    [CH_HANDS_OP_PIPE_CLOSE]   = {close_pipe,   ON_ROOT},
    [CH_HANDS_OP_DEVICES_OWN]  = {own_devices,  ON_ROOT},
    [CH_HANDS_OP_BLOCK_OWN]    = {own_block,    ON_ROOT},
    [CH_HANDS_OP_VIRTIOFS_OWN] = {own_virtiofs, ON_ROOT},
    [CH_HANDS_OP_DISK_PREPARE] = {prepare_disk, ON_ROOT},
    [CH_HANDS_OP_METRICS_WRITE] = {write_metrics, ON_ROOT},
    [CH_HANDS_OP_METRICS_CONNECT] = {connect_metrics, ON_ROOT},
    [CH_HANDS_OP_DHCP_STORE]   = {store_dhcp,   ON_ROOT},
    [CH_HANDS_OP_DHCP_REMOVE]  = {remove_dhcp,  ON_ROOT},
    [CH_HANDS_OP_IMAGE_STAT]  = {stat_image,   ON_ROOT},
    [CH_HANDS_OP_LABEL_READ]   = {read_label,   ON_ROOT},
    [CH_HANDS_OP_NET_OPEN]     = {open_net,     ON_PROCESS},
    [CH_HANDS_OP_NET_SEND]     = {send_net,     ON_NET},
    [CH_HANDS_OP_TAP_MAKE]     = {make_tap,     ON_PROCESS},
    [CH_HANDS_OP_SYSCTLS_SET]  = {set_sysctls,  ON_PROCESS},
    [CH_HANDS_OP_PASST_REPAIR] = {repair_passt, ON_ROOT},
    [CH_HANDS_OP_TARGET_LOOK]  = {look_at_target, ON_MOUNTS},
    [CH_HANDS_OP_MOUNT]        = {mount_source, ON_MOUNTS},
    [CH_HANDS_OP_UNMOUNT]      = {unmount_target, ON_MOUNTS},
    [CH_HANDS_OP_SWEEP] = {sweep, ON_MOUNTS},
    [CH_HANDS_OP_NODE_LOOK]    = {look_at_node, ON_FILES},
    [CH_HANDS_OP_NODE_MAKE]    = {make_node,    ON_FILES},
    [CH_HANDS_OP_NODE_REMOVE]  = {remove_node,  ON_FILES},
    [CH_HANDS_OP_IMAGE_SUM]    = {sum_image,    ON_SOURCE},
    [CH_HANDS_OP_DEVICES_LOOK] = {look_for_devices, ON_ROOT},
    [CH_HANDS_OP_DEVICES_SET]  = {set_devices,  ON_ROOT},
    [CH_HANDS_OP_MEMLOCK_SET]  = {set_memlock,  ON_PROCESS},
    [CH_HANDS_OP_HOUSE_KEEP]   = {keep_house,   ON_PROCESS},
    [CH_HANDS_OP_REALTIME_SET] = {set_realtime, ON_PROCESS},
    [CH_HANDS_OP_PIT_SET]      = {set_pit,      ON_PROCESS},
    [CH_HANDS_OP_MULTIPATH_WATCH]   = {watch_multipath,   ON_FILES},
    [CH_HANDS_OP_MULTIPATH_SET]     = {set_multipath,     ON_MOUNTS},
    [CH_HANDS_OP_RESERVATION_WATCH] = {watch_reservation, ON_FILES},
    [CH_HANDS_OP_RESERVATION_OWN]   = {own_reservation,   ON_FILES},
    /* clang-format on */
};

/* The hands checked the request before they sent it on. */
static bool
do_step(const ChStep *step, const void *bytes, int given_fd, int *out_fd, ChHandsReply *reply)
{
    (void)steps[step->request.op].func(step, bytes, given_fd, out_fd, reply);
    return steps[step->request.op].on != ON_MOUNTS && !ch_process_has_left() &&
           ch_inside_leave_net();
}

/* --- in the hands */

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
    if (!ch_task_start(&task, NULL, task.pod.pidfd, do_step, reply)) {
        close(task.connection.socket_fd);
        close(task.pod.pidfd);
        return true;
    }
    return false;
}

static int
given_fd(const ChPodEntry *pod, const ChHandsRequest *request)
{
    switch (steps[request->op].on) {
    case ON_ROOT:
        return pod->root_fd;
    case ON_PROCESS:
        return pod->pidfd;
    case ON_NET:
        return pod->net_fds[request->net];
    case ON_MOUNTS:
    case ON_FILES:
    case ON_SOURCE:
    case ON_NOTHING:
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
    return !ch_task_start(&task, bytes, given_fd(pod, request), do_step, reply);
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
    return !ch_task_start(&task, NULL, fd, do_step, reply);
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
                   .is_on_mounts = steps[request->op].on == ON_MOUNTS};

    if (request->n_bytes > 0 && !ch_hands_path_is_valid(bytes, request->n_bytes))
        return !ch_reply_fail(reply, EINVAL, "refused the path in an image");
    (void)g_strlcpy(task.pod.uid, request->uid, sizeof(task.pod.uid));
    return !ch_task_start(&task, bytes, -EBADF, do_step, reply);
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
