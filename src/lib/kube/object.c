/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/object.h"

#include <stdatomic.h>
#include <stddef.h>

#include "lib/base/errors.h"

#define NAME_MAX_BYTES 253 /* of a DNS subdomain: the longest name that the API allows */

typedef struct {
    atomic_uint refs; /* C11's, not GLib's: ThreadSanitizer sees them */
    ChObject public;
    char bytes[]; /* what the members of `public` point to */
} Block;

static Block *
block_of(ChObject *object)
{
    return (Block *)(void *)((char *)object - offsetof(Block, public));
}

static bool
is_usable_name(const char *name)
{
    return *name != '\0' && strlen(name) <= NAME_MAX_BYTES && strchr(name, '/') == NULL;
}

static char *
make_key(const ChJson *json, GError **error)
{
    const char *name = ch_json_string_at(json, "metadata", "name");
    const char *namespace_ = ch_json_string_at(json, "metadata", "namespace");

    if (name == NULL || !is_usable_name(name)) {
        ch_fail(error, CH_ERROR_INVALID, "an object without a usable name");
        return NULL;
    }
    if (namespace_ == NULL || *namespace_ == '\0')
        return g_strdup(name);
    if (!is_usable_name(namespace_)) {
        ch_fail(error, CH_ERROR_INVALID, "object '%s' without a usable namespace", name);
        return NULL;
    }
    return g_strdup_printf("%s/%s", namespace_, name);
}

/* Copies @length bytes and a NUL behind *cursor. */
static char *
put(char **cursor, const char *bytes, gsize length)
{
    char *start = *cursor;

    memcpy(start, bytes, length);
    start[length] = '\0';
    *cursor += length + 1;
    return start;
}

static ChObject *
build(const char *key, const char *uid, const char *version, const char *text, gsize length)
{
    const gsize n_bytes = strlen(key) + strlen(uid) + strlen(version) + length + 4;
    Block *block = g_malloc(sizeof(Block) + n_bytes);
    char *cursor = block->bytes;

    atomic_init(&block->refs, 1);
    block->public.key = put(&cursor, key, strlen(key));
    block->public.uid = put(&cursor, uid, strlen(uid));
    block->public.resource_version = put(&cursor, version, strlen(version));
    block->public.text = put(&cursor, text, length);
    block->public.length = length;
    return &block->public;
}

static void
fill_in(ChJson *json, const char *member, const char *value)
{
    const char *present = ch_json_string_at(json, member);

    if (present == NULL || *present == '\0')
        ch_json_set_string(json, member, value);
}

ChObject *
ch_object_new(ChJson *json, const char *api_version, const char *kind, GError **error)
{
    g_autofree char *key = make_key(json, error);
    g_autofree char *text = NULL;
    const char *uid, *version;
    gsize length;

    if (key == NULL)
        return NULL;
    ch_json_remove(ch_json_at(json, "metadata"), "managedFields");
    fill_in(json, "apiVersion", api_version);
    fill_in(json, "kind", kind);
    uid = ch_json_string_at(json, "metadata", "uid");
    version = ch_json_string_at(json, "metadata", "resourceVersion");
    text = ch_json_print(json, &length);
    return build(key, uid != NULL ? uid : "", version != NULL ? version : "", text, length);
}

ChObject *
ch_object_ref(ChObject *object)
{
    atomic_fetch_add_explicit(&block_of(object)->refs, 1, memory_order_relaxed);
    return object;
}

void
ch_object_unref(ChObject *object)
{
    if (object == NULL)
        return;
    if (atomic_fetch_sub_explicit(&block_of(object)->refs, 1, memory_order_acq_rel) == 1)
        g_free(block_of(object));
}

bool
ch_object_is_same_state(const ChObject *a, const ChObject *b)
{
    return *a->uid != '\0' && *a->resource_version != '\0' && g_str_equal(a->uid, b->uid) &&
           g_str_equal(a->resource_version, b->resource_version);
}
