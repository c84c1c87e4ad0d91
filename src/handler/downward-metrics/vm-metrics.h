/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vm-metrics: what a launcher's statistics tell of the VM. Spec 05 §14, 07 §7.1, 03 §5.2.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <stdbool.h>

#include "handler/downward-metrics/metric-list.h"

typedef struct {
    double cpu_seconds; /* of all its virtual CPUs together */
    int64_t n_cpus;     /* virtual CPUs that are not off */
    uint64_t memory_kib;
} ChVmMetrics;

/**
 * ch_vm_metrics_parse:
 * @stats: the answer of GetDomainStats; "": there is no domain
 *
 * Returns: false: CH_ERROR_NOT_FOUND (no domain, or one without name), or the errors of
 * ch_json_parse()
 */
bool ch_vm_metrics_parse(const char *stats, ChVmMetrics *out_metrics, GError **error);

void ch_vm_metrics_add(ChMetricList *list, const ChVmMetrics *metrics);
