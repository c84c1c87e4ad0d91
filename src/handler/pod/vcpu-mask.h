/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vcpu-mask: which of a VM's virtual CPUs are meant ("0-3,^1"), and sets of the node's CPUs.
 *
 * Pure. Thread: any. Spec: 05 §13.3.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_CPU_SET_SIZE 1024 /* bytes: CPUs 0 to 8191 */

/* Bit N % 8 of byte N / 8 is CPU N. */
typedef struct {
    uint8_t bits[CH_CPU_SET_SIZE];
} ChCpuSet;

bool ch_cpu_set_has(const ChCpuSet *set, unsigned cpu);

/**
 * ch_vcpu_mask_parse: comma-separated `a`, `a-b` and `^a`, with blanks around each.
 * @mask: (nullable)
 *
 * A negation always counts, the rest as long as it is the first word on a CPU. Of an empty mask all
 * are meant; of one that only negates, none.
 *
 * Returns: false with CH_ERROR_INVALID, "invalid mask value ..." or "invalid mask range ...", also
 * for CPUs beyond 8191
 */
bool ch_vcpu_mask_parse(const char *mask, ChCpuSet *out_set, GError **error);

/**
 * ch_cpu_list_parse: comma-separated `a` and `a-b`, as libvirt prints a set of CPUs.
 *
 * Returns: false with CH_ERROR_INVALID (no such list; a negation), or CH_ERROR_LIMIT (more than 101
 * CPUs, or one beyond 8191)
 */
bool ch_cpu_list_parse(const char *list, ChCpuSet *out_set, GError **error);
