/* SPDX-License-Identifier: Apache-2.0 */

/*
 * object: one object of the API as text, with the few members that caches need beside it.
 *
 * Counted and immutable, so any thread may hold and read it. One allocation an object. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

typedef struct {
    char *key; /* "namespace/name" or "name" */
    char *uid;
    char *resource_version;
    char *text; /* the whole object, compact JSON; apiVersion and kind always present */
    gsize length;
} ChObject;

/**
 * ch_object_new:
 * @json: borrowed; edited: loses metadata.managedFields, gains apiVersion and kind where they lack
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID: no usable name or namespace
 */
ChObject *ch_object_new(ChJson *json, const char *api_version, const char *kind, GError **error);
ChObject *ch_object_ref(ChObject *object);
void ch_object_unref(ChObject *object); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChObject, ch_object_unref)

/* The same state of the same object (equal, non-empty UID and resource version). */
bool ch_object_is_same_state(const ChObject *a, const ChObject *b);
