/* SPDX-License-Identifier: Apache-2.0 */

/*
 * route: a URL taken apart: which kind, which object, which parameters.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/status.h"

typedef struct {
    const ChResource *resource; /* NULL: @segments are no resource's */
    char **segments;            /* owned: decoded */
    const char *namespace_;     /* (nullable): borrowed from @segments */
    const char *name;           /* (nullable) */
    const char *subresource;    /* (nullable) */
} ChRoute;

/* Returns: (transfer full) (nullable): 400 for a broken encoding */
ChRefusal *ch_route_parse(const char *path, ChRoute *out_route);
void ch_route_clear(ChRoute *route);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChRoute, ch_route_clear)

/* (transfer full): name -> value, both decoded; of duplicates the last. @query: (nullable)
 * Returns: (transfer full) (nullable): 400 for a broken encoding */
ChRefusal *ch_query_parse(const char *query, GHashTable **out_params);
/* (transfer none) (nullable) */
const char *ch_query_get(GHashTable *params, const char *name);
/* Whatever it is, but "0" and "false": so clusters read it, and clients rely on it. */
bool ch_query_is_true(GHashTable *params, const char *name);
/* @out_value: @fallback when absent or empty; 400 when no whole number >= 0 */
ChRefusal *ch_query_int(GHashTable *params, const char *name, int64_t fallback, int64_t *out_value);
