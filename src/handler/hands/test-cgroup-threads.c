/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cgroup-threads.h"

#include "handler/hands/test-fake-cgroup.h"
#include "handler/hands/test-fake-vm.h"
#include "lib/base/fd.h"
#include "lib/linux/cgroup-path.h"

#define SKIP "needs root and the v1 hierarchy of cpuset"

typedef struct {
    FakeCgroup fake, house;
    FakeVm vm;
} Fixture;

/* The container of a VM, as a container runtime leaves it. */
static void
set_up(Fixture *f, gconstpointer data)
{
    g_autofree char *cpus = NULL;
    g_autofree char *mems = NULL;

    fake_cgroup_init(&f->fake, "/sys/fs/cgroup/cpuset", "cpuset.cpus");
    if (f->fake.dir == NULL)
        return;
    g_assert_true(g_file_get_contents("/sys/fs/cgroup/cpuset/cpuset.cpus", &cpus, NULL, NULL));
    g_assert_true(g_file_get_contents("/sys/fs/cgroup/cpuset/cpuset.mems", &mems, NULL, NULL));
    g_assert_true(fake_cgroup_write(&f->fake, "cpuset.cpus", cpus));
    g_assert_true(fake_cgroup_write(&f->fake, "cpuset.mems", mems));
    fake_vm_start(&f->vm, true, true);
    fake_cgroup_take(&f->fake, f->vm.monitor);
    fake_cgroup_take(&f->fake, f->vm.launcher);
    fake_cgroup_take(&f->fake, f->vm.qemu);
    fake_cgroup_take(&f->fake, f->vm.virtqemud);
    f->house.dir = g_build_filename(f->fake.dir, CH_CGROUP_HOUSEKEEPING, NULL);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (f->fake.dir == NULL)
        return;
    fake_vm_clear(&f->vm);
    fake_cgroup_clear(&f->house);
    fake_cgroup_clear(&f->fake);
}

/* @cpu: -1: none is told */
static int
keep_house(const Fixture *f, int cpu)
{
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    uint8_t cpus[4] = {0};
    ChHandsReply reply = {0};

    if (cpu >= 0)
        cpus[cpu / 8] = (uint8_t)(1u << cpu % 8);
    cgroup.dir_fd = open(f->fake.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_true(ch_cgroup_keep_house(&cgroup, cpus, sizeof(cpus), "KVM", &reply) ==
                  (reply.errnum == 0));
    return reply.errnum;
}

static int
compare(gconstpointer a, gconstpointer b)
{
    return g_strcmp0(*(char *const *)a, *(char *const *)b);
}

/* (transfer full): names of the threads, sorted, joined by ',' */
static char *
names_in(const FakeCgroup *cgroup)
{
    g_autofree char *text = fake_cgroup_read(cgroup, "tasks");
    g_auto(GStrv) tids = g_strsplit(text, "\n", -1);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    for (char **tid = tids; *tid != NULL && **tid != '\0'; tid++) {
        g_autofree char *path = g_strdup_printf("/proc/%s/comm", *tid);
        char *comm = NULL;

        if (g_file_get_contents(path, &comm, NULL, NULL))
            g_ptr_array_add(names, g_strchomp(comm));
    }
    g_ptr_array_sort(names, compare);
    g_ptr_array_add(names, NULL);
    return g_strjoinv(",", (char **)names->pdata);
}

/* Waits until QEMU's threads have their names. */
static void
wait_for_names(const Fixture *f)
{
    const gint64 deadline_us = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;

    for (;; g_usleep(2000)) {
        g_autofree char *names = names_in(&f->fake);

        if (g_str_equal(
                names,
                "CPU 0/KVM,CPU 1/KVM,monitor,qemu-system-x86,virt-launcher,virtqemud,worker"))
            return;
        g_assert_cmpint(g_get_monotonic_time(), <, deadline_us);
    }
}

/* field:FR-Q12: the virtual CPUs stay, everything else moves, launcher and monitor included. */
static void
test_moves(Fixture *f, gconstpointer data)
{
    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    wait_for_names(f);
    for (int i = 0; i < 2; i++) { /* idempotent */
        g_autofree char *stay = NULL;
        g_autofree char *moved = NULL;
        g_autofree char *cpus = NULL;

        g_assert_cmpint(keep_house(f, 0), ==, 0);
        stay = names_in(&f->fake);
        moved = names_in(&f->house);
        cpus = fake_cgroup_read(&f->house, "cpuset.cpus");
        g_assert_cmpstr(stay, ==, "CPU 0/KVM,CPU 1/KVM");
        g_assert_cmpstr(moved, ==, "monitor,qemu-system-x86,virt-launcher,virtqemud,worker");
        g_assert_cmpstr(cpus, ==, "0\n");
    }
}

/* spec:05-16.9#186: the child is made, and nothing moves. */
static void
test_no_domain(Fixture *f, gconstpointer data)
{
    g_autofree char *moved = NULL;
    g_autofree char *cpus = NULL;
    g_autofree char *parents = NULL;

    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    g_assert_cmpint(keep_house(f, -1), ==, 0);
    moved = names_in(&f->house);
    cpus = fake_cgroup_read(&f->house, "cpuset.cpus");
    parents = fake_cgroup_read(&f->fake, "cpuset.cpus");
    g_assert_cmpstr(moved, ==, "");
    g_assert_cmpstr(cpus, ==, parents);
}

/* An earlier attempt got no further than to make the directory. */
static void
test_resumes(Fixture *f, gconstpointer data)
{
    g_autofree char *stay = NULL;

    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    wait_for_names(f);
    g_assert_cmpint(mkdir(f->house.dir, 0755), ==, 0);
    g_assert_cmpint(keep_house(f, 0), ==, 0);
    stay = names_in(&f->fake);
    g_assert_cmpstr(stay, ==, "CPU 0/KVM,CPU 1/KVM");
}

static void
test_no_such_cpu(Fixture *f, gconstpointer data)
{
    if (fake_cgroup_skip(&f->fake, SKIP))
        return;
    g_assert_cmpint(keep_house(f, 31), !=, 0);
}

#define ADD(path, func) g_test_add("/cgroup-threads/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (fake_vm_is_under_tsan("/cgroup-threads/under-tsan"))
        return g_test_run();
    ADD("moves", test_moves);
    ADD("no-domain", test_no_domain);
    ADD("resumes", test_resumes);
    ADD("no-such-cpu", test_no_such_cpu);
    return g_test_run();
}
