/* SPDX-License-Identifier: Apache-2.0 */

/*
 * clock: where this room takes time and chance from, so that tests can play hours in milliseconds.
 *
 * The client has one; informers and the recorder take it from their client. Deadlines of requests
 * are real time always. Thread: the functions are called on any thread.
 */

#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct {
    int64_t (*now_us)(gpointer data);  /* monotonic */
    int64_t (*wall_us)(gpointer data); /* since the epoch */
    double (*random)(gpointer data);   /* uniform in [0, 1) */
    /* How long a timer runs that stands for @delay_us; production returns it unchanged. */
    int64_t (*timer_us)(gpointer data, int64_t delay_us);
    gpointer data;
} ChKubeClock;

/* The machine's clocks and GLib's random numbers. */
extern const ChKubeClock ch_kube_clock_real;

static inline int64_t
ch_kube_clock_now(const ChKubeClock *clock)
{
    return clock->now_us(clock->data);
}

static inline int64_t
ch_kube_clock_wall(const ChKubeClock *clock)
{
    return clock->wall_us(clock->data);
}

static inline double
ch_kube_clock_random(const ChKubeClock *clock)
{
    return clock->random(clock->data);
}

static inline int64_t
ch_kube_clock_timer(const ChKubeClock *clock, int64_t delay_us)
{
    return clock->timer_us(clock->data, delay_us);
}
