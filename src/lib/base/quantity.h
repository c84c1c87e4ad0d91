/* SPDX-License-Identifier: Apache-2.0 */

/*
 * quantity: Kubernetes resource quantities ("128Mi", "1500m", "1e3").
 *
 * Pure. Thread: any. Spec: k8s.io/apimachinery resource.Quantity's grammar; 02 (equality by value).
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_QUANTITY_MAX_TEXT 256

/* How a quantity was written, and is printed again. */
typedef enum {
    CH_QUANTITY_DECIMAL,  /* n u m k M G T P E */
    CH_QUANTITY_BINARY,   /* Ki Mi Gi Ti Pi Ei */
    CH_QUANTITY_EXPONENT, /* e3 */
} ChQuantityFormat;

typedef struct {
    __int128 nano; /* the value in units of 1e-9 */
    ChQuantityFormat format;
} ChQuantity;

/**
 * ch_quantity_parse:
 * @text: a sign, digits with at most one point among them, a suffix
 *
 * As the API server does: what is finer than 1e-9 is rounded away from zero, a binary quantity
 * beyond 2^63-1 becomes 2^63-1.
 *
 * Returns: false with CH_ERROR_INVALID (grammar) or CH_ERROR_LIMIT (a decimal beyond 2^63-1, or a
 * text longer than CH_QUANTITY_MAX_TEXT)
 */
bool ch_quantity_parse(const char *text, ChQuantity *out_quantity, GError **error);

/* -1, 0, 1: by value, so "1Gi" equals "1024Mi" */
int ch_quantity_compare(const ChQuantity *a, const ChQuantity *b);

/* Whole units (bytes for memory, cores for CPU), rounded away from zero. */
int64_t ch_quantity_units(const ChQuantity *quantity);

/* (transfer full): the canonical text, as Go's Quantity.String() prints: the largest suffix that
 * needs no fraction; a binary quantity that is no whole number or is less than 1024 has no binary
 * suffix */
char *ch_quantity_print(const ChQuantity *quantity);
