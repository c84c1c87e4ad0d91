/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-vhostmd: reads a disk of metrics as a guest does. For test programs only; shares nothing
 * with what writes one.
 */

#pragma once

#include <glib.h>
#include <string.h>

typedef struct {
    char *type, *context, *unit; /* unit: NULL: none */
    char *name, *value;
} VhostmdMetric;

typedef struct {
    GPtrArray *metrics; /* VhostmdMetric */
    GString *text;      /* of the element that is open */
} VhostmdReader;

static inline void
vhostmd_metric_free(gpointer data)
{
    VhostmdMetric *metric = data;

    g_free(metric->type);
    g_free(metric->context);
    g_free(metric->unit);
    g_free(metric->name);
    g_free(metric->value);
    g_free(metric);
}

static inline void
vhostmd_start(GMarkupParseContext *context,
              const char *element,
              const char **names,
              const char **values,
              gpointer data,
              GError **error)
{
    VhostmdReader *reader = data;
    VhostmdMetric *metric;
    const char *ignored;

    g_string_truncate(reader->text, 0);
    if (!g_str_equal(element, "metric"))
        return;
    metric = g_new0(VhostmdMetric, 1);
    g_ptr_array_add(reader->metrics, metric);
    g_assert_true(g_markup_collect_attributes(element,
                                              names,
                                              values,
                                              error,
                                              G_MARKUP_COLLECT_STRDUP,
                                              "type",
                                              &metric->type,
                                              G_MARKUP_COLLECT_STRDUP,
                                              "context",
                                              &metric->context,
                                              G_MARKUP_COLLECT_STRDUP | G_MARKUP_COLLECT_OPTIONAL,
                                              "unit",
                                              &metric->unit,
                                              G_MARKUP_COLLECT_STRING | G_MARKUP_COLLECT_OPTIONAL,
                                              "id", /* of a VM, when there are several */
                                              &ignored,
                                              G_MARKUP_COLLECT_STRING | G_MARKUP_COLLECT_OPTIONAL,
                                              "uuid",
                                              &ignored,
                                              G_MARKUP_COLLECT_INVALID));
}

static inline void
vhostmd_end(GMarkupParseContext *context, const char *element, gpointer data, GError **error)
{
    VhostmdReader *reader = data;
    VhostmdMetric *metric =
        reader->metrics->len > 0 ? reader->metrics->pdata[reader->metrics->len - 1] : NULL;

    if (g_str_equal(element, "name"))
        metric->name = g_strdup(reader->text->str);
    if (g_str_equal(element, "value"))
        metric->value = g_strdup(reader->text->str);
}

static inline void
vhostmd_text(
    GMarkupParseContext *context, const char *text, gsize length, gpointer data, GError **error)
{
    g_string_append_len(((VhostmdReader *)data)->text, text, (gssize)length);
}

/* (transfer full) of VhostmdMetric: those in a body, which must be well-formed */
static inline GPtrArray *
vhostmd_read_body(const char *body, gsize length)
{
    static const GMarkupParser parser = {vhostmd_start, vhostmd_end, vhostmd_text, NULL, NULL};
    VhostmdReader reader = {g_ptr_array_new_with_free_func(vhostmd_metric_free), g_string_new("")};
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &reader, NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(g_markup_parse_context_parse(context, body, (gssize)length, &error));
    g_assert_true(g_markup_parse_context_end_parse(context, &error));
    g_markup_parse_context_free(context);
    g_string_free(reader.text, TRUE);
    return reader.metrics;
}

static inline guint32
vhostmd_uint32(const char *bytes)
{
    const guint8 *b = (const guint8 *)bytes;

    return (guint32)b[0] << 24 | (guint32)b[1] << 16 | (guint32)b[2] << 8 | b[3];
}

/* (transfer full): those on a disk, whose header must be right */
static inline GPtrArray *
vhostmd_read_disk(const char *disk, gsize size)
{
    guint32 length, sum = 0;

    g_assert_cmpuint(size, >=, 16);
    g_assert_cmpint(memcmp(disk, "mvbd", 4), ==, 0);
    g_assert_cmpuint(vhostmd_uint32(disk + 4), ==, 0); /* nobody writes */
    length = vhostmd_uint32(disk + 12);
    g_assert_cmpuint(length, <=, size - 16);
    for (guint32 i = 0; i < length; i++)
        sum += (guint8)disk[16 + i];
    g_assert_cmpuint(vhostmd_uint32(disk + 8), ==, sum);
    g_assert_true(disk[16 + length - 1] == '\n');
    return vhostmd_read_body(disk + 16, length);
}
