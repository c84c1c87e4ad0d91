/* SPDX-License-Identifier: Apache-2.0 */

/*
 * strategic: Kubernetes' strategic merge patch: a merge patch that knows which lists are keyed.
 *
 * Understands $patch (replace, delete, merge), $deleteFromPrimitiveList, $retainKeys and
 * $setElementOrder as kubectl and client-go send them. Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/resource.h"

/**
 * ch_strategic_merge: changes @target by @patch.
 * @keys: ends with a NULL path
 *
 * Returns: (transfer full) (nullable): what is wrong with the patch; @target is half changed then
 */
char *ch_strategic_merge(const ChMergeKey *keys, ChJson *target, const ChJson *patch);
