/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/process-sched.h"

#include <string.h>

#include "handler/hands/test-fake-vm.h"

/* @data: a byte of the set of virtual CPUs */
static void
set_realtime(const FakeVm *vm, const void *data, ChHandsReply *reply)
{
    (void)ch_process_set_realtime(vm->launcher, vm->pidfd, data, 1, "KVM", reply);
}

static void
set_pit(const FakeVm *vm, const void *data, ChHandsReply *reply)
{
    (void)ch_process_set_pit(vm->launcher, vm->pidfd, true, reply);
}

typedef struct {
    const char *name;
    pid_t tid;
} Thread;

static bool
has_name(pid_t tid, void *data)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/comm", tid);
    g_autofree char *comm = NULL;
    Thread *wanted = data;

    if (g_file_get_contents(path, &comm, NULL, NULL) && g_str_equal(g_strchomp(comm), wanted->name))
        wanted->tid = tid;
    return wanted->tid == 0;
}

/* Waits until the thread has its name. */
static pid_t
thread_of(const FakeVm *vm, const char *name)
{
    const gint64 deadline_us = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    Thread wanted = {name, 0};

    while (wanted.tid == 0 && g_get_monotonic_time() < deadline_us) {
        (void)ch_process_list(vm->qemu, has_name, &wanted);
        g_usleep(2000);
    }
    g_assert_cmpint(wanted.tid, >, 0);
    return wanted.tid;
}

/* Whether anybody may here; a group of processes may have no real-time share. */
static bool
may_be_realtime(const FakeVm *vm)
{
    const struct sched_param fifo = {.sched_priority = 1}, other = {0};
    const pid_t tid = thread_of(vm, "worker");

    if (sched_setscheduler(tid, SCHED_FIFO, &fifo) == 0)
        return sched_setscheduler(tid, SCHED_OTHER, &other) == 0;
    g_test_skip("no SCHED_FIFO on this machine");
    return false;
}

static void
assert_priority(pid_t tid, int policy, int priority)
{
    struct sched_param parameters;

    g_assert_cmpint(sched_getscheduler(tid), ==, policy);
    g_assert_cmpint(sched_getparam(tid, &parameters), ==, 0);
    g_assert_cmpint(parameters.sched_priority, ==, priority);
}

/* spec:05-16.9#175, #176: of the two virtual CPUs the one that the mask names. */
static void
test_realtime(void)
{
    static const uint8_t second = 1u << 1;
    ChHandsReply reply;
    FakeVm vm;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, true, false);
    (void)thread_of(&vm, "CPU 0/KVM");
    (void)thread_of(&vm, "CPU 1/KVM");
    if (may_be_realtime(&vm)) {
        g_assert_cmpint(fake_vm_do(set_realtime, &vm, &second, &reply), ==, 0);
        assert_priority(thread_of(&vm, "CPU 1/KVM"), SCHED_FIFO, 1);
        assert_priority(thread_of(&vm, "CPU 0/KVM"), SCHED_OTHER, 0);
        assert_priority(thread_of(&vm, "worker"), SCHED_OTHER, 0);
    }
    fake_vm_clear(&vm);
}

static void
test_no_qemu(void)
{
    static const uint8_t all = 0xff;
    ChHandsReply reply;
    FakeVm vm;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, false, false);
    g_assert_cmpint(fake_vm_do(set_realtime, &vm, &all, &reply), ==, ENOENT);
    g_assert_cmpint(fake_vm_do(set_pit, &vm, NULL, &reply), ==, ENOENT);
    fake_vm_clear(&vm);
}

/* spec:05-16.9#185: there is no such thread without KVM. One that only calls itself so is not taken
 * for the kernel's. */
static void
test_no_pit(void)
{
    ChHandsReply reply;
    FakeVm vm;
    pid_t impostor;
    g_autofree char *name = NULL;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, true, false);
    g_assert_cmpint(fake_vm_do(set_pit, &vm, NULL, &reply), ==, 0);
    name = g_strdup_printf("kvm-pit/%d", ch_process_inner_pid(vm.launcher, vm.qemu));
    impostor = fork();
    if (impostor == 0)
        fake_vm_sleep(name);
    g_assert_cmpint(fake_vm_find(getpid(), name), ==, impostor);
    g_assert_cmpint(fake_vm_do(set_pit, &vm, NULL, &reply), ==, 0);
    assert_priority(impostor, SCHED_OTHER, 0);
    kill(impostor, SIGKILL);
    waitpid(impostor, NULL, 0);
    fake_vm_clear(&vm);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/process-sched/realtime", test_realtime);
    g_test_add_func("/process-sched/no-qemu", test_no_qemu);
    g_test_add_func("/process-sched/no-pit", test_no_pit);
    return g_test_run();
}
