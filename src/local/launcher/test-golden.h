/* SPDX-License-Identifier: Apache-2.0 */

/* test-golden: golden files of tests/data/launcher; CH_TEST_REGENERATE=1 writes them anew. */

#pragma once

#include <glib.h>
#include <glib/gstdio.h>

static inline char *
golden_path(const char *file)
{
    const char *root = g_getenv("G_TEST_SRCDIR");

    return g_build_filename(root == NULL ? "." : root, "tests", "data", "launcher", file, NULL);
}

static inline char *
golden_read(const char *file)
{
    g_autofree char *path = golden_path(file);
    g_autoptr(GError) error = NULL;
    char *text = NULL;

    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

static inline void
golden_compare(const char *file, const char *text)
{
    if (g_getenv("CH_TEST_REGENERATE") != NULL) {
        g_autofree char *path = golden_path(file);
        g_autofree char *line = g_strconcat(text, "\n", NULL);

        g_assert_true(g_file_set_contents(path, line, -1, NULL));
    }
    g_autofree char *expected = golden_read(file);
    g_assert_cmpstr(g_strchomp(expected), ==, text);
}
