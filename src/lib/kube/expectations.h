/* SPDX-License-Identifier: Apache-2.0 */

/*
 * expectations: "my write is on its way; wait for its echo before the next run". Spec 01 §7.
 *
 * Pure; the owner serializes the calls. Satisfied: no entry, nothing expected, or older
 * than the time-out.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_EXPECTATION_TIMEOUT_US (5 * 60 * G_GINT64_CONSTANT(1000000))

typedef struct ChExpectations ChExpectations;

ChExpectations *ch_expectations_new(int64_t timeout_us);
void ch_expectations_free(ChExpectations *expectations);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChExpectations, ch_expectations_free)
void ch_expectations_set(ChExpectations *expectations, const char *key, int adds, int64_t now_us);
void ch_expectations_delete(ChExpectations *expectations, const char *key);
bool
ch_expectations_are_satisfied(const ChExpectations *expectations, const char *key, int64_t now_us);
/* When an unsatisfied entry times out, monotonic; -1: there is none. The caller arms a wake-up (the
 * original sleeps through it). */
int64_t ch_expectations_expiry_us(const ChExpectations *expectations, const char *key);
