/* SPDX-License-Identifier: Apache-2.0 */

/* table: a server-side Table (meta.k8s.io/v1) as aligned text. Pure. Thread: any. */

#pragma once

#include "lib/json/json.h"

#define CH_TABLE_ACCEPT "application/json;as=Table;v=v1;g=meta.k8s.io"

/* (transfer full): a head line, and a line for each row; columns of priority 0 only. */
/* Rows whose objects are events: what happened last comes last. Others stay as they are. */
void ch_table_sort_events(ChJson *table);

char *ch_table_render(const ChJson *table, int64_t wall_us);
