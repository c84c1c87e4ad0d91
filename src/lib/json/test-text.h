/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-text: documents in tests; double quotes may be written as single ones. Included by test-*.c
 * only.
 */

#pragma once

#include "lib/json/json.h"

/* (transfer full) */
static inline G_GNUC_UNUSED char *
double_quoted(const char *text)
{
    return g_strdelimit(g_strdup(text), "'", '"');
}

static inline G_GNUC_UNUSED ChJson *
parse_json(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *quoted = double_quoted(text);
    ChJson *json = ch_json_parse(quoted, -1, &error);

    g_assert_no_error(error);
    return json;
}

/* Prints both when they differ. */
static inline G_GNUC_UNUSED void
assert_json(const ChJson *actual, const char *expected)
{
    g_autoptr(ChJson) wanted = parse_json(expected);
    g_autofree char *actual_text = actual != NULL ? ch_json_print(actual, NULL) : g_strdup("none");

    if (actual == NULL || !ch_json_equal(actual, wanted))
        g_error("wanted %s, got %s", expected, actual_text);
}
