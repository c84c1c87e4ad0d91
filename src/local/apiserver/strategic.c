/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/strategic.h"

#include <string.h>

#define DIRECTIVE     "$patch"
#define RETAIN_KEYS   "$retainKeys"
#define DELETE_PREFIX "$deleteFromPrimitiveList/"
#define ORDER_PREFIX  "$setElementOrder/"
/* Looking for items is quadratic: so much of it takes some 0.2 s, and no real patch needs it. */
#define MAX_COMPARISONS (4u << 20)

typedef struct {
    const ChMergeKey *keys; /* ends with a NULL path */
    gsize n_left;           /* of MAX_COMPARISONS */
    bool is_exhausted;
} Merge;

static char *merge_object(Merge *merge, const char *path, ChJson *target, const ChJson *patch);

/* (nullable): the key by which the list at @path is merged; NULL: it is replaced */
static const char *
merge_key(const Merge *merge, const char *path)
{
    for (const ChMergeKey *row = merge->keys; row->path != NULL; row++) {
        if (g_str_equal(row->path, path))
            return row->key;
    }
    return NULL;
}

static bool
same_value(const ChJson *a, const ChJson *b)
{
    return a != NULL && b != NULL && ch_json_equal(a, b);
}

/* Where in @list the item is that has @item's key (or, for sets, that equals it); -1: nowhere */
static gssize
find_item(Merge *merge, const ChJson *list, const ChJson *item, const char *key)
{
    const gsize n = ch_json_length(list);

    merge->is_exhausted = merge->is_exhausted || n > merge->n_left;
    if (merge->is_exhausted)
        return -1;
    merge->n_left -= n;
    for (gsize i = 0; i < n; i++) {
        const ChJson *other = ch_json_item(list, i);

        if (*key == '\0' ? same_value(other, item)
                         : same_value(ch_json_at(other, key), ch_json_at(item, key)))
            return (gssize)i;
    }
    return -1;
}

/* Whether an object of a patch says `"$patch": WORD`. */
static bool
is_directive(const ChJson *patch, const char *word)
{
    return g_strcmp0(ch_json_string_at(patch, DIRECTIVE), word) == 0;
}

/* (transfer full): @patch without its directives, for a place where nothing was. */
static ChJson *
without_directives(const ChJson *patch)
{
    ChJson *copy;
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    if (ch_json_is_array(patch)) {
        copy = ch_json_new_array();
        for (gsize i = 0; i < ch_json_length(patch); i++) {
            const ChJson *item = ch_json_item(patch, i);

            if (!is_directive(item, "delete") && !is_directive(item, "replace"))
                ch_json_append(copy, without_directives(item));
        }
        return copy;
    }
    if (!ch_json_is_object(patch))
        return ch_json_dup(patch);
    copy = ch_json_new_object();
    ch_json_iter_init(&iter, patch);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (*key != '$' && value != NULL)
            ch_json_set(copy, key, without_directives(value));
    }
    return copy;
}

static char *
merge_item(Merge *merge, const char *path, const char *key, ChJson *list, const ChJson *item)
{
    gssize at;

    if (*key != '\0' && ch_json_at(item, key) == NULL)
        return g_strdup_printf("%s: an item of the patch has no merge key '%s'", path, key);
    at = find_item(merge, list, item, key);
    if (is_directive(item, "delete")) {
        if (at >= 0)
            ch_json_remove_item(list, (gsize)at);
        return NULL;
    }
    if (at < 0) {
        ch_json_append(list, without_directives(item));
        return NULL;
    }
    return *key == '\0' ? NULL : merge_object(merge, path, ch_json_item(list, (gsize)at), item);
}

static void
clear_list(ChJson *list)
{
    while (ch_json_length(list) > 0)
        ch_json_remove_item(list, ch_json_length(list) - 1);
}

/* A whole-list replacement: [{"$patch": "replace"}, item...] */
static bool
wants_replacement(const ChJson *patch)
{
    for (gsize i = 0; i < ch_json_length(patch); i++) {
        if (is_directive(ch_json_item(patch, i), "replace"))
            return true;
    }
    return false;
}

static char *
merge_list(Merge *merge, const char *path, const char *key, ChJson *list, const ChJson *patch)
{
    const bool replaces = wants_replacement(patch);

    if (replaces)
        clear_list(list);
    for (gsize i = 0; i < ch_json_length(patch); i++) {
        const ChJson *item = ch_json_item(patch, i);
        char *complaint;

        if (is_directive(item, "replace"))
            continue;
        complaint = merge_item(merge, path, key, list, item);
        if (complaint != NULL)
            return complaint;
    }
    return NULL;
}

static void
delete_primitives(Merge *merge, ChJson *list, const ChJson *values)
{
    for (gsize i = 0; i < ch_json_length(values); i++) {
        gssize at;

        while ((at = find_item(merge, list, ch_json_item(values, i), "")) >= 0)
            ch_json_remove_item(list, (gsize)at);
    }
}

