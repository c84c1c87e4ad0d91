/* SPDX-License-Identifier: Apache-2.0 */

/*
 * list-splitter: takes a Kubernetes list apart while it arrives, item by item.
 *
 * Bytes of the `items` array are handed over one item at a time; everything around it (kind,
 * metadata) is kept as the envelope and parsed at the end, so that a list of any length needs the
 * memory of its largest item. Limits: an item CH_LIST_MAX_ITEM, a whole list CH_LIST_MAX_BYTES.
 * Pure. Thread: the owner's.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#define CH_LIST_MAX_ITEM     (16u << 20)
#define CH_LIST_MAX_ENVELOPE (1u << 20)
#define CH_LIST_MAX_BYTES    (256u << 20)

typedef struct ChListSplitter ChListSplitter;

/* One item's text, an object; borrowed. False with @error set ends the list. */
typedef bool (*ChListItemFunc)(gpointer data, const char *text, gsize length, GError **error);

ChListSplitter *ch_list_splitter_new(ChListItemFunc on_item, gpointer data);
void ch_list_splitter_free(ChListSplitter *splitter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChListSplitter, ch_list_splitter_free)

/* False: CH_ERROR_INVALID, CH_ERROR_LIMIT or the item function's error; then only free it. */
bool
ch_list_splitter_feed(ChListSplitter *splitter, const char *bytes, gsize length, GError **error);

/**
 * ch_list_splitter_finish: the answer is complete.
 * @out_version, @out_token: (transfer full) metadata's resourceVersion and continue; "" when absent
 *
 * Returns: false with CH_ERROR_INVALID: half a document, or no list
 */
bool ch_list_splitter_finish(ChListSplitter *splitter,
                             char **out_version,
                             char **out_token,
                             GError **error);
