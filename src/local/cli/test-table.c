/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/table.h"

#include "lib/base/time.h"

static void
test_render(void)
{
    g_autoptr(ChJson) table = ch_json_parse(
        "{\"columnDefinitions\":[{\"name\":\"Name\",\"type\":\"string\",\"priority\":0},"
        "{\"name\":\"Age\",\"type\":\"date\"},{\"name\":\"Wide\",\"type\":\"string\",\"priority\":"
        "1},"
        "{\"name\":\"Ready\",\"type\":\"string\"},{\"name\":\"N\",\"type\":\"integer\"}],\"rows\":["
        "{\"cells\":[\"tiny\",\"2026-11-29T00:00:00Z\",\"x\",\"True\",3]},"
        "{\"cells\":[\"longer-name\",\"2026-11-28T00:00:10Z\",\"x\"]}]}",
        -1,
        NULL);
    int64_t now_us = 0;
    g_autofree char *text = NULL;

    g_assert_true(ch_time_parse("2026-11-29T00:01:00Z", &now_us, NULL));
    text = ch_table_render(table, now_us);
    g_assert_cmpstr(text,
                    ==,
                    "NAME          AGE   READY   N\n"
                    "tiny          60s   True    3\n"
                    "longer-name   24h\n");
}

static void
test_no_table(void)
{
    g_autoptr(ChJson) other = ch_json_parse("{\"kind\":\"Status\"}", -1, NULL);
    g_autofree char *text = ch_table_render(other, 0);

    g_assert_cmpstr(text, ==, "\n");
}

static void
test_events(void)
{
    g_autoptr(ChJson) table = ch_json_parse(
        "{\"rows\":[{\"cells\":[1],\"object\":{\"lastTimestamp\":\"2026-11-29T00:00:02Z\"}},"
        "{\"cells\":[2],\"object\":{\"lastTimestamp\":null,\"eventTime\":"
        "\"2026-11-29T00:00:01.5Z\"}},"
        "{\"cells\":[3],\"object\":{\"firstTimestamp\":\"2026-11-29T00:00:02Z\"}},"
        "{\"cells\":[4],\"object\":{}}]}",
        -1,
        NULL);
    static const int64_t order[] = {4, 2, 1, 3};

    ch_table_sort_events(table);
    for (gsize i = 0; i < G_N_ELEMENTS(order); i++) {
        const ChJson *row = ch_json_item(ch_json_at(table, "rows"), i);
        int64_t cell = 0;

        g_assert_true(ch_json_as_int(ch_json_item(ch_json_at(row, "cells"), 0), &cell));
        g_assert_cmpint(cell, ==, order[i]);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/table/render", test_render);
    g_test_add_func("/table/no-table", test_no_table);
    g_test_add_func("/table/events", test_events);
    return g_test_run();
}
