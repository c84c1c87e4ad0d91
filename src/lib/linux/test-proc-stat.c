/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/proc-stat.h"

#include <glib.h>

static const struct StatCase {
    const char *path, *text, *name; /* name NULL: refused */
    pid_t parent;
    bool is_kernel_thread;
} stats[] = {
    {"/proc-stat/plain", "123 (virtqemud) S 45 123 123 0 -1 4194560 99", "virtqemud", 45, false},
    {"/proc-stat/kernel", "99 (kvm-pit/45) S 2 0 0 0 -1 2129984 0", "kvm-pit/45", 2, true},
    {"/proc-stat/blank", "7 (CPU 0/KVM) R 45 7 7 0 -1 64 1", "CPU 0/KVM", 45, false},
    /* 05 trap 15: the name ends at the first ')', and the rest begins behind the last one */
    {"/proc-stat/parenthesis", "7 (a) S 1 2) R 45 7 7 0 -1 64 1", "a", 45, false},
    {"/proc-stat/empty-name", "7 () R 45 7 7 0 -1 64 1", "", 45, false},
    {"/proc-stat/no-name", "7 R 45 7 7 0 -1 64 1", NULL, 0, false},
    {"/proc-stat/cut-off", "7 (a) R 45 7", NULL, 0, false},
    {"/proc-stat/no-number", "7 (a) R x 7 7 0 -1 64 1", NULL, 0, false},
    {"/proc-stat/turned", "7 )a( R 45 7 7 0 -1 64 1", NULL, 0, false},
    {"/proc-stat/empty", "", NULL, 0, false},
};

static void
test_stat(gconstpointer data)
{
    const struct StatCase *c = data;
    ChProcStat stat;

    g_assert_cmpint(ch_proc_stat_parse(c->text, &stat), ==, c->name != NULL);
    if (c->name == NULL)
        return;
    g_assert_cmpstr(stat.name, ==, c->name);
    g_assert_cmpint(stat.parent, ==, c->parent);
    g_assert_cmpint(stat.is_kernel_thread, ==, c->is_kernel_thread);
}

static void
test_inner_pid(void)
{
    static const char nested[] = "Name:\tqemu\nNSpid:\t4711\t45\t3\nNSsid:\t9\t8\n";
    static const char flat[] = "Name:\tqemu\nNSpid:\t4711\n";
    size_t n = 0;

    g_assert_cmpint(ch_proc_inner_pid(nested, 0, &n), ==, 4711);
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpint(ch_proc_inner_pid(nested, 1, NULL), ==, 45);
    g_assert_cmpint(ch_proc_inner_pid(nested, 2, NULL), ==, 3);
    g_assert_cmpint(ch_proc_inner_pid(nested, 3, NULL), ==, -1);
    g_assert_cmpint(ch_proc_inner_pid(flat, 1, &n), ==, -1);
    g_assert_cmpuint(n, ==, 1);
    g_assert_cmpint(ch_proc_inner_pid("Name:\tx\n", 0, &n), ==, -1);
    g_assert_cmpint(ch_proc_inner_pid("Name:\tNSpid:\t1\n", 0, &n), ==, -1);
}

/* spec:05-16.9#175 */
static void
test_vcpu(void)
{
    static const struct {
        const char *comm, *hypervisor;
        int vcpu;
    } cases[] = {
        {"CPU 3/KVM\n", "KVM", 3},
        {"CPU 10/KVM\n", "KVM", 10},
        {"CPU 3/MSHV\n", "MSHV", 3},
        {"CPU 3/KVM\n", "MSHV", -1},
        {"vCPU 1/KVM\n", "KVM", -1},
        {"CPU -1/KVM\n", "KVM", -1},
        {"CPU  1/KVM\n", "KVM", -1},
        {"CPU 1/KVM", "KVM", -1},
        {"CPU 1/KVM\n\n", "KVM", -1},
        {"CPU /KVM\n", "KVM", -1},
        {"CPU 99999999999/KVM\n", "KVM", -1},
        {"CP", "KVM", -1},
        {"", "KVM", -1},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(ch_proc_vcpu_of(cases[i].comm, cases[i].hypervisor), ==, cases[i].vcpu);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(stats); i++)
        g_test_add_data_func(stats[i].path, &stats[i], test_stat);
    g_test_add_func("/proc-stat/inner-pid", test_inner_pid);
    g_test_add_func("/proc-stat/vcpu", test_vcpu);
    return g_test_run();
}
