/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/host-metrics.h"

#include <string.h>
#include <unistd.h>

#include "handler/hands/test-vhostmd.h"
#include "lib/linux/test-tree.h"

/* Files of a node with two packages of two processors each. */
typedef struct {
    char *dir, *proc, *sys;
    GPtrArray *metrics; /* of the last read() */
} Fixture;

#define STAT                                                                                       \
    "cpu  1393280 32966 572056 13343292 6130 0 17875 0 23933 0\n"                                  \
    "cpu0 370000 8000 140000 3300000 1500 0 8900 0 0 0\n"                                          \
    "intr 199292 46 102 0 0 0\nctxt 38014093\nbtime 1418183276\n"
#define MEMINFO                                                                                    \
    "MemTotal:       32602724 kB\nMemFree:        11803604 kB\nMemAvailable:   20567900 kB\n"      \
    "Buffers:          400512 kB\nCached:          8609432 kB\nSwapCached:         1024 kB\n"      \
    "Active(anon):    7023004 kB\nSwapTotal:      16777212 kB\nSwapFree:       16776188 kB\n"      \
    "HugePages_Total:       0\nDirectMap1G:     2097152 kB\n"
#define VMSTAT "nr_free_pages 2950901\npswpin 4313504\npswpout 6813194\npgfault 1\n"

static void
add_cpu(const Fixture *f, int cpu, const char *package)
{
    g_autofree char *dir = g_strdup_printf("devices/system/cpu/cpu%d/topology", cpu);
    g_autofree char *file = g_strconcat(dir, "/physical_package_id", NULL);

    test_tree_mkdir(f->sys, dir);
    if (package != NULL)
        test_tree_write(f->sys, file, package);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = test_tree_new();
    f->proc = g_build_filename(f->dir, "proc", NULL);
    f->sys = g_build_filename(f->dir, "sys", NULL);
    test_tree_mkdir(f->proc, ".");
    test_tree_write(f->proc, "stat", STAT);
    test_tree_write(f->proc, "meminfo", MEMINFO);
    test_tree_write(f->proc, "vmstat", VMSTAT);
    for (int i = 0; i < 4; i++)
        add_cpu(f, i, i < 2 ? "0\n" : "1\n");
    test_tree_mkdir(f->sys, "devices/system/cpu/cpufreq"); /* no processor */
    test_tree_mkdir(f->sys, "devices/system/cpu/cpuidle");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_clear_pointer(&f->metrics, g_ptr_array_unref);
    test_tree_remove(f->dir);
    g_free(f->dir);
    g_free(f->proc);
    g_free(f->sys);
}

static guint
collect(Fixture *f)
{
    g_autoptr(ChMetricList) list = ch_metric_list_new();
    g_autofree char *text = NULL;

    ch_host_metrics_add(list, f->proc, f->sys, G_GINT64_CONSTANT(1764549600999999));
    text = ch_metric_list_print(list);
    g_clear_pointer(&f->metrics, g_ptr_array_unref);
    f->metrics = vhostmd_read_body(text, strlen(text));
    return f->metrics->len;
}

static bool
has(const Fixture *f, const char *name)
{
    for (guint i = 0; i < f->metrics->len; i++)
        if (g_str_equal(((const VhostmdMetric *)f->metrics->pdata[i])->name, name))
            return true;
    return false;
}

static void
write_proc(const Fixture *f, const char *name, const char *text)
{
    test_tree_write(f->proc, name, text);
}

static void
remove_file(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_cmpint(unlink(path), ==, 0);
}

/* spec:05-16.10#190 */
static void
test_all(Fixture *f, gconstpointer data)
{
    const uint64_t kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
    g_autofree char *in = g_strdup_printf("%" G_GUINT64_FORMAT, 4313504 * kib);
    g_autofree char *out = g_strdup_printf("%" G_GUINT64_FORMAT, 6813194 * kib);
    const struct {
        const char *name, *type, *unit, *value;
    } expect[] = {
        {"NumberOfPhysicalCPUs", "int64", NULL, "2"},
        {"TotalCPUTime", "real64", "s", "19983.020000"},
        {"FreePhysicalMemory", "uint64", "KiB", "11803604"},
        {"FreeVirtualMemory", "uint64", "KiB", "28579792"},
        {"MemoryAllocatedToVirtualServers", "uint64", "KiB", "11789176"},
        {"UsedVirtualMemory", "uint64", "KiB", "28565364"},
        {"PagedInMemory", "uint64", "KiB", in},
        {"PagedOutMemory", "uint64", "KiB", out},
        {"Time", "int64", "s", "1764549600"},
    };

    g_assert_cmpuint(collect(f), ==, G_N_ELEMENTS(expect));
    for (guint i = 0; i < f->metrics->len; i++) {
        const VhostmdMetric *metric = f->metrics->pdata[i];

        g_assert_cmpstr(metric->name, ==, expect[i].name);
        g_assert_cmpstr(metric->type, ==, expect[i].type);
        g_assert_cmpstr(metric->context, ==, "host");
        g_assert_cmpstr(metric->unit, ==, expect[i].unit);
        g_assert_cmpstr(metric->value, ==, expect[i].value);
    }
}

