/* SPDX-License-Identifier: Apache-2.0 */

/*
 * request: what a guest asks on its channel of metrics: "GET /metrics/XML", then an empty line.
 *
 * Every byte is the guest's. Pure, allocates nothing, fuzzed (tests/fuzz/fuzz-metrics-request.c).
 * Spec 05 §14, 07 §7.3.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#define CH_METRICS_REQUEST_MAX 4096u /* bytes of a request, its empty line included */

typedef enum {
    CH_METRICS_REQUEST_PART, /* there is more to come */
    CH_METRICS_REQUEST_GOOD,
    CH_METRICS_REQUEST_BAD,       /* it asks for something else */
    CH_METRICS_REQUEST_MALFORMED, /* no end of it can be found: what came with it is void, too */
} ChMetricsRequest;

/* Whether a line, without its newline, asks for the metrics. */
bool ch_metrics_request_is_good(const char *line, gsize length);

/**
 * ch_metrics_request_take: the first request in @bytes.
 * @n_bytes: at most CH_METRICS_REQUEST_MAX; so many without a whole request are malformed
 * @out_taken: (out): how many bytes are done with; 0 with CH_METRICS_REQUEST_PART
 */
ChMetricsRequest ch_metrics_request_take(const char *bytes, gsize n_bytes, gsize *out_taken);
