/* SPDX-License-Identifier: Apache-2.0 */

/* test-wait: turns a loop until a condition holds; one that waits a minute has failed (the machine
 * may be slow). */

#pragma once

#include "lib/io/loop.h"

#define TEST_WAIT_US (60 * G_USEC_PER_SEC)

static inline void
test_wait_tick(gpointer data)
{
}

/* @condition is evaluated after every turn. A turn takes 5 ms at most, for conditions that no event
 * announces. */
#define test_wait_until(loop, condition)                                                           \
    do {                                                                                           \
        const gint64 wait_until_us_ = g_get_monotonic_time() + TEST_WAIT_US;                       \
        g_autoptr(ChTimer) tick_ = ch_timer_new(loop, test_wait_tick, NULL);                       \
        while (!(condition)) {                                                                     \
            ch_timer_arm(tick_, 5000);                                                             \
            event_base_loop(ch_loop_peek_base(loop), EVLOOP_ONCE);                                 \
            if (g_get_monotonic_time() > wait_until_us_)                                           \
                g_error("%s:%d: waited in vain for: %s", __FILE__, __LINE__, #condition);          \
        }                                                                                          \
    } while (0)

/* Lets @us pass while the loop turns: for proving that something does not happen. */
static inline void
test_wait_us(ChLoop *loop, gint64 us)
{
    const gint64 until_us = g_get_monotonic_time() + us;

    test_wait_until(loop, g_get_monotonic_time() >= until_us);
}
