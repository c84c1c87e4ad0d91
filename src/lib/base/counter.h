/* SPDX-License-Identifier: Apache-2.0 */

/*
 * counter: numbers that only grow, told apart by labels, as a metrics page shows them.
 *
 * A counter has a name, a text of help and label names; each combination of label values is a
 * series. Values can come from strangers, so there are limits: CH_COUNTER_MAX_SERIES series,
 * CH_COUNTER_MAX_LABEL bytes of one value. Thread: any; nothing blocks.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_COUNTER_MAX_SERIES 8192
#define CH_COUNTER_MAX_LABEL  256 /* bytes; what is longer is cut at a character */

typedef struct ChCounter ChCounter;

/**
 * ch_counter_new:
 * @labels: NULL-terminated label names, at least one; copied, as the other texts
 */
ChCounter *ch_counter_new(const char *name, const char *help, const char *const *labels);
void ch_counter_free(ChCounter *counter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChCounter, ch_counter_free)

/**
 * ch_counter_increment: adds one to a series, which is made when there is none.
 * @values: NULL-terminated, as many as there are labels
 *
 * Returns: false when that would be one series too many: nothing is counted then
 */
bool ch_counter_increment(ChCounter *counter, const char *const *values);

/* 0 for a series that is not there. */
uint64_t ch_counter_read(ChCounter *counter, const char *const *values);

/* Drops the series whose first labels have these values. @first_values: NULL-terminated */
void ch_counter_forget(ChCounter *counter, const char *const *first_values);

/* Appends the counter in Prometheus' text format, series in the order of their values; nothing when
 * there is no series. */
void ch_counter_print(ChCounter *counter, GString *page);
