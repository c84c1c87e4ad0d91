/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cgroup-devices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "handler/hands/cgroup-bpf.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"

#define TEXT "cannot set cgroup resources. err: "

static bool
fail_evaluation(ChHandsReply *reply, int result, const ChDeviceRule *conflict)
{
    char line[CH_DEVICE_LINE_SIZE];

    if (result != -EINVAL)
        return ch_reply_fail(reply, result, TEXT "more than %d rules", CH_DEVICE_RULES_MAX);
    ch_device_line_print(line, conflict);
    return ch_reply_fail(reply,
                         EINVAL,
                         TEXT "requested rule not supported by devices cgroupv1 (cannot punch "
                              "hole in existing wildcard rule [%s])",
                         line);
}

/* --- v1 */

static bool
fail_line(ChHandsReply *reply, ChDeviceLine kind, const char *line, int length)
{
    static const char *const texts[] = {
        [CH_DEVICE_LINE_RULE] = "",
        [CH_DEVICE_LINE_ALL] = "",
        [CH_DEVICE_LINE_MALFORMED] = "malformed devices.list rule",
        [CH_DEVICE_LINE_TYPE] = "unknown device type in",
        [CH_DEVICE_LINE_MAJOR] = "invalid major number: ",
        [CH_DEVICE_LINE_MINOR] = "invalid minor number: ",
    };

    return ch_reply_fail(reply, EINVAL, "%s \"%.*s\"", texts[kind], length, line);
}

/* @out_is_all: no list holds, everything is allowed. */
static bool
read_list(int dir_fd, ChDeviceRules *out_list, bool *out_is_all, ChHandsReply *reply)
{
    static char text[64 * 1024];
    const long length = ch_cgroup_read(dir_fd, "devices.list", text, sizeof(text));

    out_list->n_rules = 0;
    *out_is_all = false;
    if (length < 0)
        return ch_reply_fail(reply, (int)length, "read devices.list");
    for (char *line = text, *end; *line != '\0'; line = end) {
        const size_t n = strcspn(line, "\n");
        ChDeviceRule rule;
        const ChDeviceLine kind = ch_device_line_parse(line, n, &rule);

        end = line + n + (line[n] == '\n');
        if (kind == CH_DEVICE_LINE_ALL) {
            *out_is_all = true;
            continue;
        }
        if (kind != CH_DEVICE_LINE_RULE)
            return fail_line(reply, kind, line, (int)MIN(n, CH_DEVICE_LINE_SIZE));
        if (ch_device_rules_add(out_list, &rule) < 0)
            return fail_evaluation(reply, -ENOSPC, NULL);
    }
    return true;
}

static bool
write_rules(int dir_fd, const char *file, const ChDeviceRules *list, ChHandsReply *reply)
{
    for (size_t i = 0; i < list->n_rules; i++) {
        char line[CH_DEVICE_LINE_SIZE];
        int result;

        ch_device_line_print(line, &list->rules[i]);
        result = ch_cgroup_write(dir_fd, file, line);
        if (result < 0)
            return ch_reply_fail(reply, result, TEXT "write \"%s\" to %s", line, file);
    }
    return true;
}

static bool
is_reached(int dir_fd, const ChDeviceRules *target, ChHandsReply *reply)
{
    static ChDeviceRules list, present, missing, excess;
    ChDeviceRule conflict;
    bool is_all;

    if (!read_list(dir_fd, &list, &is_all, reply))
        return false;
    (void)ch_device_rules_evaluate(&list, &present, &conflict); /* the kernel's only allow */
    ch_device_rules_subtract(target, &present, &missing);
    ch_device_rules_subtract(&present, target, &excess);
    if (is_all || missing.n_rules > 0 || excess.n_rules > 0)
        return ch_reply_fail(
            reply, EIO, TEXT "resulting devices cgroup doesn't precisely match target");
    return true;
}

static bool
set_v1(int dir_fd, const ChDeviceRules *requested, ChHandsReply *reply)
{
    static ChDeviceRules list, defaults, present, target, difference;
    ChDeviceRule conflict;
    bool is_all;
    int result;

    if (!read_list(dir_fd, &present, &is_all, reply))
        return false;
    if (is_all) /* a list would take away what nobody asked to be taken */
        return true;
    list = *requested;
    defaults.n_rules = 0;
    (void)ch_device_rules_add_defaults(&defaults, CH_DEVICE_READ | CH_DEVICE_WRITE);
    result = ch_device_rules_merge(&list, &defaults);
    if (result == 0)
        result = ch_device_rules_merge(&list, &present);
    if (result == 0)
        result = ch_device_rules_evaluate(&list, &target, &conflict);
    if (result < 0)
        return fail_evaluation(reply, result, &conflict);

    ch_device_rules_subtract(&target, &present, &difference);
    if (!write_rules(dir_fd, "devices.allow", &difference, reply))
        return false;
    ch_device_rules_subtract(&present, &target, &difference);
    return write_rules(dir_fd, "devices.deny", &difference, reply) &&
           is_reached(dir_fd, &target, reply);
}

/* --- v2 */

static bool
set_v2(const ChCgroup *cgroup,
       const ChDeviceRules *requested,
       const ChDeviceRules *base,
       ChHandsReply *reply)
{
    static ChDeviceRules list, current, allowed;
    static char controllers[4096];
    ChDeviceRule conflict;
    const char *step = "";
    int result;
    long length;

    list = *requested;
    current = *base;
    result = ch_device_rules_add_defaults(&current, CH_DEVICE_ALL);
    if (result == 0)
        result = ch_device_rules_merge(&list, &current);
    if (result == 0)
        result = ch_device_rules_evaluate(&list, &allowed, &conflict);
    if (result < 0)
        return fail_evaluation(reply, result, &conflict);
    length = ch_cgroup_read(cgroup->dir_fd, "cgroup.controllers", controllers, sizeof(controllers));
    if (length < 0)
        return ch_reply_fail(reply, (int)length, TEXT "read cgroup.controllers");

    if (cgroup->scope_fd >= 0)
        result = ch_cgroup_bpf_set_devices(cgroup->scope_fd, &allowed, &step);
    if (result == 0)
        result = ch_cgroup_bpf_set_devices(cgroup->dir_fd, &allowed, &step);
    if (result < 0 && (ch_reply_is_shortage(result) || !ch_device_rules_only_allow_all(&list)))
        return ch_reply_fail(reply, result, TEXT "%s", step);
    reply->size = (uint64_t)-result;
    return true;
}

bool
ch_cgroup_set_devices(const ChCgroup *cgroup,
                      const ChDeviceRules *requested,
                      const ChDeviceRules *base,
                      ChHandsReply *reply)
{
    if (!cgroup->is_unified)
        return set_v1(cgroup->dir_fd, requested, reply);
    if (cgroup->is_ours) /* no program of a pod's must bind the agent, or the node */
        return ch_reply_fail(reply, EPERM, TEXT "the pod has no cgroup of its own");
    return set_v2(cgroup, requested, base, reply);
}
