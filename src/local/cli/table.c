/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/table.h"

#include "lib/base/time.h"

#define GAP 3

/* "5s", "3m", "7h", "12d": how long ago. */
static char *
format_age(int64_t age_us)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{24 * 3600, 'd'}, {3600, 'h'}, {60, 'm'}};
    const int64_t seconds = MAX(age_us / CH_SECOND_US, 0);

    for (gsize i = 0; i < G_N_ELEMENTS(units); i++) {
        if (seconds >= 2 * units[i].seconds)
            return g_strdup_printf(
                "%" G_GINT64_FORMAT "%c", seconds / units[i].seconds, units[i].unit);
    }
    return g_strdup_printf("%" G_GINT64_FORMAT "s", seconds);
}

static char *
cell_text(const ChJson *column, const ChJson *cell, int64_t wall_us)
{
    const char *text = ch_json_as_string(cell);
    int64_t time_us = 0;

    if (cell == NULL)
        return g_strdup("");
    if (text == NULL)
        return ch_json_print(cell, NULL);
    if (g_strcmp0(ch_json_string_at(column, "type"), "date") == 0 &&
        ch_time_parse(text, &time_us, NULL))
        return format_age(wall_us - time_us);
    return g_utf8_make_valid(text, -1);
}

/* @row: NULL: the head line */
static char *
text_at(const ChJson *columns, gsize i, const ChJson *row, int64_t wall_us)
{
    const ChJson *column = ch_json_item(columns, i);

    if (row == NULL)
        return g_ascii_strup(ch_json_string_at(column, "name"), -1);
    return cell_text(column, ch_json_item(ch_json_at(row, "cells"), i), wall_us);
}

/* (nullable): when it happened last; texts of one time zone, which compare as times do */
static const char *
event_time(const ChJson *row)
{
    const ChJson *event = ch_json_at(row, "object");
    const char *when = ch_json_string_at(event, "lastTimestamp");

    if (when == NULL)
        when = ch_json_string_at(event, "eventTime");
    return when != NULL ? when : ch_json_string_at(event, "firstTimestamp");
}

static int
compare_events(gconstpointer a, gconstpointer b)
{
    return g_strcmp0(event_time(*(const ChJson *const *)a), event_time(*(const ChJson *const *)b));
}

void
ch_table_sort_events(ChJson *table)
{
    const ChJson *rows = ch_json_at(table, "rows");
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    ChJson *list = NULL;

    for (gsize i = 0; i < ch_json_length(rows); i++)
        g_ptr_array_add(sorted, ch_json_item(rows, i));
    if (sorted->len == 0)
        return;
    g_ptr_array_sort(sorted, compare_events); /* stable */
    list = ch_json_new_array();
    for (guint i = 0; i < sorted->len; i++)
        ch_json_append(list, ch_json_ref(sorted->pdata[i]));
    ch_json_set(table, "rows", list);
}

static bool
is_shown(const ChJson *columns, gsize i)
{
    int64_t priority = 0;

    return ch_json_string_at(ch_json_item(columns, i), "name") != NULL &&
           (!ch_json_int_at(ch_json_item(columns, i), &priority, "priority") || priority == 0);
}

static int
width_of(const ChJson *table, const ChJson *columns, gsize i, int64_t wall_us)
{
    const ChJson *rows = ch_json_at(table, "rows");
    g_autofree char *head = text_at(columns, i, NULL, wall_us);
    glong width = g_utf8_strlen(head, -1);

    for (gsize r = 0; r < ch_json_length(rows); r++) {
        g_autofree char *text = text_at(columns, i, ch_json_item(rows, r), wall_us);

        width = MAX(width, g_utf8_strlen(text, -1));
    }
    return (int)width;
}

static void
render_row(
    GString *out, const ChJson *columns, const int *widths, const ChJson *row, int64_t wall_us)
{
    const gsize start = out->len;

    for (gsize i = 0; i < ch_json_length(columns); i++) {
        g_autofree char *text = NULL;

        if (!is_shown(columns, i))
            continue;
        text = text_at(columns, i, row, wall_us);
        g_string_append(out, text);
        for (glong c = g_utf8_strlen(text, -1); c < widths[i] + GAP; c++)
            g_string_append_c(out, ' ');
    }
    while (out->len > start && out->str[out->len - 1] == ' ')
        g_string_truncate(out, out->len - 1);
    g_string_append_c(out, '\n');
}

char *
ch_table_render(const ChJson *table, int64_t wall_us)
{
    const ChJson *columns = ch_json_at(table, "columnDefinitions");
    const ChJson *rows = ch_json_at(table, "rows");
    g_autofree int *widths = g_new0(int, ch_json_length(columns) + 1);
    GString *out = g_string_new(NULL);

    for (gsize i = 0; i < ch_json_length(columns); i++) {
        if (is_shown(columns, i))
            widths[i] = width_of(table, columns, i, wall_us);
    }
    render_row(out, columns, widths, NULL, wall_us);
    for (gsize r = 0; r < ch_json_length(rows); r++)
        render_row(out, columns, widths, ch_json_item(rows, r), wall_us);
    return g_string_free(out, FALSE);
}
