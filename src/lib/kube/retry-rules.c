/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/retry-rules.h"

#include "lib/base/time.h"

/* No API server asks for more; a wait without end would be a hang. */
#define RETRY_AFTER_MAX_S 300

/* Which requests may be sent again after which loss. A request that the server says it has not
 * processed (GOAWAY, REFUSED_STREAM) cannot do harm twice, whatever its method: Go's HTTP/2
 * transport re-sends those below client-go. */
typedef enum {
    LOSS_FINAL = 0,
    LOSS_GET,     /* it may have reached the server: reads only */
    LOSS_HARMLESS /* it did not: any method */
} Loss;

static const Loss losses[] = {
    [CH_HTTP_ERROR_REFUSED] = LOSS_FINAL, /* the reflector has its own rule for it */
    [CH_HTTP_ERROR_CONNECT] = LOSS_FINAL,
    [CH_HTTP_ERROR_TLS] = LOSS_FINAL,
    [CH_HTTP_ERROR_RESET] = LOSS_GET,
    [CH_HTTP_ERROR_EOF] = LOSS_GET,
    [CH_HTTP_ERROR_UNSENT] = LOSS_HARMLESS,
    [CH_HTTP_ERROR_PROTOCOL] = LOSS_FINAL,
    [CH_HTTP_ERROR_LIMIT] = LOSS_FINAL,
    [CH_HTTP_ERROR_TIMEOUT] = LOSS_FINAL, /* the deadline covers all tries */
    [CH_HTTP_ERROR_STREAM] = LOSS_FINAL,  /* the server ended just this one, on purpose */
};
G_STATIC_ASSERT(G_N_ELEMENTS(losses) == CH_HTTP_ERROR_STREAM + 1);

/* False: absent, or no whole number of seconds (the HTTP-date form does not count). */
static bool
parse_retry_after(const char *text, int64_t *out_wait_us)
{
    gint64 seconds;

    if (text == NULL || !g_ascii_string_to_signed(text, 10, G_MININT32, G_MAXINT32, &seconds, NULL))
        return false;
    *out_wait_us = CLAMP(seconds, 0, RETRY_AFTER_MAX_S) * CH_SECOND_US;
    return true;
}

static ChRetryDecision
decide_answer(const ChRetryFacts *facts)
{
    ChRetryDecision again = {.action = CH_RETRY_AGAIN};
    const bool asks_for_retry = (facts->http_status == 429 || facts->http_status >= 500) &&
                                parse_retry_after(facts->retry_after, &again.wait_us);

    if (asks_for_retry && facts->n_retries < CH_RETRY_MAX)
        return again;
    return (ChRetryDecision){.action = CH_RETRY_DELIVER};
}

static ChRetryDecision
decide_loss(const ChRetryFacts *facts)
{
    const guint code = (guint)facts->transport_error;
    const Loss loss = code < G_N_ELEMENTS(losses) ? losses[code] : LOSS_FINAL;
    const bool is_retryable = loss == LOSS_HARMLESS || (loss == LOSS_GET && facts->is_get);

    if (!is_retryable)
        return (ChRetryDecision){.action = CH_RETRY_DELIVER};
    if (facts->n_retries >= CH_RETRY_MAX)
        return (ChRetryDecision){.action =
                                     facts->is_watch ? CH_RETRY_EMPTY_WATCH : CH_RETRY_DELIVER};
    /* The first re-send after a GOAWAY is immediate: servers send it routinely to spread load. */
    return (ChRetryDecision){
        .action = CH_RETRY_AGAIN,
        .wait_us = loss == LOSS_HARMLESS && facts->n_retries == 0 ? 0 : CH_SECOND_US,
    };
}

ChRetryDecision
ch_retry_decide(const ChRetryFacts *facts)
{
    return facts->transport_error != 0 ? decide_loss(facts) : decide_answer(facts);
}
