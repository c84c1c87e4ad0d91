/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/metric-list.h"

#include <string.h>

static void
test_none(void)
{
    g_autoptr(ChMetricList) list = ch_metric_list_new();
    g_autofree char *text = ch_metric_list_print(list);

    g_assert_cmpstr(text, ==, "<metrics></metrics>");
}

static void
test_types(void)
{
    g_autoptr(ChMetricList) list = ch_metric_list_new();
    g_autofree char *text = NULL;

    ch_metric_list_add_string(list, CH_METRIC_HOST, "A", NULL, "text");
    ch_metric_list_add_int(list, CH_METRIC_VM, "B", "s", -9223372036854775807 - 1);
    ch_metric_list_add_uint(list, CH_METRIC_VM, "C", "KiB", 18446744073709551615u);
    ch_metric_list_add_real(list, CH_METRIC_HOST, "D", NULL, 12.34);
    text = ch_metric_list_print(list);
    g_assert_cmpstr(text,
                    ==,
                    "<metrics>\n"
                    "  <metric type=\"string\" context=\"host\">\n"
                    "    <name>A</name>\n"
                    "    <value>text</value>\n"
                    "  </metric>\n"
                    "  <metric type=\"int64\" context=\"vm\" unit=\"s\">\n"
                    "    <name>B</name>\n"
                    "    <value>-9223372036854775808</value>\n"
                    "  </metric>\n"
                    "  <metric type=\"uint64\" context=\"vm\" unit=\"KiB\">\n"
                    "    <name>C</name>\n"
                    "    <value>18446744073709551615</value>\n"
                    "  </metric>\n"
                    "  <metric type=\"real64\" context=\"host\">\n"
                    "    <name>D</name>\n"
                    "    <value>12.340000</value>\n"
                    "  </metric>\n"
                    "</metrics>");
}

/* A launcher's text cannot become markup, and nothing is lost that XML can hold. */
static void
test_escapes(void)
{
    g_autoptr(ChMetricList) list = ch_metric_list_new();
    g_autofree char *text = NULL;

    ch_metric_list_add_string(
        list, CH_METRIC_HOST, "A", NULL, "</value>&\"'\t\r\n\x01\xc3\xa9\xef\xbf\xbe");
    text = ch_metric_list_print(list);
    g_assert_nonnull(strstr(text,
                            "<value>&lt;/value&gt;&amp;&#34;&#39;&#x9;&#xD;&#xA;\xef\xbf\xbd"
                            "\xc3\xa9\xef\xbf\xbd</value>"));
}

static void
test_append(void)
{
    g_autoptr(ChMetricList) list = ch_metric_list_new();
    g_autoptr(ChMetricList) other = ch_metric_list_new();
    g_autoptr(ChMetricList) whole = ch_metric_list_new();
    g_autofree char *text = NULL;
    g_autofree char *expect = NULL;

    ch_metric_list_add_int(list, CH_METRIC_HOST, "A", NULL, 1);
    ch_metric_list_add_int(other, CH_METRIC_VM, "B", NULL, 2);
    ch_metric_list_append(list, other);
    ch_metric_list_add_int(whole, CH_METRIC_HOST, "A", NULL, 1);
    ch_metric_list_add_int(whole, CH_METRIC_VM, "B", NULL, 2);
    text = ch_metric_list_print(list);
    expect = ch_metric_list_print(whole);
    g_assert_cmpstr(text, ==, expect);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/metric-list/none", test_none);
    g_test_add_func("/metric-list/types", test_types);
    g_test_add_func("/metric-list/escapes", test_escapes);
    g_test_add_func("/metric-list/append", test_append);
    return g_test_run();
}
