/* SPDX-License-Identifier: Apache-2.0 */

/*
 * select: which objects a list or a watch is about: a label and a field selector together.
 *
 * Pure. Thread: the owner's.
 */

#pragma once

#include "local/apiserver/status.h"

typedef struct ChSelect ChSelect;

/**
 * ch_select_parse:
 * @labels: (nullable): text of labelSelector; @fields: (nullable): text of fieldSelector
 * @out_select: (out) (transfer full)
 *
 * Returns: (transfer full) (nullable): 400, also for a field that this kind cannot be selected by
 */
ChRefusal *ch_select_parse(const ChResource *resource,
                           const char *labels,
                           const char *fields,
                           ChSelect **out_select);
void ch_select_free(ChSelect *select);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChSelect, ch_select_free)

/* Selects everything: objects need not be looked at to know. */
bool ch_select_is_all(const ChSelect *select);
/* @object: whole, or its traits */
bool ch_select_matches(const ChSelect *select, const ChJson *object);

/* (transfer full): only what selectors can ask of @object, at the same places. */
ChJson *ch_select_traits(const ChResource *resource, const ChJson *object);
