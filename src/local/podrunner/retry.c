/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/retry.h"

#include "lib/base/time.h"

static const ChBackoffSpec spec = {
    .initial_us = CH_SECOND_US, .cap_us = 60 * CH_SECOND_US, .factor = 2, .jitter = 0.1};

void
ch_retry_init(ChRetry *retry)
{
    *retry = (ChRetry){0};
    ch_backoff_init(&retry->backoff, &spec);
}

void
ch_retry_note_change(ChRetry *retry)
{
    retry->is_changed = true;
}

bool
ch_retry_begin(ChRetry *retry, int64_t now_us)
{
    retry->is_poll = !retry->is_changed && now_us < retry->failed_until_us;
    retry->is_changed = false;
    return retry->is_poll;
}

int64_t
ch_retry_end(ChRetry *retry, bool has_failed, int64_t wait_us, int64_t now_us, double random)
{
    int64_t delay_us;

    if (has_failed) {
        retry->failed_until_us = now_us + ch_backoff_next(&retry->backoff, now_us, random);
    } else if (!retry->is_poll) {
        ch_backoff_reset(&retry->backoff);
        retry->failed_until_us = 0;
    }
    if (retry->failed_until_us == 0)
        return wait_us;
    delay_us = MAX(retry->failed_until_us - now_us, 0);
    return wait_us >= 0 ? MIN(delay_us, wait_us) : delay_us;
}
