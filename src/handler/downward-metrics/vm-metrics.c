/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/vm-metrics.h"

#include "lib/base/errors.h"
#include "lib/json/json.h"

#define NANOSECONDS 1e9
#define OFFLINE     0 /* of a virtual CPU */

static const ChJsonPart parts[] = {
    {"Name", NULL},
    {"Vcpu",
     (const ChJsonPart[]){{"StateSet", NULL}, {"State", NULL}, {"Time", NULL}, {NULL, NULL}}},
    {"Memory", (const ChJsonPart[]){{"ActualBalloon", NULL}, {NULL, NULL}}},
    {NULL, NULL},
};

static void
count_cpu(const ChJson *cpu, ChVmMetrics *metrics)
{
    int64_t state = OFFLINE;

    metrics->cpu_seconds += ch_json_as_double(ch_json_at(cpu, "Time")) / NANOSECONDS;
    if (ch_json_bool_at(cpu, false, "StateSet") && ch_json_int_at(cpu, &state, "State") &&
        state != OFFLINE)
        metrics->n_cpus++;
}

bool
ch_vm_metrics_parse(const char *stats, ChVmMetrics *out_metrics, GError **error)
{
    g_autoptr(ChJson) json = NULL;
    ChVmMetrics metrics = {0};
    const ChJson *cpus;
    const char *name;
    int64_t kib = 0;

    if (stats[0] == '\0')
        return ch_fail(error, CH_ERROR_NOT_FOUND, "there is no domain");
    json = ch_json_parse_parts(stats, -1, parts, error);
    if (json == NULL)
        return false;
    name = ch_json_string_at(json, "Name");
    if (name == NULL || name[0] == '\0')
        return ch_fail(error, CH_ERROR_NOT_FOUND, "the domain has no name");
    cpus = ch_json_at(json, "Vcpu");
    for (gsize i = 0; i < ch_json_length(cpus); i++)
        count_cpu(ch_json_item(cpus, i), &metrics);
    if (ch_json_int_at(json, &kib, "Memory", "ActualBalloon") && kib > 0)
        metrics.memory_kib = (uint64_t)kib;
    *out_metrics = metrics;
    return true;
}

void
ch_vm_metrics_add(ChMetricList *list, const ChVmMetrics *metrics)
{
    ch_metric_list_add_real(list, CH_METRIC_VM, "TotalCPUTime", "s", metrics->cpu_seconds);
    ch_metric_list_add_int(list, CH_METRIC_VM, "ResourceProcessorLimit", NULL, metrics->n_cpus);
    ch_metric_list_add_uint(
        list, CH_METRIC_VM, "PhysicalMemoryAllocatedToVirtualSystem", "KiB", metrics->memory_kib);
    ch_metric_list_add_uint(list, CH_METRIC_VM, "ResourceMemoryLimit", "KiB", metrics->memory_kib);
}
