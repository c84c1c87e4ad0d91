/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cgroup-step.h"

#include <errno.h>
#include <string.h>

#include "handler/hands/cgroup-devices.h"
#include "handler/hands/cgroup-threads.h"
#include "handler/hands/cgroup.h"
#include "handler/hands/inside-devices.h"
#include "handler/hands/inside-node.h"
#include "handler/hands/launcher.h"
#include "handler/hands/process-sched.h"
#include "handler/hands/process.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"

static bool
take_rules(const ChStep *step, const void *bytes, ChDeviceRules *out_rules, ChHandsReply *reply)
{
    const gsize n_bytes = step->request.n_bytes;

    out_rules->n_rules = n_bytes / sizeof(ChDeviceRule);
    if (n_bytes % sizeof(ChDeviceRule) != 0 || out_rules->n_rules > CH_DEVICE_RULES_MAX)
        return ch_reply_fail(reply, EINVAL, "refused device rules");
    memcpy(out_rules->rules, bytes, n_bytes);
    for (gsize i = 0; i < out_rules->n_rules; i++)
        if (!ch_device_rule_is_valid(&out_rules->rules[i]))
            return ch_reply_fail(reply, EINVAL, "refused device rule %zu", i);
    return true;
}

bool
ch_cgroup_step_set_devices(const ChStep *step, const void *bytes, int root_fd, ChHandsReply *reply)
{
    static ChDeviceRules requested, base;
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    ch_autofd int pidfd = -EBADF;

    return take_rules(step, bytes, &requested, reply) &&
           ch_inside_list_devices(root_fd, step->request.flags, &base, reply) &&
           ch_inside_has_volumes(step->pod_uid, &requested, &base, reply) &&
           ch_launcher_hold(step->pid, root_fd, &pidfd, reply) &&
           ch_cgroup_open(step->pid, pidfd, "devices", &cgroup, reply) &&
           ch_cgroup_set_devices(&cgroup, &requested, &base, reply);
}

#define CPU_BYTES 1024 /* of a set of CPUs, at most */

static const char *
hypervisor_of(const ChStep *step)
{
    return step->request.flags & CH_HANDS_MSHV ? "MSHV" : "KVM";
}

bool
ch_cgroup_step_set_memlock(const ChStep *step, const void *bytes, int pidfd, ChHandsReply *reply)
{
    uint64_t size;

    if (step->request.n_bytes != sizeof(size))
        return ch_reply_fail(reply, EINVAL, "refused a size of memory");
    memcpy(&size, bytes, sizeof(size));
    return ch_process_set_memlock(
        step->pid, pidfd, step->request.flags & CH_HANDS_QEMU, size, reply);
}

bool
ch_cgroup_step_keep_house(const ChStep *step, const void *bytes, int pidfd, ChHandsReply *reply)
{
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;

    if (step->request.n_bytes > CPU_BYTES)
        return ch_reply_fail(reply, EINVAL, "refused a set of CPUs");
    if (!ch_cgroup_open(step->pid, pidfd, "cpuset", &cgroup, reply))
        return false;
    if (cgroup.is_ours) /* the agent, or the node, is not to be moved */
        return ch_reply_fail(reply, EPERM, "the pod has no cgroup of its own");
    return ch_cgroup_keep_house(&cgroup, bytes, step->request.n_bytes, hypervisor_of(step), reply);
}

bool
ch_cgroup_step_set_realtime(const ChStep *step, const void *bytes, int pidfd, ChHandsReply *reply)
{
    if (step->request.n_bytes > CPU_BYTES)
        return ch_reply_fail(reply, EINVAL, "refused a set of CPUs");
    return ch_process_set_realtime(
        step->pid, pidfd, bytes, step->request.n_bytes, hypervisor_of(step), reply);
}
