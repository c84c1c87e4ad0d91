/* SPDX-License-Identifier: Apache-2.0 */

/*
 * selector: which objects of a collection are meant: label and field selectors, as in the URLs of
 * the API.
 *
 * Pure. Thread: any (a selector does not change).
 */

#pragma once

#include "lib/json/json.h"

#define CH_SELECTOR_MAX_TEXT 16384

typedef struct ChSelector ChSelector;

/**
 * ch_selector_parse_labels:
 * @text: requirements parted by commas, all must hold: `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a
 * notin (x,y)`, `a` (is there), `!a` (is not there); empty: everything matches. Keys and values
 * must be valid labels. `a!=b` and `notin` also match objects without the label.
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID or CH_ERROR_LIMIT
 */
ChSelector *ch_selector_parse_labels(const char *text, GError **error);

/**
 * ch_selector_parse_fields:
 * @text: `metadata.name=x`, `==`, `!=`, parted by commas; `\` takes `,`, `=` and `\` in a value
 * literally
 *
 * A field that is absent, null or a container counts as empty; numbers and booleans as their JSON
 * text. Which fields a collection supports is the caller's business (ch_selector_key()).
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID or CH_ERROR_LIMIT
 */
ChSelector *ch_selector_parse_fields(const char *text, GError **error);

void ch_selector_free(ChSelector *selector);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChSelector, ch_selector_free)

/* @object: a whole object with metadata.labels; for label and field selectors alike */
bool ch_selector_matches(const ChSelector *selector, const ChJson *object);
/* @labels: (nullable): for label selectors */
bool ch_selector_matches_labels(const ChSelector *selector, const ChJson *labels);

/* The key of requirement @index, borrowed; NULL behind the last one. */
const char *ch_selector_key(const ChSelector *selector, guint index);
