/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/jsonpatch.h"

#include "lib/base/errors.h"

#include <string.h>

typedef struct {
    ChJson *root; /* owned; never NULL */
    gsize copied_bytes;
    gsize n_touched;
} Target;

static void
target_clear(Target *target)
{
    g_clear_pointer(&target->root, ch_json_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Target, target_clear)

/* -- JSON pointers (RFC 6901) -- */

/* Replaces ~1 and ~0 in place. */
static bool
unescape_step(char *step)
{
    char *to = step;

    for (const char *from = step; *from != '\0'; from++) {
        if (*from != '~') {
            *to++ = *from;
            continue;
        }
        from++;
        if (*from != '0' && *from != '1')
            return false;
        *to++ = *from == '0' ? '~' : '/';
    }
    *to = '\0';
    return true;
}

/* (transfer full): the member names and indices; empty for the whole document; NULL on error */
static GStrv
split_pointer(const char *pointer, GError **error)
{
    g_auto(GStrv) steps = NULL;

    if (*pointer != '\0' && *pointer != '/') {
        ch_fail(error, CH_ERROR_INVALID, "path '%.64s' does not begin with '/'", pointer);
        return NULL;
    }
    steps = g_strsplit(*pointer == '/' ? pointer + 1 : pointer, "/", CH_JSON_MAX_DEPTH + 2);
    if (*pointer == '/' && *steps == NULL) { /* "/": g_strsplit() makes no step of "" */
        g_strfreev(steps);
        steps = g_strsplit("/", "/", 0);
        g_clear_pointer(&steps[1], g_free);
    }
    if (g_strv_length(steps) > CH_JSON_MAX_DEPTH) {
        ch_fail(error, CH_ERROR_LIMIT, "path '%.64s' is too deep", pointer);
        return NULL;
    }
    for (guint i = 0; steps[i] != NULL; i++) {
        if (!unescape_step(steps[i])) {
            ch_fail(error, CH_ERROR_INVALID, "path '%.64s' has a bare '~'", pointer);
            return NULL;
        }
    }
    return g_steal_pointer(&steps);
}

/* Digits without leading zero, at most @max. */
static bool
parse_index(const char *step, gsize max, gsize *out_index)
{
    guint64 index;

    if (step[0] == '0' && step[1] != '\0')
        return false;
    if (!g_ascii_string_to_unsigned(step, 10, 0, max, &index, NULL))
        return false;
    *out_index = index;
    return true;
}

/* Returns: whether there is a value (it may be null) */
static bool
child(const ChJson *parent, const char *step, ChJson **out_value)
{
    const gsize n = ch_json_length(parent);
    gsize index;

    if (ch_json_is_array(parent)) {
        if (n == 0 || !parse_index(step, n - 1, &index))
            return false;
        *out_value = ch_json_item(parent, index);
        return true;
    }
    if (!ch_json_has(parent, step))
        return false;
    *out_value = ch_json_at(parent, step);
    return true;
}

/* The value behind the first @n_steps. */
static bool
walk(ChJson *root, char **steps, guint n_steps, ChJson **out_value)
{
    ChJson *value = root;

    for (guint i = 0; i < n_steps; i++)
        if (!child(value, steps[i], &value))
            return false;
    *out_value = value;
    return true;
}

/* Containers within each other: 0 for a plain value. @n_values: counts what was looked at. */
static guint
depth(const ChJson *json, gsize *n_values)
{
    guint deepest = 0;
    guint below;
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ++*n_values;
    if (!ch_json_is_array(json) && !ch_json_is_object(json))
        return 0;
    for (gsize i = 0; ch_json_is_array(json) && i < ch_json_length(json); i++) {
        below = depth(ch_json_item(json, i), n_values);
        deepest = MAX(deepest, below); /* a macro: a call in it would be made twice */
    }
    ch_json_iter_init(&iter, json);
    while (ch_json_iter_next(&iter, &key, &value)) {
        below = depth(value, n_values);
        deepest = MAX(deepest, below);
    }
    return deepest + 1;
}

/* -- operations on one place -- */

/* Ten thousand operations on a large document take minutes otherwise. */
static bool
touch(Target *target, gsize n_values, GError **error)
{
    target->n_touched += n_values;
    return target->n_touched <= CH_JSONPATCH_MAX_TOUCHED ||
           ch_fail(error, CH_ERROR_LIMIT, "the patch changes too much of the document");
}

static bool
fail_no_place(GError **error)
{
    return ch_fail(error, CH_ERROR_NOT_FOUND, "path does not exist");
}

/* Inserts into @parent, or (@replaces) exchanges what is there. Takes @value. */
static bool
put_child(ChJson *parent, const char *step, ChJson *value, bool replaces, GError **error)
{
    g_autoptr(ChJson) owned = value;
    const gsize n = ch_json_length(parent);
    ChJson *old;
    gsize index = n;

    if (replaces && !child(parent, step, &old))
        return fail_no_place(error);
    if (ch_json_is_object(parent)) {
        ch_json_set(parent, step, g_steal_pointer(&owned));
        return true;
    }
    if (!ch_json_is_array(parent) || (!g_str_equal(step, "-") && !parse_index(step, n, &index)))
        return fail_no_place(error);
    if (replaces)
        ch_json_set_item(parent, index, g_steal_pointer(&owned));
    else
        ch_json_insert_item(parent, index, g_steal_pointer(&owned));
    return true;
}

/* Takes @value. */
static bool
put(Target *target, char **steps, ChJson *value, bool replaces, GError **error)
{
    g_autoptr(ChJson) owned = value;
    const guint n_steps = g_strv_length(steps);
    gsize n_values = 0;
    ChJson *parent;

    if (n_steps + depth(owned, &n_values) > CH_JSON_MAX_DEPTH)
        return ch_fail(error, CH_ERROR_LIMIT, "the document becomes nested too deeply");
    if (n_steps == 0) {
        if (owned == NULL)
            return ch_fail(error, CH_ERROR_INVALID, "the document cannot become null");
        ch_json_unref(target->root);
        target->root = g_steal_pointer(&owned);
        return true;
    }
    if (!walk(target->root, steps, n_steps - 1, &parent))
        return fail_no_place(error);
    if (!touch(target, n_values + ch_json_length(parent), error))
        return false;
    return put_child(parent, steps[n_steps - 1], g_steal_pointer(&owned), replaces, error);
}

/* @out_value: (transfer full) (nullable): what was removed */
static bool
cut(Target *target, char **steps, ChJson **out_value, GError **error)
{
    const guint n_steps = g_strv_length(steps);
    ChJson *parent, *value;
    gsize index;

    if (n_steps == 0)
        return ch_fail(error, CH_ERROR_INVALID, "the whole document cannot be removed");
    if (!walk(target->root, steps, n_steps - 1, &parent) ||
        !child(parent, steps[n_steps - 1], &value))
        return fail_no_place(error);
    if (!touch(target, ch_json_length(parent), error))
        return false;
    *out_value = ch_json_ref(value);
    if (ch_json_is_object(parent))
        ch_json_remove(parent, steps[n_steps - 1]);
    else if (parse_index(steps[n_steps - 1], ch_json_length(parent), &index))
        ch_json_remove_item(parent, index);
    return true;
}

/* -- the six operations -- */

typedef struct {
    const ChJson *json;
    GStrv path;
    GStrv from; /* NULL: the operation has none */
} Operation;

static void
operation_clear(Operation *operation)
{
    g_clear_pointer(&operation->path, g_strfreev);
    g_clear_pointer(&operation->from, g_strfreev);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Operation, operation_clear)

static ChJson *
dup_value(const Operation *operation)
{
    return ch_json_dup(ch_json_at(operation->json, "value"));
}

static bool
apply_add(Target *target, const Operation *operation, GError **error)
{
    return put(target, operation->path, dup_value(operation), false, error);
}

static bool
apply_replace(Target *target, const Operation *operation, GError **error)
{
    return put(target, operation->path, dup_value(operation), true, error);
}

static bool
apply_remove(Target *target, const Operation *operation, GError **error)
{
    g_autoptr(ChJson) removed = NULL;

    return cut(target, operation->path, &removed, error);
}

static bool
is_below(char **path, char **ancestor)
{
    guint i = 0;

    while (ancestor[i] != NULL && path[i] != NULL && g_str_equal(path[i], ancestor[i]))
        i++;
    return ancestor[i] == NULL && path[i] != NULL;
}

static bool
apply_move(Target *target, const Operation *operation, GError **error)
{
    ChJson *moved = NULL;

    if (is_below(operation->path, operation->from))
        return ch_fail(error, CH_ERROR_INVALID, "a value cannot be moved into itself");
    if (g_strv_length(operation->from) == 0) /* onto itself: is_below() refused all else */
        return true;
    return cut(target, operation->from, &moved, error) &&
           put(target, operation->path, moved, false, error);
}

/* Repeated copies of the whole into itself grow exponentially. */
static bool
apply_copy(Target *target, const Operation *operation, GError **error)
{
    g_autofree char *text = NULL;
    gsize length;
    ChJson *value;

    if (!walk(target->root, operation->from, g_strv_length(operation->from), &value))
        return fail_no_place(error);
    text = ch_json_print(value, &length);
    target->copied_bytes += length;
    if (target->copied_bytes > CH_JSONPATCH_MAX_COPIED_BYTES)
        return ch_fail(error, CH_ERROR_LIMIT, "too much is copied");
    return put(target, operation->path, ch_json_dup(value), false, error);
}

static bool
apply_test(Target *target, const Operation *operation, GError **error)
{
    ChJson *value = NULL; /* stays null where nothing is */

    (void)walk(target->root, operation->path, g_strv_length(operation->path), &value);
    if (!ch_json_equal(value, ch_json_at(operation->json, "value")))
        return ch_fail(error, CH_ERROR_FAILED, "the value is another one");
    return true;
}

static const struct OperationKind {
    const char *name;
    bool needs_value;
    bool needs_from;
    bool (*apply)(Target *target, const Operation *operation, GError **error);
} kinds[] = {
    {"add", true, false, apply_add},
    {"remove", false, false, apply_remove},
    {"replace", true, false, apply_replace},
    {"move", false, true, apply_move},
    {"copy", false, true, apply_copy},
    {"test", true, false, apply_test},
};

static const struct OperationKind *
find_kind(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_strcmp0(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static bool
apply_operation(Target *target, const ChJson *json, GError **error)
{
    const struct OperationKind *kind = find_kind(ch_json_string_at(json, "op"));
    const char *path = ch_json_string_at(json, "path");
    const char *from = ch_json_string_at(json, "from");
    g_auto(Operation) operation = {.json = json};

    if (kind == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "unknown or missing 'op'");
    if (path == NULL || (kind->needs_from && from == NULL))
        return ch_fail(error, CH_ERROR_INVALID, "'path' or 'from' is missing");
    if (kind->needs_value && !ch_json_has(json, "value"))
        return ch_fail(error, CH_ERROR_INVALID, "'value' is missing");
    operation.path = split_pointer(path, error);
    if (operation.path == NULL)
        return false;
    if (kind->needs_from) {
        operation.from = split_pointer(from, error);
        if (operation.from == NULL)
            return false;
    }
    return kind->apply(target, &operation, error);
}

ChJson *
ch_jsonpatch_apply(const ChJson *document, const ChJson *patch, GError **error)
{
    g_auto(Target) target = {.root = ch_json_dup(document)};
    const gsize n = ch_json_length(patch);

    if (!ch_json_is_array(patch)) {
        ch_fail(error, CH_ERROR_INVALID, "a JSON patch must be an array");
        return NULL;
    }
    if (n > CH_JSONPATCH_MAX_OPERATIONS) {
        ch_fail(error, CH_ERROR_LIMIT, "a JSON patch of %zu operations is too long", n);
        return NULL;
    }
    for (gsize i = 0; i < n; i++) {
        if (!apply_operation(&target, ch_json_item(patch, i), error)) {
            g_prefix_error(error, "operation %zu of the JSON patch: ", i);
            return NULL;
        }
    }
    return g_steal_pointer(&target.root);
}

/* -- merge patches -- */

static void
merge_into(ChJson *object, const ChJson *patch)
{
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ch_json_iter_init(&iter, patch);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (value == NULL)
            ch_json_remove(object, key);
        else if (ch_json_is_object(value))
            merge_into(ch_json_ensure_object(object, key), value);
        else
            ch_json_set(object, key, ch_json_dup(value));
    }
}

ChJson *
ch_jsonpatch_merge(const ChJson *document, const ChJson *patch)
{
    ChJson *merged;

    if (!ch_json_is_object(patch))
        return ch_json_dup(patch);
    merged = ch_json_is_object(document) ? ch_json_dup(document) : ch_json_new_object();
    merge_into(merged, patch);
    return merged;
}
