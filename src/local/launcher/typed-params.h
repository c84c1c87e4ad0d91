/* SPDX-License-Identifier: Apache-2.0 */

/*
 * typed-params: reading libvirt's lists of named values.
 *
 * What a guest says passes through these lists, so counts are capped and texts made valid UTF-8.
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <libvirt/libvirt.h>
#include <stdbool.h>

/* As libvirt hands them out; borrowed. */
typedef struct {
    virTypedParameterPtr items;
    int n_items;
} ChParams;

#define CH_PARAMS_MAX_COUNT 256

/* A name made of a prefix and a field: "net.0." and "rx.bytes". */
bool ch_params_get_unsigned(const ChParams *params,
                            const char *prefix,
                            const char *field,
                            guint64 *out_value);
/* (transfer full) (nullable) */
char *ch_params_dup_string(const ChParams *params, const char *prefix, const char *field);
/* 0 when absent, at most CH_PARAMS_MAX_COUNT */
guint ch_params_count(const ChParams *params, const char *prefix, const char *field);
