/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/vm-metrics.h"

#include <string.h>

#include "handler/hands/test-vhostmd.h"
#include "lib/base/errors.h"

static void
test_stats(void)
{
    ChVmMetrics vm;
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_vm_metrics_parse(
        "{\"Name\":\"default_vm\",\"UUID\":\"u\",\"Cpu\":{\"Time\":7},\"Memory\":{"
        "\"ActualBalloonSet\":true,\"ActualBalloon\":1048576,\"Total\":5},\"Vcpu\":["
        "{\"StateSet\":true,\"State\":1,\"TimeSet\":true,\"Time\":1500000000},"
        "{\"StateSet\":true,\"State\":0,\"TimeSet\":true,\"Time\":250000000}," /* off */
        "{\"StateSet\":false,\"State\":1},"                                    /* not known */
        "{\"StateSet\":true,\"State\":2}]}",
        &vm,
        &error));
    g_assert_cmpfloat_with_epsilon(vm.cpu_seconds, 1.75, 1e-9);
    g_assert_cmpint(vm.n_cpus, ==, 2);
    g_assert_cmpuint(vm.memory_kib, ==, 1048576);
}

static void
test_little(void)
{
    ChVmMetrics vm;

    g_assert_true(ch_vm_metrics_parse("{\"Name\":\"x\"}", &vm, NULL));
    g_assert_cmpint(vm.n_cpus, ==, 0);
    g_assert_cmpuint(vm.memory_kib, ==, 0);
    g_assert_true(
        ch_vm_metrics_parse("{\"Name\":\"x\",\"Vcpu\":{\"a\":1},\"Memory\":[{}]}", &vm, NULL));
    g_assert_true(ch_vm_metrics_parse(
        "{\"Name\":\"x\",\"Vcpu\":[null,3,[]],\"Memory\":{\"ActualBalloon\":-7}}", &vm, NULL));
    g_assert_cmpuint(vm.memory_kib, ==, 0);
}

static const struct {
    const char *path, *stats;
    int code;
} bad_cases[] = {
    {"/vm-metrics/no-domain", "", CH_ERROR_NOT_FOUND},
    {"/vm-metrics/no-name", "{\"Name\":\"\",\"Vcpu\":[]}", CH_ERROR_NOT_FOUND},
    {"/vm-metrics/name-is-missing", "{}", CH_ERROR_NOT_FOUND},
    {"/vm-metrics/name-is-no-text", "{\"Name\":5}", CH_ERROR_NOT_FOUND},
    {"/vm-metrics/half", "{\"Name\":\"x\"", CH_ERROR_INVALID},
    {"/vm-metrics/garbage", "\x01", CH_ERROR_INVALID},
};

static void
test_bad(gconstpointer data)
{
    const gsize i = GPOINTER_TO_SIZE(data);
    g_autoptr(GError) error = NULL;
    ChVmMetrics vm;

    g_assert_false(ch_vm_metrics_parse(bad_cases[i].stats, &vm, &error));
    g_assert_error(error, CH_ERROR, bad_cases[i].code);
}

static void
test_list(void)
{
    static const struct {
        const char *name, *type, *unit, *value;
    } expect[] = {
        {"TotalCPUTime", "real64", "s", "1.750000"},
        {"ResourceProcessorLimit", "int64", NULL, "2"},
        {"PhysicalMemoryAllocatedToVirtualSystem", "uint64", "KiB", "1024"},
        {"ResourceMemoryLimit", "uint64", "KiB", "1024"},
    };
    const ChVmMetrics vm = {1.75, 2, 1024};
    g_autoptr(ChMetricList) list = ch_metric_list_new();
    g_autofree char *text = NULL;
    g_autoptr(GPtrArray) metrics = NULL;

    ch_vm_metrics_add(list, &vm);
    text = ch_metric_list_print(list);
    metrics = vhostmd_read_body(text, strlen(text));
    g_assert_cmpuint(metrics->len, ==, G_N_ELEMENTS(expect));
    for (guint i = 0; i < metrics->len; i++) {
        const VhostmdMetric *metric = metrics->pdata[i];

        g_assert_cmpstr(metric->name, ==, expect[i].name);
        g_assert_cmpstr(metric->type, ==, expect[i].type);
        g_assert_cmpstr(metric->context, ==, "vm");
        g_assert_cmpstr(metric->unit, ==, expect[i].unit);
        g_assert_cmpstr(metric->value, ==, expect[i].value);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vm-metrics/stats", test_stats);
    g_test_add_func("/vm-metrics/little", test_little);
    for (gsize i = 0; i < G_N_ELEMENTS(bad_cases); i++)
        g_test_add_data_func(bad_cases[i].path, GSIZE_TO_POINTER(i), test_bad);
    g_test_add_func("/vm-metrics/list", test_list);
    return g_test_run();
}
