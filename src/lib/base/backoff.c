/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/backoff.h"

#include <stdbool.h>

void
ch_backoff_init(ChBackoff *backoff, const ChBackoffSpec *spec)
{
    *backoff = (ChBackoff){.spec = *spec};
}

void
ch_backoff_reset(ChBackoff *backoff)
{
    backoff->next_us = 0;
}

static bool
rested(const ChBackoff *backoff, int64_t now_us)
{
    return backoff->spec.reset_after_us > 0 &&
           now_us - backoff->last_call_us > backoff->spec.reset_after_us;
}

int64_t
ch_backoff_next(ChBackoff *backoff, int64_t now_us, double random)
{
    const ChBackoffSpec *spec = &backoff->spec;
    int64_t delay_us;

    if (backoff->next_us == 0 || rested(backoff, now_us))
        backoff->next_us = MIN(spec->initial_us, spec->cap_us);
    backoff->last_call_us = now_us;
    delay_us = backoff->next_us;

    /* Compared as doubles: the product may not fit an integer. */
    if ((double)delay_us * spec->factor < (double)spec->cap_us)
        backoff->next_us = (int64_t)((double)delay_us * spec->factor);
    else
        backoff->next_us = spec->cap_us;
    return (int64_t)((double)delay_us * (1 + spec->jitter * random));
}
