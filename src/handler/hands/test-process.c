/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/process.h"

#include <sys/resource.h>

#include "handler/hands/test-fake-vm.h"

typedef struct {
    bool is_qemu;
    uint64_t bytes;
} Wish;

static void
set_memlock(const FakeVm *vm, const void *data, ChHandsReply *reply)
{
    const Wish *wish = data;

    (void)ch_process_set_memlock(vm->launcher, vm->pidfd, wish->is_qemu, wish->bytes, reply);
}

static uint64_t
limit_of(pid_t pid)
{
    struct rlimit limit;

    g_assert_cmpint(prlimit(pid, RLIMIT_MEMLOCK, NULL, &limit), ==, 0);
    g_assert_cmpuint(limit.rlim_cur, ==, limit.rlim_max);
    return limit.rlim_cur;
}

/* spec:05-16.9#179, spec:05-16.9#180 */
static void
test_find(void)
{
    ChProcess found;
    FakeVm vm;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, true, true);
    g_assert_cmpint(ch_process_find_qemu(vm.launcher, &found), ==, 0);
    g_assert_cmpint(found.pid, ==, vm.qemu);
    g_assert_cmpint(found.parent, ==, vm.monitor);
    fake_vm_clear(&vm);

    fake_vm_start(&vm, false, false);
    g_assert_cmpint(ch_process_find_qemu(vm.launcher, &found), ==, -ENOENT);
    g_assert_cmpint(ch_process_find_qemu(999999999, &found), <, 0); /* nobody's number */
    fake_vm_clear(&vm);
}

static bool
count(pid_t tid, void *data)
{
    ++*(int *)data;
    return true;
}

static void
test_list(void)
{
    const gint64 deadline_us = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    FakeVm vm;
    int n = 0;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, true, false);
    for (; n != 4 && g_get_monotonic_time() < deadline_us; g_usleep(2000)) {
        n = 0;
        g_assert_cmpint(ch_process_list(vm.qemu, count, &n), ==, 0);
    }
    g_assert_cmpint(n, ==, 4); /* itself and its three threads */
    fake_vm_clear(&vm);
    g_assert_cmpint(ch_process_list(999999999, count, &n), ==, -ENOENT);
}

/* Below what it is, since a machine may not let us raise it. */
static void
test_memlock(void)
{
    const Wish virtqemud = {false, 65536}, qemu = {true, 131072};
    ChHandsReply reply;
    FakeVm vm;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, true, true);
    g_assert_cmpint(fake_vm_do(set_memlock, &vm, &virtqemud, &reply), ==, 0);
    g_assert_cmpuint(limit_of(vm.virtqemud), ==, 65536);
    g_assert_cmpuint(limit_of(vm.launcher), !=, 65536);
    g_assert_cmpint(fake_vm_do(set_memlock, &vm, &qemu, &reply), ==, 0);
    g_assert_cmpuint(limit_of(vm.qemu), ==, 131072);
    g_assert_cmpuint(limit_of(vm.virtqemud), ==, 65536);
    fake_vm_clear(&vm);
}

/* spec:05-16.9#183: no virtqemud yet is fine, no QEMU is not. */
static void
test_nobody(void)
{
    const Wish virtqemud = {false, 65536}, qemu = {true, 65536};
    g_autofree char *text = NULL;
    ChHandsReply reply;
    FakeVm vm;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, false, false);
    g_assert_cmpint(fake_vm_do(set_memlock, &vm, &virtqemud, &reply), ==, 0);
    g_assert_cmpint(fake_vm_do(set_memlock, &vm, &qemu, &reply), ==, ENOENT);
    text = g_strdup_printf("no QEMU process found under process %d child processes", vm.launcher);
    g_assert_true(g_str_has_prefix(reply.text, text));
    fake_vm_clear(&vm);
}

/* Raised, or refused with the right words where the machine lets nobody raise it. */
static void
test_raise(void)
{
    const uint64_t bytes = UINT64_C(1) << 40;
    const Wish wish = {false, bytes};
    g_autofree char *text = NULL;
    ChHandsReply reply;
    FakeVm vm;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, false, true);
    if (limit_of(vm.virtqemud) >= bytes) {
        g_test_skip("locked memory has no limit here");
    } else if (fake_vm_do(set_memlock, &vm, &wish, &reply) == 0) {
        g_assert_cmpuint(limit_of(vm.virtqemud), ==, bytes);
    } else {
        g_assert_cmpint(reply.errnum, ==, EPERM);
        text = g_strdup_printf("failed to set process %d memlock rlimit to %" G_GUINT64_FORMAT
                               ": error setting prlimit",
                               vm.virtqemud,
                               bytes);
        g_assert_true(g_str_has_prefix(reply.text, text));
        g_test_skip("CAP_SYS_RESOURCE is missing: only the refusal was seen");
    }
    fake_vm_clear(&vm);
}

static void
test_ended(void)
{
    const Wish wish = {true, 65536};
    ChHandsReply reply;
    FakeVm vm;

    if (fake_vm_skip())
        return;
    fake_vm_start(&vm, true, true);
    kill(vm.launcher, SIGKILL);
    while (ch_process_inner_pid(vm.launcher, vm.launcher) > 0 &&
           syscall(SYS_pidfd_send_signal, vm.pidfd, 0, NULL, 0) == 0 &&
           fake_vm_do(set_memlock, &vm, &wish, &reply) == 0)
        g_usleep(2000);
    g_assert_cmpint(fake_vm_do(set_memlock, &vm, &wish, &reply), ==, ESRCH);
    fake_vm_clear(&vm);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (fake_vm_is_under_tsan("/process/under-tsan"))
        return g_test_run();
    g_test_add_func("/process/find", test_find);
    g_test_add_func("/process/list", test_list);
    g_test_add_func("/process/memlock", test_memlock);
    g_test_add_func("/process/nobody", test_nobody);
    g_test_add_func("/process/raise", test_raise);
    g_test_add_func("/process/ended", test_ended);
    return g_test_run();
}
