/* SPDX-License-Identifier: Apache-2.0 */

/*
 * capabilities: libvirt's capabilities.xml of this node: the NUMA topology. Spec 01 §23, 08 §2
 * step 23.
 *
 * Parsed once at start, then immutable. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t count;
    char *unit; /* owned, "" when absent */
    uint32_t size;
} ChNumaPages;

typedef struct {
    uint32_t id;
    uint64_t value;
} ChNumaDistance;

typedef struct {
    uint32_t id;
    GArray *siblings; /* uint32_t */
} ChNumaCpu;

typedef struct {
    uint32_t id;
    bool has_memory;
    uint64_t memory_amount;
    char *memory_unit;
    GArray *pages;     /* ChNumaPages */
    GArray *distances; /* ChNumaDistance */
    GArray *cpus;      /* ChNumaCpu */
} ChNumaCell;

typedef struct {
    GArray *cells; /* ChNumaCell */
} ChCapabilities;

/**
 * ch_capabilities_parse:
 * @xml: the document
 *
 * Limits: 4 MiB, 4096 cells. A document without topology gives no cells. Numbers that do not parse
 * count as 0, as an absent member does; parts of a sibling list that are no number (ranges too) are
 * dropped.
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID or CH_ERROR_LIMIT
 */
ChCapabilities *ch_capabilities_parse(const char *xml, gsize length, GError **error);
void ch_capabilities_free(ChCapabilities *capabilities);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChCapabilities, ch_capabilities_free)
