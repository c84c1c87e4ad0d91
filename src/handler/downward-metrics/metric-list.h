/* SPDX-License-Identifier: Apache-2.0 */

/*
 * metric-list: metrics as the XML that vhostmd made common. Spec 05 §14, 07 §7.1.
 *
 * Pure. Thread: the owner's.
 */

#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct ChMetricList ChMetricList;

typedef enum {
    CH_METRIC_HOST, /* about the node */
    CH_METRIC_VM,
} ChMetricContext;

ChMetricList *ch_metric_list_new(void);
void ch_metric_list_free(ChMetricList *list); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChMetricList, ch_metric_list_free)

/* Each adds one at the end. @name: as guests know it; @unit: (nullable): "s", "KiB". The type is
 * that of the value: "string", "int64", "uint64", "real64" (with six decimals). */
void ch_metric_list_add_string(ChMetricList *list,
                               ChMetricContext context,
                               const char *name,
                               const char *unit,
                               const char *text /* UTF-8 */);
void ch_metric_list_add_int(
    ChMetricList *list, ChMetricContext context, const char *name, const char *unit, int64_t value);
void ch_metric_list_add_uint(ChMetricList *list,
                             ChMetricContext context,
                             const char *name,
                             const char *unit,
                             uint64_t value);
void ch_metric_list_add_real(
    ChMetricList *list, ChMetricContext context, const char *name, const char *unit, double value);

/* Adds all of @other at the end. */
void ch_metric_list_append(ChMetricList *list, const ChMetricList *other);

/* (transfer full): the document, indented by two, without a newline at its end */
char *ch_metric_list_print(const ChMetricList *list);
