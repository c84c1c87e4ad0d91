/* SPDX-License-Identifier: Apache-2.0 */

/* What a guest writes to its channel of metrics, whole and in two parts. */

#include <stdint.h>
#include <string.h>

#include "handler/downward-metrics/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes all requests, as the server does. Returns: what they were, a letter each */
static void
take_all(const char *bytes, gsize n_bytes, GString *out)
{
    while (n_bytes > 0) {
        const gsize n_given = MIN(n_bytes, CH_METRICS_REQUEST_MAX);
        g_autofree char *given = g_memdup2(bytes, n_given); /* a sanitizer sees what is beyond */
        gsize taken;
        const ChMetricsRequest request = ch_metrics_request_take(given, n_given, &taken);

        g_assert_cmpuint(taken, <=, n_given);
        g_assert_true((request == CH_METRICS_REQUEST_PART) == (taken == 0));
        if (request == CH_METRICS_REQUEST_PART) {
            g_assert_cmpuint(n_given, <, CH_METRICS_REQUEST_MAX);
            return;
        }
        if (request == CH_METRICS_REQUEST_GOOD)
            g_assert_true(strncmp(given, "GET ", 4) == 0 &&
                          taken >= strlen("GET /metrics/XML\n\n"));
        g_string_append_c(out, (char)('0' + request));
        bytes += taken;
        n_bytes -= taken;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *bytes = g_memdup2(data, size);
    g_autoptr(GString) kinds = g_string_new(NULL);
    gsize taken;

    take_all(bytes, size, kinds);
    /* A part stays a part until more comes: what a shorter one is must not contradict. */
    if (size > 1 && size < CH_METRICS_REQUEST_MAX) {
        const ChMetricsRequest half = ch_metrics_request_take(bytes, size - 1, &taken);

        if (half == CH_METRICS_REQUEST_GOOD || half == CH_METRICS_REQUEST_BAD)
            g_assert_true(kinds->str[0] == (char)('0' + half));
    }
    (void)ch_metrics_request_is_good(bytes, size);
    return 0;
}
