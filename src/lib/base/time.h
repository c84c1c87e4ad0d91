/* SPDX-License-Identifier: Apache-2.0 */

/*
 * time: the two clocks, and RFC 3339.
 *
 * Durations and deadlines are int64_t microseconds of the monotonic clock; wall-clock instants are
 * int64_t microseconds since the epoch, UTC. Pure but for the two `now`s. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_SECOND_US G_GINT64_CONSTANT(1000000)
#define CH_MS_US     G_GINT64_CONSTANT(1000)

int64_t ch_time_now_us(void);  /* CLOCK_MONOTONIC: for durations and deadlines */
int64_t ch_time_wall_us(void); /* CLOCK_REALTIME: for what is written down */

/* (transfer full): "2026-11-29T16:19:40Z": whole seconds, as metav1.Time prints */
char *ch_time_format(int64_t wall_us);
/* (transfer full): "2026-11-29T16:19:40.245147Z": always six digits, as metav1.MicroTime and the
 * log print */
char *ch_time_format_micro(int64_t wall_us);

/**
 * ch_time_parse:
 * @text: RFC 3339, any offset, any number of fraction digits (finer than a microsecond is cut)
 * @out_wall_us: (out): microseconds since the epoch
 *
 * Returns: false (CH_ERROR_INVALID) on anything else, out-of-range fields included
 */
bool ch_time_parse(const char *text, int64_t *out_wall_us, GError **error);

/**
 * ch_duration_parse: Go's duration syntax ("30s", "1m30s", "1.5h", "0").
 * Returns: false (CH_ERROR_INVALID) on anything else or overflow
 */
bool ch_duration_parse(const char *text, int64_t *out_us, GError **error);
