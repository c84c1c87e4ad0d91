/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/last-lines.h"

struct ChLastLines {
    GHashTable *hashes; /* VMI UID (owned) -> hash of its line: a few bytes a VM do */
};

ChLastLines *
ch_last_lines_new(void)
{
    ChLastLines *lines = g_new0(ChLastLines, 1);

    lines->hashes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return lines;
}

void
ch_last_lines_free(ChLastLines *lines)
{
    if (lines == NULL)
        return;
    g_hash_table_unref(lines->hashes);
    g_free(lines);
}

bool
ch_last_lines_is_news(ChLastLines *lines, const char *uid, const char *line)
{
    const gpointer hash = GUINT_TO_POINTER(g_str_hash(line));
    gpointer last;

    if (g_hash_table_lookup_extended(lines->hashes, uid, NULL, &last) && last == hash)
        return false;
    g_hash_table_replace(lines->hashes, g_strdup(uid), hash);
    return true;
}

void
ch_last_lines_forget(ChLastLines *lines, const char *uid)
{
    g_hash_table_remove(lines->hashes, uid);
}
