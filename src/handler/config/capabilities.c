/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/capabilities.h"

#include "handler/config/xml-walk.h"
#include "lib/base/errors.h"

#include <string.h>

#define MAX_CELLS 4096
#define MAX_ITEMS 65536 /* of a list within a cell */

/* A `cell` counts only where libvirt puts it. */
static const char *const cell_path[] = {"capabilities", "host", "topology", "cells", "cell"};

static void
cell_clear(gpointer data)
{
    ChNumaCell *cell = data;

    for (guint i = 0; i < cell->pages->len; i++)
        g_free(g_array_index(cell->pages, ChNumaPages, i).unit);
    for (guint i = 0; i < cell->cpus->len; i++)
        g_array_unref(g_array_index(cell->cpus, ChNumaCpu, i).siblings);
    g_array_unref(cell->pages);
    g_array_unref(cell->distances);
    g_array_unref(cell->cpus);
    g_free(cell->memory_unit);
}

static uint64_t
number(const char *text, uint64_t max)
{
    guint64 value = 0;

    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 0, max, &value, NULL))
        return 0;
    return value;
}

static uint64_t
number_attribute(const ChXmlElement *element, const char *name, uint64_t max)
{
    return number(ch_xml_attribute(element, name), max);
}

static GArray *
parse_siblings(const char *text)
{
    GArray *siblings = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_auto(GStrv) parts = g_strsplit(text != NULL ? text : "", ",", 4096);

    for (char **part = parts; *part != NULL; part++) {
        guint64 value;

        if (g_ascii_string_to_unsigned(*part, 10, 0, G_MAXUINT32, &value, NULL)) {
            uint32_t sibling = (uint32_t)value;

            g_array_append_val(siblings, sibling);
        }
    }
    return siblings;
}

static bool
start_in_cell(ChNumaCell *cell, const ChXmlElement *element, GError **error)
{
    const char *name = element->names[element->depth - 1];

    if (cell->pages->len + cell->distances->len + cell->cpus->len > MAX_ITEMS)
        return ch_fail(error, CH_ERROR_LIMIT, "more than %d items in a NUMA cell", MAX_ITEMS);
    if (g_str_equal(name, "memory")) {
        cell->has_memory = true;
        g_free(cell->memory_unit);
        cell->memory_unit = g_strdup(ch_xml_attribute(element, "unit"));
    } else if (g_str_equal(name, "pages")) {
        const char *unit = ch_xml_attribute(element, "unit");
        ChNumaPages pages = {.unit = g_strdup(unit != NULL ? unit : ""),
                             .size = (uint32_t)number_attribute(element, "size", G_MAXUINT32)};

        g_array_append_val(cell->pages, pages);
    } else if (g_str_equal(name, "sibling")) {
        ChNumaDistance distance = {(uint32_t)number_attribute(element, "id", G_MAXUINT32),
                                   number_attribute(element, "value", G_MAXUINT64)};

        g_array_append_val(cell->distances, distance);
    } else if (g_str_equal(name, "cpu")) {
        ChNumaCpu cpu = {(uint32_t)number_attribute(element, "id", G_MAXUINT32),
                         parse_siblings(ch_xml_attribute(element, "siblings"))};

        g_array_append_val(cell->cpus, cpu);
    }
    return true;
}

static ChNumaCell *
last_cell(const ChCapabilities *capabilities)
{
    return &g_array_index(capabilities->cells, ChNumaCell, capabilities->cells->len - 1);
}

static bool
on_start(gpointer data, const ChXmlElement *element, GError **error)
{
    ChCapabilities *capabilities = data;
    const int depth = ch_xml_depth_below(element, cell_path, G_N_ELEMENTS(cell_path));

    if (depth == 0) {
        ChNumaCell cell = {.id = (uint32_t)number_attribute(element, "id", G_MAXUINT32),
                           .pages = g_array_new(FALSE, FALSE, sizeof(ChNumaPages)),
                           .distances = g_array_new(FALSE, FALSE, sizeof(ChNumaDistance)),
                           .cpus = g_array_new(FALSE, FALSE, sizeof(ChNumaCpu))};

        g_array_append_val(capabilities->cells, cell);
        if (capabilities->cells->len > MAX_CELLS)
            return ch_fail(error, CH_ERROR_LIMIT, "more than %d NUMA cells", MAX_CELLS);
    }
    return depth <= 0 || start_in_cell(last_cell(capabilities), element, error);
}

static void
on_end(gpointer data, const ChXmlElement *element, char *text)
{
    const char *name = element->names[element->depth - 1];
    ChNumaCell *cell;

    if (ch_xml_depth_below(element, cell_path, G_N_ELEMENTS(cell_path)) != 1)
        return;
    cell = last_cell(data);
    if (g_str_equal(name, "memory"))
        cell->memory_amount = number(text, G_MAXUINT64);
    else if (g_str_equal(name, "pages"))
        g_array_index(cell->pages, ChNumaPages, cell->pages->len - 1).count =
            number(text, G_MAXUINT64);
}

ChCapabilities *
ch_capabilities_parse(const char *xml, gsize length, GError **error)
{
    static const ChXmlHandlers handlers = {on_start, on_end};
    g_autoptr(ChCapabilities) capabilities = g_new0(ChCapabilities, 1);

    capabilities->cells = g_array_new(FALSE, FALSE, sizeof(ChNumaCell));
    g_array_set_clear_func(capabilities->cells, cell_clear);
    if (!ch_xml_walk(xml, length, "capabilities", &handlers, capabilities, error))
        return NULL;
    return g_steal_pointer(&capabilities);
}

void
ch_capabilities_free(ChCapabilities *capabilities)
{
    if (capabilities == NULL)
        return;
    g_array_unref(capabilities->cells);
    g_free(capabilities);
}
