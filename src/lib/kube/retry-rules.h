/* SPDX-License-Identifier: Apache-2.0 */

/*
 * retry-rules: what to do with one finished try of a request. Spec 01 §2.2.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "lib/io/http-client.h"

#define CH_RETRY_MAX 10

typedef struct {
    bool is_get;             /* a watch is one too */
    bool is_watch;           /* opening one */
    guint n_retries;         /* done so far */
    int http_status;         /* 0: no answer came, see transport_error */
    const char *retry_after; /* (nullable): the header's text */
    int transport_error;     /* ChHttpErrorCode; 0: an answer came */
} ChRetryFacts;

typedef enum {
    CH_RETRY_INVALID = 0,
    CH_RETRY_DELIVER,     /* it is the caller's: answer or error */
    CH_RETRY_AGAIN,       /* wait, take a token, send again */
    CH_RETRY_EMPTY_WATCH, /* pretend that a watch opened and ended at once */
} ChRetryAction;

typedef struct {
    ChRetryAction action;
    int64_t wait_us; /* of CH_RETRY_AGAIN */
} ChRetryDecision;

ChRetryDecision ch_retry_decide(const ChRetryFacts *facts);
