/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/step.h"

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
#include "handler/hands/process-sched.h"
#include "handler/hands/process.h"
#include "handler/hands/reply.h"
#include "lib/linux/clock.h"

#define REPAIR_TIMEOUT_US INT64_C(60000000) /* it mostly waits */

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
    ChStepOn on;
} steps[CH_HANDS_OP_N] = {
    /* clang-format off */
    [CH_HANDS_OP_CONNECT]      = {open_root,    CH_STEP_ON_PROCESS},
    [CH_HANDS_OP_PIPE_OPEN]    = {open_pipe,    CH_STEP_ON_ROOT},
    [CH_HANDS_OP_PIPE_CLOSE]   = {close_pipe,   CH_STEP_ON_ROOT},
    [CH_HANDS_OP_DEVICES_OWN]  = {own_devices,  CH_STEP_ON_ROOT},
    [CH_HANDS_OP_BLOCK_OWN]    = {own_block,    CH_STEP_ON_ROOT},
    [CH_HANDS_OP_VIRTIOFS_OWN] = {own_virtiofs, CH_STEP_ON_ROOT},
    [CH_HANDS_OP_DISK_PREPARE] = {prepare_disk, CH_STEP_ON_ROOT},
    [CH_HANDS_OP_METRICS_WRITE] = {write_metrics, CH_STEP_ON_ROOT},
    [CH_HANDS_OP_METRICS_CONNECT] = {connect_metrics, CH_STEP_ON_ROOT},
    [CH_HANDS_OP_DHCP_STORE]   = {store_dhcp,   CH_STEP_ON_ROOT},
    [CH_HANDS_OP_DHCP_REMOVE]  = {remove_dhcp,  CH_STEP_ON_ROOT},
    [CH_HANDS_OP_IMAGE_STAT]  = {stat_image,   CH_STEP_ON_ROOT},
    [CH_HANDS_OP_LABEL_READ]   = {read_label,   CH_STEP_ON_ROOT},
    [CH_HANDS_OP_NET_OPEN]     = {open_net,     CH_STEP_ON_PROCESS},
    [CH_HANDS_OP_NET_SEND]     = {send_net,     CH_STEP_ON_NET},
    [CH_HANDS_OP_TAP_MAKE]     = {make_tap,     CH_STEP_ON_PROCESS},
    [CH_HANDS_OP_SYSCTLS_SET]  = {set_sysctls,  CH_STEP_ON_PROCESS},
    [CH_HANDS_OP_PASST_REPAIR] = {repair_passt, CH_STEP_ON_ROOT},
    [CH_HANDS_OP_TARGET_LOOK]  = {look_at_target, CH_STEP_ON_MOUNTS},
    [CH_HANDS_OP_MOUNT]        = {mount_source, CH_STEP_ON_MOUNTS},
    [CH_HANDS_OP_UNMOUNT]      = {unmount_target, CH_STEP_ON_MOUNTS},
    [CH_HANDS_OP_SWEEP] = {sweep, CH_STEP_ON_MOUNTS},
    [CH_HANDS_OP_NODE_LOOK]    = {look_at_node, CH_STEP_ON_FILES},
    [CH_HANDS_OP_NODE_MAKE]    = {make_node,    CH_STEP_ON_FILES},
    [CH_HANDS_OP_NODE_REMOVE]  = {remove_node,  CH_STEP_ON_FILES},
    [CH_HANDS_OP_IMAGE_SUM]    = {sum_image,    CH_STEP_ON_SOURCE},
    [CH_HANDS_OP_DEVICES_LOOK] = {look_for_devices, CH_STEP_ON_ROOT},
    [CH_HANDS_OP_DEVICES_SET]  = {set_devices,  CH_STEP_ON_ROOT},
    [CH_HANDS_OP_MEMLOCK_SET]  = {set_memlock,  CH_STEP_ON_PROCESS},
    [CH_HANDS_OP_HOUSE_KEEP]   = {keep_house,   CH_STEP_ON_PROCESS},
    [CH_HANDS_OP_REALTIME_SET] = {set_realtime, CH_STEP_ON_PROCESS},
    [CH_HANDS_OP_PIT_SET]      = {set_pit,      CH_STEP_ON_PROCESS},
    [CH_HANDS_OP_MULTIPATH_WATCH]   = {watch_multipath,   CH_STEP_ON_FILES},
    [CH_HANDS_OP_MULTIPATH_SET]     = {set_multipath,     CH_STEP_ON_MOUNTS},
    [CH_HANDS_OP_RESERVATION_WATCH] = {watch_reservation, CH_STEP_ON_FILES},
    [CH_HANDS_OP_RESERVATION_OWN]   = {own_reservation,   CH_STEP_ON_FILES},
    /* clang-format on */
};

ChStepOn
ch_step_on(uint32_t op)
{
    return steps[op].on;
}

bool
ch_step_do(const ChStep *step, const void *bytes, int given_fd, int *out_fd, ChHandsReply *reply)
{
    (void)steps[step->request.op].func(step, bytes, given_fd, out_fd, reply);
    return steps[step->request.op].on != CH_STEP_ON_MOUNTS && !ch_process_has_left() &&
           ch_inside_leave_net();
}
