/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/image-content.h"

#include <stdbool.h>
#include <string.h>

#define MAX_NAMES 8

/* "./disk/a.img" and "/disk/a.img" are "disk/a.img". */
static const char *
without_root(const char *path)
{
    while (g_str_has_prefix(path, "./") || *path == '/')
        path += *path == '/' ? 1 : 2;
    return path;
}

/* "a/b/" and "a/b" become "a/"; "a/" becomes "", which is the root. */
static void
go_up(char *dir)
{
    const gsize length = strlen(dir);
    char *slash;

    if (length > 0 && dir[length - 1] == '/')
        dir[length - 1] = '\0';
    slash = strrchr(dir, '/');
    *(slash != NULL ? slash + 1 : dir) = '\0';
}

/* (transfer full) (element-type utf8): names directly in @dir ("boot/", ""), each once;
 * directories with a slash. NULL: there is no such directory */
static GHashTable *
names_in(char *const *members, const char *dir)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const gsize n_dir = strlen(dir);
    bool is_there = n_dir == 0;

    for (gsize i = 0; members[i] != NULL; i++) {
        const char *path = without_root(members[i]);
        gsize n_name;

        if (strncmp(path, dir, n_dir) != 0)
            continue;
        is_there = true;
        path += n_dir;
        n_name = strcspn(path, "/");
        if (n_name > 0)
            g_hash_table_add(names, g_strndup(path, n_name + (path[n_name] == '/')));
    }
    return is_there ? g_steal_pointer(&names) : NULL;
}

static void
append_names(GString *text, GHashTable *names)
{
    g_autoptr(GList) list = g_list_sort(g_hash_table_get_keys(names), (GCompareFunc)strcmp);
    const guint n_names = g_hash_table_size(names);
    guint n = 0;

    for (const GList *item = list; item != NULL && n < MAX_NAMES; item = item->next)
        g_string_append_printf(text, "%s%s", n++ > 0 ? ", " : "", (const char *)item->data);
    if (n_names > MAX_NAMES)
        g_string_append_printf(text, " and %u more", n_names - MAX_NAMES);
    if (n_names == 0)
        g_string_append(text, "nothing");
}

char *
ch_image_content_describe(const char *listing, const char *wanted)
{
    const bool is_dir = g_str_has_suffix(wanted, "/");
    g_auto(GStrv) members = g_strsplit(listing, "\n", -1);
    g_autofree char *dir = g_strdup(without_root(wanted));
    g_autoptr(GHashTable) names = NULL;
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_append_printf(
        text,
        is_dir ? "it has no file in %s, where a disk is looked for unless the volume's "
                 "'path' names it; /"
               : "it has no file '%s'; /",
        wanted);
    if (!is_dir)
        go_up(dir);
    while ((names = names_in(members, dir)) == NULL)
        go_up(dir);
    g_string_append_len(text, dir, *dir != '\0' ? (gssize)strlen(dir) - 1 : 0);
    g_string_append(text, " has ");
    append_names(text, names);
    return g_utf8_make_valid(text->str, (gssize)text->len);
}