/* spec:05-16.10#190 */
static void
test_without_meminfo(Fixture *f, gconstpointer data)
{
    remove_file(f->proc, "meminfo");
    g_assert_cmpuint(collect(f), ==, 5);
    g_assert_false(has(f, "FreePhysicalMemory"));
}

/* spec:05-16.10#190 */
static void
test_without_stat(Fixture *f, gconstpointer data)
{
    remove_file(f->proc, "stat");
    g_assert_cmpuint(collect(f), ==, 8);
    g_assert_false(has(f, "TotalCPUTime"));
}

/* spec:05-16.10#190 */
static void
test_without_vmstat(Fixture *f, gconstpointer data)
{
    remove_file(f->proc, "vmstat");
    g_assert_cmpuint(collect(f), ==, 7);
    g_assert_false(has(f, "PagedInMemory") || has(f, "PagedOutMemory"));
}

/* spec:05-16.10#190 */
static void
test_without_sys(Fixture *f, gconstpointer data)
{
    test_tree_remove(f->sys);
    g_assert_cmpuint(collect(f), ==, 8);
    g_assert_false(has(f, "NumberOfPhysicalCPUs"));
}

static void
test_cpu_without_package(Fixture *f, gconstpointer data)
{
    add_cpu(f, 17, NULL);
    g_assert_cmpuint(collect(f), ==, 8);
    add_cpu(f, 17, "none\n");
    g_assert_cmpuint(collect(f), ==, 8);
    add_cpu(f, 17, "-1\n"); /* what some virtual machines have */
    g_assert_cmpuint(collect(f), ==, 9);
    g_assert_cmpstr(((const VhostmdMetric *)f->metrics->pdata[0])->value, ==, "3");
}

/* What is not as it must be takes its own metrics away, and no others. */
static void
test_garbage(Fixture *f, gconstpointer data)
{
    static const char *const stats[] = {
        "", "cpu", "cpu \n", "cpu  1 2\n", "cpu  1 x 3\n", "cpu0 1 2 3\n"};
    static const char *const tables[] = {
        "MemFree\n", "MemFree: many kB\n", "\n", ": 5\n", "x\npswpin 3\n"};

    for (gsize i = 0; i < G_N_ELEMENTS(stats); i++) {
        write_proc(f, "stat", stats[i]);
        g_assert_cmpuint(collect(f), ==, 8);
    }
    write_proc(f, "stat", "other 5\n" STAT);
    g_assert_cmpuint(collect(f), ==, 9);
    for (gsize i = 0; i < G_N_ELEMENTS(tables); i++) {
        write_proc(f, "meminfo", tables[i]);
        g_assert_cmpuint(collect(f), ==, 5);
        write_proc(f, "vmstat", tables[i]);
        g_assert_cmpuint(collect(f), ==, 3);
        write_proc(f, "meminfo", MEMINFO);
        write_proc(f, "vmstat", VMSTAT);
    }
}

/* Lines that are missing count 0, and no difference falls below that. */
static void
test_few_lines(Fixture *f, gconstpointer data)
{
    write_proc(f, "meminfo", "MemTotal: 5 kB\nMemFree: 7 kB");
    write_proc(f, "vmstat", "");
    g_assert_cmpuint(collect(f), ==, 9);
    g_assert_cmpstr(((const VhostmdMetric *)f->metrics->pdata[2])->value, ==, "7");
    g_assert_cmpstr(((const VhostmdMetric *)f->metrics->pdata[4])->value, ==, "0");
    g_assert_cmpstr(((const VhostmdMetric *)f->metrics->pdata[5])->value, ==, "0");
    g_assert_cmpstr(((const VhostmdMetric *)f->metrics->pdata[6])->value, ==, "0");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, func) g_test_add(path, Fixture, NULL, set_up, func, tear_down)
    ADD("/host-metrics/all", test_all);
    ADD("/host-metrics/without-meminfo", test_without_meminfo);
    ADD("/host-metrics/without-stat", test_without_stat);
    ADD("/host-metrics/without-vmstat", test_without_vmstat);
    ADD("/host-metrics/without-sys", test_without_sys);
    ADD("/host-metrics/cpu-without-package", test_cpu_without_package);
    ADD("/host-metrics/garbage", test_garbage);
    ADD("/host-metrics/few-lines", test_few_lines);
#undef ADD
    return g_test_run();
}
