/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/clock.h"

#include "lib/base/time.h"

static int64_t
real_now(gpointer data)
{
    return ch_time_now_us();
}

static int64_t
real_wall(gpointer data)
{
    return ch_time_wall_us();
}

static double
real_random(gpointer data)
{
    return g_random_double();
}

static int64_t
real_timer(gpointer data, int64_t delay_us)
{
    return delay_us;
}

const ChKubeClock ch_kube_clock_real = {
    .now_us = real_now,
    .wall_us = real_wall,
    .random = real_random,
    .timer_us = real_timer,
};
