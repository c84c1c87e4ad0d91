/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fuzzes what is read of the kernel about a pod's cgroup. The first byte chooses: the text of
 * /proc/PID/cgroup, lines of mountinfo, or lines of devices.list with what is made of them.
 */

#include <string.h>

#include "lib/linux/cgroup-path.h"
#include "lib/linux/device-bpf.h"
#include "lib/linux/device-rules.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void
check(bool is_true)
{
    if (!is_true)
        __builtin_trap();
}

static void
try_cgroup(const char *text, size_t length)
{
    static const char *const controllers[] = {NULL, "devices", "name=systemd", ""};
    static char path[CH_CGROUP_PATH_SIZE];

    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
        const char *below;

        if (ch_cgroup_find(text, length, controllers[i], path) != 0)
            continue;
        check(path[0] == '/' && strlen(path) < sizeof(path));
        (void)ch_cgroup_is_in_scope(path);
        ch_cgroup_strip_housekeeping(path);
        check(path[0] == '/');
        below = ch_cgroup_below("/", path);
        check(below == NULL || below[0] != '/');
    }
}

static void
try_mount(const char *line, size_t length)
{
    static ChCgroupMount mount;

    if (ch_cgroup_mount_parse(line, length, NULL, &mount) ||
        ch_cgroup_mount_parse(line, length, "devices", &mount))
        check(mount.root[0] == '/' && mount.point[0] == '/');
}

static void
try_devices(const char *text, size_t length)
{
    static struct bpf_insn program[CH_DEVICE_BPF_MAX];
    static ChDeviceRules list, allowed, missing;
    ChDeviceRule conflict;

    list.n_rules = 0;
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        const size_t n = end != NULL ? (size_t)(end - text) : length;
        ChDeviceRule rule;

        if (ch_device_line_parse(text, n, &rule) == CH_DEVICE_LINE_RULE) {
            char line[CH_DEVICE_LINE_SIZE];
            ChDeviceRule again;

            check(ch_device_rule_is_valid(&rule));
            ch_device_line_print(line, &rule);
            check(ch_device_line_parse(line, strlen(line), &again) == CH_DEVICE_LINE_RULE);
            check(memcmp(&rule, &again, sizeof(rule)) == 0);
            rule.is_allowed = n % 3 != 0; /* denials too */
            (void)ch_device_rules_add(&list, &rule);
        }
        text += n + (end != NULL);
        length -= n + (end != NULL);
    }
    if (ch_device_rules_evaluate(&list, &allowed, &conflict) != 0)
        return;
    check(ch_device_bpf_build(&allowed, program) <= CH_DEVICE_BPF_MAX);
    ch_device_rules_subtract(&allowed, &allowed, &missing);
    check(missing.n_rules == 0);
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static void (*const tries[])(const char *text,
                                 size_t length) = {try_cgroup, try_mount, try_devices};

    if (size > 0)
        tries[data[0] % 3]((const char *)data + 1, size - 1);
    return 0;
}
