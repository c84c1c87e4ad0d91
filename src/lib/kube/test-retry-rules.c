/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/retry-rules.h"

#define S 1000000

static const struct Case {
    const char *path;
    ChRetryFacts facts;
    ChRetryAction action;
    int64_t wait_us;
} cases[] = {
    {"/retry-rules/throttled-with-retry-after",
     {.http_status = 429, .retry_after = "3"},
     CH_RETRY_AGAIN,
     3 * S},
    {"/retry-rules/throttled-without", {.http_status = 429}, CH_RETRY_DELIVER, 0},
    {"/retry-rules/throttled-with-a-date",
     {.http_status = 429, .retry_after = "Fri, 31 Dec 1999 23:59:59 GMT"},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/server-error-with-retry-after",
     {.http_status = 503, .retry_after = "0"},
     CH_RETRY_AGAIN,
     0},
    {"/retry-rules/server-error-without",
     {.is_get = true, .http_status = 500},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/conflict-is-the-callers",
     {.http_status = 409, .retry_after = "1"},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/endless-wait-is-cut",
     {.http_status = 429, .retry_after = "999999999"},
     CH_RETRY_AGAIN,
     300 * (int64_t)S},
    {"/retry-rules/negative-wait", {.http_status = 429, .retry_after = "-7"}, CH_RETRY_AGAIN, 0},
    {"/retry-rules/tenth-retry",
     {.http_status = 429, .retry_after = "1", .n_retries = 9},
     CH_RETRY_AGAIN,
     S},
    {"/retry-rules/no-eleventh-retry",
     {.http_status = 429, .retry_after = "1", .n_retries = 10},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/get-reset",
     {.is_get = true, .transport_error = CH_HTTP_ERROR_RESET},
     CH_RETRY_AGAIN,
     S},
    {"/retry-rules/get-eof",
     {.is_get = true, .transport_error = CH_HTTP_ERROR_EOF},
     CH_RETRY_AGAIN,
     S},
    {"/retry-rules/put-reset", {.transport_error = CH_HTTP_ERROR_RESET}, CH_RETRY_DELIVER, 0},
    {"/retry-rules/put-eof", {.transport_error = CH_HTTP_ERROR_EOF}, CH_RETRY_DELIVER, 0},
    {"/retry-rules/put-unsent", {.transport_error = CH_HTTP_ERROR_UNSENT}, CH_RETRY_AGAIN, 0},
    {"/retry-rules/put-unsent-again",
     {.transport_error = CH_HTTP_ERROR_UNSENT, .n_retries = 1},
     CH_RETRY_AGAIN,
     S},
    {"/retry-rules/get-refused",
     {.is_get = true, .transport_error = CH_HTTP_ERROR_REFUSED},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/get-tls",
     {.is_get = true, .transport_error = CH_HTTP_ERROR_TLS},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/get-deadline",
     {.is_get = true, .transport_error = CH_HTTP_ERROR_TIMEOUT},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/get-reset-too-often",
     {.is_get = true, .transport_error = CH_HTTP_ERROR_RESET, .n_retries = 10},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/watch-reset-too-often",
     {.is_get = true, .is_watch = true, .transport_error = CH_HTTP_ERROR_RESET, .n_retries = 10},
     CH_RETRY_EMPTY_WATCH,
     0},
    {"/retry-rules/watch-refused",
     {.is_get = true, .is_watch = true, .transport_error = CH_HTTP_ERROR_REFUSED, .n_retries = 10},
     CH_RETRY_DELIVER,
     0},
    {"/retry-rules/unknown-loss", {.is_get = true, .transport_error = 4711}, CH_RETRY_DELIVER, 0},
};

static void
test_decide(gconstpointer data)
{
    const struct Case *c = data;
    const ChRetryDecision decision = ch_retry_decide(&c->facts);

    g_assert_cmpint(decision.action, ==, c->action);
    g_assert_cmpint(decision.wait_us, ==, c->wait_us);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_decide);
    return g_test_run();
}