/* Moves the items that @order names to the front, in that order. */
static void
apply_order(Merge *merge, ChJson *object, const char *member, const ChJson *order, const char *key)
{
    ChJson *list = ch_json_at(object, member);
    g_autoptr(ChJson) rest = NULL;
    ChJson *ordered;

    if (!ch_json_is_array(list) || key == NULL)
        return;
    rest = ch_json_dup(list);
    ordered = ch_json_new_array();
    for (gsize i = 0; i < ch_json_length(order); i++) {
        const gssize at = find_item(merge, rest, ch_json_item(order, i), key);

        if (at < 0)
            continue;
        ch_json_append(ordered, ch_json_dup(ch_json_item(rest, (gsize)at)));
        ch_json_remove_item(rest, (gsize)at);
    }
    for (gsize i = 0; i < ch_json_length(rest); i++)
        ch_json_append(ordered, ch_json_dup(ch_json_item(rest, i)));
    ch_json_set(object, member, ordered);
}

static void
retain_keys(Merge *merge, ChJson *target, const ChJson *names)
{
    g_autoptr(ChJson) before = ch_json_dup(target);
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ch_json_iter_init(&iter, before);
    while (ch_json_iter_next(&iter, &key, &value)) {
        g_autoptr(ChJson) name = ch_json_new_string(key);

        if (find_item(merge, names, name, "") < 0)
            ch_json_remove(target, key);
    }
}

static char *
merge_member(
    Merge *merge, const char *path, ChJson *target, const char *member, const ChJson *value)
{
    g_autofree char *below = g_strconcat(path, *path != '\0' ? "." : "", member, NULL);
    const char *key = merge_key(merge, below);
    ChJson *old = ch_json_at(target, member);

    if (value == NULL) {
        ch_json_remove(target, member);
    } else if (ch_json_is_object(value) && ch_json_is_object(old)) {
        if (is_directive(value, "delete"))
            ch_json_remove(target, member);
        else
            return merge_object(merge, below, old, value);
    } else if (ch_json_is_array(value) && ch_json_is_array(old) && key != NULL) {
        return merge_list(merge, below, key, old, value);
    } else if (!is_directive(value, "delete")) {
        ch_json_set(target, member, without_directives(value));
    }
    return NULL;
}

/* Directives that stand beside the members that they are about. Their value is a list. */
static char *
apply_directive(
    Merge *merge, const char *path, ChJson *target, const char *directive, const ChJson *value)
{
    if (g_str_equal(directive, DIRECTIVE))
        return NULL; /* merge_object() saw to it */
    if (!ch_json_is_array(value))
        return g_strdup_printf("%s: '%s' must be a list", path, directive);
    if (g_str_has_prefix(directive, DELETE_PREFIX)) {
        delete_primitives(merge, ch_json_at(target, directive + strlen(DELETE_PREFIX)), value);
    } else if (g_str_has_prefix(directive, ORDER_PREFIX)) {
        const char *member = directive + strlen(ORDER_PREFIX);
        g_autofree char *below = g_strconcat(path, *path != '\0' ? "." : "", member, NULL);

        apply_order(merge, target, member, value, merge_key(merge, below));
    } else if (g_str_equal(directive, RETAIN_KEYS)) {
        retain_keys(merge, target, value);
    } else {
        return g_strdup_printf("%s: '%s' is no directive", path, directive);
    }
    return NULL;
}

static char *
merge_object(Merge *merge, const char *path, ChJson *target, const ChJson *patch)
{
    const char *directive = ch_json_string_at(patch, DIRECTIVE);
    ChJsonIter iter;
    const char *key;
    ChJson *value;
    char *complaint = NULL;

    if (is_directive(patch, "replace"))
        retain_keys(merge, target, NULL);
    else if (directive != NULL && !g_str_equal(directive, "merge"))
        return g_strdup_printf("%s: \"%s\" is no value of " DIRECTIVE " here", path, directive);
    ch_json_iter_init(&iter, patch);
    while (complaint == NULL && ch_json_iter_next(&iter, &key, &value)) {
        if (*key != '$')
            complaint = merge_member(merge, path, target, key, value);
    }
    ch_json_iter_init(&iter, patch);
    while (complaint == NULL && ch_json_iter_next(&iter, &key, &value)) {
        if (*key == '$')
            complaint = apply_directive(merge, path, target, key, value);
    }
    return complaint;
}

char *
ch_strategic_merge(const ChMergeKey *keys, ChJson *target, const ChJson *patch)
{
    Merge merge = {.keys = keys, .n_left = MAX_COMPARISONS};
    char *complaint = merge_object(&merge, "", target, patch);

    return complaint == NULL && merge.is_exhausted
               ? g_strdup("the lists of the patch and of the object are too long to be merged")
               : complaint;
}
