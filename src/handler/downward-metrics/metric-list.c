/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/metric-list.h"

struct ChMetricList {
    GString *text; /* the metrics so far */
};

ChMetricList *
ch_metric_list_new(void)
{
    ChMetricList *list = g_new(ChMetricList, 1);

    list->text = g_string_new(NULL);
    return list;
}

void
ch_metric_list_free(ChMetricList *list)
{
    if (list == NULL)
        return;
    g_string_free(list->text, TRUE);
    g_free(list);
}

/* As Go's encoding/xml does it: what XML cannot hold becomes the replacement character. */
static void
append_escaped(GString *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);

        if (c == '&')
            g_string_append(out, "&amp;");
        else if (c == '<')
            g_string_append(out, "&lt;");
        else if (c == '>')
            g_string_append(out, "&gt;");
        else if (c == '"')
            g_string_append(out, "&#34;");
        else if (c == '\'')
            g_string_append(out, "&#39;");
        else if (c == '\t' || c == '\n' || c == '\r')
            g_string_append_printf(out, "&#x%X;", c);
        else if (c < 0x20 || c == 0xfffe || c == 0xffff)
            g_string_append(out, "\xef\xbf\xbd");
        else
            g_string_append_unichar(out, c);
    }
}

static void
add(ChMetricList *list,
    ChMetricContext context,
    const char *name,
    const char *unit,
    const char *type,
    const char *value)
{
    GString *out = list->text;

    g_string_append_printf(
        out, "  <metric type=\"%s\" context=\"%s\"", type, context == CH_METRIC_VM ? "vm" : "host");
    if (unit != NULL)
        g_string_append_printf(out, " unit=\"%s\"", unit);
    g_string_append_printf(out, ">\n    <name>%s</name>\n    <value>", name);
    append_escaped(out, value);
    g_string_append(out, "</value>\n  </metric>\n");
}

void
ch_metric_list_add_string(ChMetricList *list,
                          ChMetricContext context,
                          const char *name,
                          const char *unit,
                          const char *text)
{
    add(list, context, name, unit, "string", text);
}

void
ch_metric_list_add_int(
    ChMetricList *list, ChMetricContext context, const char *name, const char *unit, int64_t value)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, value);

    add(list, context, name, unit, "int64", text);
}

void
ch_metric_list_add_uint(
    ChMetricList *list, ChMetricContext context, const char *name, const char *unit, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, value);

    add(list, context, name, unit, "uint64", text);
}

void
ch_metric_list_add_real(
    ChMetricList *list, ChMetricContext context, const char *name, const char *unit, double value)
{
    char text[400]; /* the largest double has 309 digits before the point */

    g_ascii_formatd(text, sizeof(text), "%.6f", value);
    add(list, context, name, unit, "real64", text);
}

void
ch_metric_list_append(ChMetricList *list, const ChMetricList *other)
{
    g_string_append_len(list->text, other->text->str, (gssize)other->text->len);
}

char *
ch_metric_list_print(const ChMetricList *list)
{
    if (list->text->len == 0)
        return g_strdup("<metrics></metrics>");
    return g_strconcat("<metrics>\n", list->text->str, "</metrics>", NULL);
}
