/* SPDX-License-Identifier: Apache-2.0 */

/*
 * view: the three forms in which an object can be asked for: as it is, only its metadata, or as a
 * row of kubectl's table.
 *
 * Pure: the time is a parameter. Thread: the owner's.
 */

#pragma once

#include "local/apiserver/status.h"

typedef enum {
    CH_VIEW_INVALID,
    CH_VIEW_PLAIN,
    CH_VIEW_METADATA, /* PartialObjectMetadata */
    CH_VIEW_TABLE,
} ChViewKind;

/* What a row carries beside its cells. */
typedef enum {
    CH_ROW_METADATA,
    CH_ROW_OBJECT,
    CH_ROW_NONE,
} ChRowObject;

typedef struct {
    ChViewKind kind;
    const char *version; /* of meta.k8s.io: "v1" or "v1beta1"; static */
    ChRowObject row_object;
} ChView;

/**
 * ch_view_choose: the first form in an Accept header that this server can give.
 * @accept: (nullable): NULL or "": plain
 * @include_object: (nullable): the query's includeObject
 * Returns: (transfer full) (nullable): 406, 400
 */
ChRefusal *ch_view_choose(const char *accept, const char *include_object, ChView *out_view);

/* (transfer full): one object in another form than plain: metadata or a table of one row.
 * @is_first: of a watch: the columns are told */
ChJson *ch_view_object(
    const ChView *view, const ChResource *resource, ChJson *object, bool is_first, int64_t now_us);

/* (transfer full): the head of a table without rows. */
ChJson *ch_view_table_new(const ChView *view, const ChResource *resource, bool has_columns);
/* (transfer full) */
ChJson *ch_view_row(const ChView *view, const ChResource *resource, ChJson *object, int64_t now_us);
/* (transfer full): PartialObjectMetadata of @object. */
ChJson *ch_view_metadata(const ChView *view, ChJson *object);
