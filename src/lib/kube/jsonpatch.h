/* SPDX-License-Identifier: Apache-2.0 */

/*
 * jsonpatch: RFC 6902 JSON patches and RFC 7386 merge patches, applied losslessly.
 *
 * Pure. Thread: the documents' owner's.
 */

#pragma once

#include "lib/json/json.h"

#define CH_JSONPATCH_MAX_OPERATIONS   10000
#define CH_JSONPATCH_MAX_COPIED_BYTES (3u << 20) /* by `copy`, all together */
/* Values that all operations together may look at or shift: some 0.3 s. */
#define CH_JSONPATCH_MAX_TOUCHED (8u << 20)

/**
 * ch_jsonpatch_apply: RFC 6902.
 * @document: is not changed
 * @patch: array of operations: all are applied, or none
 *
 * As in Kubernetes, `test` with the value null also holds where nothing is.
 *
 * Returns: (transfer full): the new document; NULL with CH_ERROR_INVALID (malformed patch, or one
 * that would make the document null), CH_ERROR_NOT_FOUND (a path leads nowhere), CH_ERROR_FAILED (a
 * `test` does not hold), CH_ERROR_LIMIT (too many operations, too much copied or moved, too deeply
 * nested)
 */
ChJson *ch_jsonpatch_apply(const ChJson *document, const ChJson *patch, GError **error);

/**
 * ch_jsonpatch_merge: RFC 7386.
 * @document: (nullable): is not changed
 * @patch: an object's members are merged, null removes; anything else replaces the document
 *
 * Returns: (transfer full): the new document; it cannot fail
 */
ChJson *ch_jsonpatch_merge(const ChJson *document, const ChJson *patch);
