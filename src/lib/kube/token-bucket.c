/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/token-bucket.h"

#define SECOND_US 1e6

void
ch_token_bucket_init(ChTokenBucket *bucket, double per_second, guint burst, int64_t now_us)
{
    *bucket = (ChTokenBucket){
        .per_second = MAX(per_second, 0),
        .burst = burst,
        .tokens = burst,
        .last_us = now_us,
    };
}

static void
refill(ChTokenBucket *bucket, int64_t now_us)
{
    if (now_us <= bucket->last_us)
        return;
    bucket->tokens += (double)(now_us - bucket->last_us) / SECOND_US * bucket->per_second;
    bucket->tokens = MIN(bucket->tokens, bucket->burst);
    bucket->last_us = now_us;
}

/* Sums of fractions miss whole numbers by a hair; a millionth of a token is nobody's loss. */
static bool
has_token(const ChTokenBucket *bucket)
{
    return bucket->tokens >= 1 - 1e-6;
}

bool
ch_token_bucket_take(ChTokenBucket *bucket, int64_t now_us)
{
    refill(bucket, now_us);
    if (!has_token(bucket))
        return false;
    bucket->tokens -= 1;
    return true;
}

int64_t
ch_token_bucket_reserve(ChTokenBucket *bucket, int64_t now_us)
{
    const int64_t most_us = G_MAXINT64 / 2;
    double delay_us;

    if (ch_token_bucket_take(bucket, now_us))
        return 0;
    if (bucket->per_second <= 0)
        return G_MAXINT64;
    bucket->tokens -= 1;
    delay_us = -bucket->tokens / bucket->per_second * (double)SECOND_US;
    if (delay_us > (double)most_us)
        return most_us;
    return (int64_t)(delay_us + 0.999); /* rounded up, but for a sum's last bit */
}
