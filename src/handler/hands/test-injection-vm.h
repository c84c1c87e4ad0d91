/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-injection-vm: what the operations on a VM's cgroups and processes are tried with. For test
 * programs only.
 */

#pragma once

#include <linux/bpf.h>

#include "handler/hands/cgroup-bpf.h"
#include "handler/hands/test-injector.h"
#include "lib/linux/device-rules.h"

static const ChDeviceRule case_rules[] = {{.major_number = 482,
                                           .minor_number = 64,
                                           .access = CH_DEVICE_ALL,
                                           .type = 'b',
                                           .is_allowed = 1}};
static const uint64_t case_memory = 131072; /* no more than any process may have */
static const uint8_t case_cpus[] = {1};

static inline bool
case_has_cgroups(const Injector *injector)
{
    return fake_all_has_cgroups(&injector->all);
}

static inline void
case_devices_denied(Injector *injector, ChHandsRequest *request)
{
    const FakeCgroup *cgroup = &injector->all.devices;

    g_assert_true(fake_cgroup_write(cgroup, "devices.deny", "a"));
    g_assert_true(fake_cgroup_write(cgroup, "devices.allow", "c *:* rwm"));
}

static inline void
case_describe_list(const Injector *injector, GString *out)
{
    g_autofree char *text = fake_cgroup_read(&injector->all.devices, "devices.list");

    g_string_append(out, text);
}

/* What is in the cgroup for housekeeping comes back; it goes. */
static inline void
case_no_house(Injector *injector, ChHandsRequest *request)
{
    const FakeCgroup *cgroup = &injector->all.cpuset;
    g_autofree char *path = g_build_filename(cgroup->dir, "housekeeping", NULL);
    FakeCgroup house = {.dir = path};
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (!g_file_test(path, G_FILE_TEST_IS_DIR))
        return;
    text = fake_cgroup_read(&house, "tasks");
    lines = g_strsplit(text, "\n", -1);
    for (gsize i = 0; lines[i] != NULL && lines[i][0] != '\0'; i++)
        g_assert_true(fake_cgroup_write(cgroup, "tasks", lines[i]));
    g_assert_cmpint(rmdir(path), ==, 0);
}

static inline void
case_describe_house(const Injector *injector, GString *out)
{
    static const char *const files[] = {
        "tasks", "housekeeping/tasks", "housekeeping/cpuset.cpus", "housekeeping/cpuset.mems"};

    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(injector->all.cpuset.dir, files[i], NULL);
        g_autofree char *text = NULL;

        (void)g_file_get_contents(path, &text, NULL, NULL);
        g_string_append_printf(out, "%s:\n%s", files[i], text != NULL ? text : "none\n");
    }
}

/* --- device programs, where there is no list */

static inline bool
case_has_programs(const Injector *injector)
{
    return injector->all.unified.dir != NULL;
}

/* One program, as a container runtime leaves it; the pod is in no other hierarchy. */
static inline void
case_old_program(Injector *injector, ChHandsRequest *request)
{
    static const ChDeviceRules base = {.n_rules = 0};
    const char *step;
    ch_autofd int fd = open(injector->all.unified.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (!injector->is_unified)
        fake_all_show_unified(&injector->all);
    injector->is_unified = true;
    g_assert_cmpint(ch_cgroup_bpf_set_devices(fd, &base, &step), ==, 0);
}

static inline void
case_show_lists(Injector *injector)
{
    if (injector->is_unified)
        fake_all_show_all_cgroups(&injector->all);
    injector->is_unified = false;
}

static inline void
case_describe_program(const Injector *injector, GString *out)
{
    ch_autofd int fd = open(injector->all.unified.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.query.target_fd = (uint32_t)fd;
    attributes.query.attach_type = BPF_CGROUP_DEVICE;
    g_assert_cmpint((int)syscall(SYS_bpf, BPF_PROG_QUERY, &attributes, sizeof(attributes)), ==, 0);
    g_string_append_printf(out,
                           "programs: %u, may open %d\n",
                           attributes.query.prog_cnt,
                           fake_cgroup_may_open(&injector->all.unified, S_IFBLK, 482, 64));
}

/* --- processes */

static inline void
case_set_memory(pid_t pid)
{
    struct rlimit limit;

    g_assert_cmpint(prlimit(pid, RLIMIT_MEMLOCK, NULL, &limit), ==, 0);
    limit.rlim_cur = 65536;
    g_assert_cmpint(prlimit(pid, RLIMIT_MEMLOCK, &limit, NULL), ==, 0);
}

static inline void
case_old_memory(Injector *injector, ChHandsRequest *request)
{
    case_set_memory(injector->all.vm.qemu);
    case_set_memory(injector->all.vm.virtqemud);
}

static inline void
case_describe_memory(const Injector *injector, GString *out)
{
    struct rlimit qemu, virtqemud;

    g_assert_cmpint(prlimit(injector->all.vm.qemu, RLIMIT_MEMLOCK, NULL, &qemu), ==, 0);
    g_assert_cmpint(prlimit(injector->all.vm.virtqemud, RLIMIT_MEMLOCK, NULL, &virtqemud), ==, 0);
    g_string_append_printf(
        out, "memlock: %lu %lu\n", (unsigned long)qemu.rlim_cur, (unsigned long)virtqemud.rlim_cur);
}

static inline bool
case_visit_thread(pid_t tid, void *data)
{
    GString *out = data;
    const struct sched_param other = {0};

    if (out == NULL)
        (void)sched_setscheduler(tid, SCHED_OTHER, &other);
    else
        g_string_append_printf(out, "%d: %d\n", (int)tid, sched_getscheduler(tid));
    return true;
}

static inline void
case_old_schedulers(Injector *injector, ChHandsRequest *request)
{
    (void)ch_process_list(injector->all.vm.qemu, case_visit_thread, NULL);
    (void)case_visit_thread(injector->all.pit, NULL);
}

static inline void
case_describe_schedulers(const Injector *injector, GString *out)
{
    (void)ch_process_list(injector->all.vm.qemu, case_visit_thread, out);
    (void)case_visit_thread(injector->all.pit, out);
}

static inline bool
case_may_be_realtime(const Injector *injector)
{
    const struct sched_param fifo = {.sched_priority = 1}, other = {0};
    const pid_t pit = injector->all.pit;

    return sched_setscheduler(pit, SCHED_FIFO, &fifo) == 0 &&
           sched_setscheduler(pit, SCHED_OTHER, &other) == 0;
}
