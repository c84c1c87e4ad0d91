/* SPDX-License-Identifier: Apache-2.0 */

/*
 * clock: the monotonic clock for programs that do not link GLib, as ch_time_now_us() of lib/base
 * would make them do. Thread: any.
 */

#pragma once

#include <stdint.h>
#include <time.h>

/* Microseconds of CLOCK_MONOTONIC, the same clock as ch_time_now_us(). */
static inline int64_t
ch_clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
