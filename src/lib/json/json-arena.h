/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-arena: the memory of one parsed or copied tree, in a few pieces; for json*.c only.
 *
 * A value in an arena is counted as every value is, and when nobody holds it any more it only
 * lowers the arena's count; the pieces are freed together with the last. So a small part that is
 * kept (or moved into another tree) keeps the memory of all: dup what is to be kept for long.
 * Thread: the tree's.
 */

#pragma once

#include "lib/json/json-internal.h"

/* @expected: bytes that will be wanted, roughly. The caller holds it as if it were a value. */
ChJsonArena *ch_json_arena_new(gsize expected);

/* Bytes that live as long as the arena, aligned as a pointer. */
void *ch_json_arena_alloc(ChJsonArena *arena, gsize n_bytes);

/* (transfer full): a value of @n_bytes in all, whose head is set */
ChJson *ch_json_arena_value(ChJsonArena *arena, ChJsonKind kind, gsize n_bytes);

/* One value less, or the maker's hold. */
void ch_json_arena_release(ChJsonArena *arena);

/* Gives up the memory of a value that nobody holds; @json: not NULL, of @n_bytes. */
void ch_json_value_free(ChJson *json, gsize n_bytes);
