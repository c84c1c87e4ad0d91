/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/request.h"

#include <string.h>

static const struct Case {
    const char *path, *line;
    bool is_good;
} cases[] = {
    /* spec:05-16.10#191 */
    {"/metrics-request/good", "GET /metrics/XML", true},
    /* spec:05-16.10#191 */
    {"/metrics-request/put", "PUT /metrics/XML", false},
    /* spec:05-16.10#191 */
    {"/metrics-request/no-method", "/metrics/XML", false},
    /* spec:05-16.10#191 */
    {"/metrics-request/two-blanks", "GET  /metrics/XML", false},
    /* spec:05-16.10#191 */
    {"/metrics-request/backslashes", "GET \\metrics\\XML", false},
    /* spec:05-16.10#191 */
    {"/metrics-request/other-path", "GET /foo/bar", false},
    {"/metrics-request/version", "GET /metrics/XML HTTP/1.1", false},
    {"/metrics-request/query", "GET /metrics/XML?a=b", true},
    {"/metrics-request/empty-query", "GET /metrics/XML?", true},
    {"/metrics-request/escaped", "GET /metrics/%58ML", true},
    {"/metrics-request/bad-escape", "GET /metrics/%5GML", false},
    {"/metrics-request/half-escape", "GET /metrics/XML%2", false},
    {"/metrics-request/escaped-more", "GET /metrics/XML%00", false},
    {"/metrics-request/url", "GET http://host.example:80/metrics/XML", true},
    {"/metrics-request/url-of-other-path", "GET http://host/metrics", false},
    {"/metrics-request/url-without-host", "GET http:///metrics/XML", true},
    {"/metrics-request/no-url", "GET 1http://host/metrics/XML", false},
    {"/metrics-request/opaque", "GET http:/metrics/XML", false},
    {"/metrics-request/no-scheme", "GET //host/metrics/XML", false},
    {"/metrics-request/lower-case", "GET /metrics/xml", false},
    {"/metrics-request/slash-behind", "GET /metrics/XML/", false},
    {"/metrics-request/relative", "GET metrics/XML", false},
    {"/metrics-request/start-only", "GET /metrics/XM", false},
    {"/metrics-request/nothing", "", false},
    {"/metrics-request/method-only", "GET", false},
    {"/metrics-request/method-and-blank", "GET ", false},
    {"/metrics-request/control", "GET /metrics/XML?\x07", false},
    {"/metrics-request/method-in-lower-case", "get /metrics/XML", false},
};

static void
test_line(gconstpointer data)
{
    const struct Case *c = data;

    g_assert_true(ch_metrics_request_is_good(c->line, strlen(c->line)) == c->is_good);
}

static const struct {
    const char *bytes;
    ChMetricsRequest request;
    gsize taken;
} takes[] = {
    {"", CH_METRICS_REQUEST_PART, 0},
    {"GET /metr", CH_METRICS_REQUEST_PART, 0},
    {"GET /metrics/XML\n", CH_METRICS_REQUEST_PART, 0},
    {"GET /metrics/XML\r\n\r", CH_METRICS_REQUEST_PART, 0},
    {"GET /metrics/XML\n\n", CH_METRICS_REQUEST_GOOD, 18},
    {"GET /metrics/XML\r\n\r\n", CH_METRICS_REQUEST_GOOD, 20},
    {"GET /metrics/XML\n\nGET /metrics/XML\n\n", CH_METRICS_REQUEST_GOOD, 18},
    {"GET /foo\n\nrest", CH_METRICS_REQUEST_BAD, 10},
    {"\n\n", CH_METRICS_REQUEST_BAD, 2},
    {"GET /metrics/XML\nHost: x\n\n", CH_METRICS_REQUEST_MALFORMED, 26},
    {"GET /metrics/XML\r\r\n\n", CH_METRICS_REQUEST_BAD, 20},
};

static void
test_take(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(takes); i++) {
        gsize taken;

        g_assert_cmpint(ch_metrics_request_take(takes[i].bytes, strlen(takes[i].bytes), &taken),
                        ==,
                        takes[i].request);
        g_assert_cmpuint(taken, ==, takes[i].taken);
    }
}

/* What has no end does not wait for one for ever. */
static void
test_endless(void)
{
    g_autofree char *bytes = g_strnfill(CH_METRICS_REQUEST_MAX, 'x');
    gsize taken;

    g_assert_cmpint(ch_metrics_request_take(bytes, CH_METRICS_REQUEST_MAX - 1, &taken),
                    ==,
                    CH_METRICS_REQUEST_PART);
    g_assert_cmpint(ch_metrics_request_take(bytes, CH_METRICS_REQUEST_MAX, &taken),
                    ==,
                    CH_METRICS_REQUEST_MALFORMED);
    g_assert_cmpuint(taken, ==, CH_METRICS_REQUEST_MAX);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_line);
    g_test_add_func("/metrics-request/take", test_take);
    g_test_add_func("/metrics-request/endless", test_endless);
    return g_test_run();
}
