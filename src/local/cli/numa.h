/* SPDX-License-Identifier: Apache-2.0 */

/*
 * numa: the machine's NUMA cells, as /sys tells them, and as libvirt's capabilities.xml.
 *
 * Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_NUMA_MAX_CPUS 4096

typedef struct {
    uint32_t id;
    char *siblings; /* owned: as the kernel lists them, "0,4" */
} ChNumaCpu;

typedef struct {
    uint32_t id;
    int64_t memory_kib;
    GArray *cpus; /* owned (element-type ChNumaCpu) */
} ChNumaCell;

/* Pure. (transfer full) (element-type uint32_t): of "0-3,8"; NULL: no such list, or one beyond
 * CH_NUMA_MAX_CPUS */
GArray *ch_numa_parse_list(const char *text);

/**
 * ch_numa_load:
 * @sys_dir: "/sys/devices/system"
 * @memory_kib: of the machine, for a kernel that knows no cells
 *
 * Returns: (transfer full) (element-type ChNumaCell): at least one. Blocks: reads small files
 */
GArray *ch_numa_load(const char *sys_dir, int64_t memory_kib);

/* Pure. (transfer full): capabilities.xml with what is known here: architecture and cells.
 * @architecture: the kernel's name, "x86_64" */
char *ch_numa_capabilities_xml(const GArray *cells, const char *architecture);
