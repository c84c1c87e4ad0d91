/* SPDX-License-Identifier: Apache-2.0 */

/*
 * token-source: the bearer token, re-read from its file now and then. Spec 01 §2.1.
 *
 * A token that was read is used for 50 s. A read that fails keeps the old token. The clock is a
 * parameter. Thread: the owner's. Blocks: reads a small file.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ChTokenSource ChTokenSource;

/* @fixed, @file: (nullable); the file wins. Without both there is no token. */
ChTokenSource *ch_token_source_new(const char *fixed, const char *file);
void ch_token_source_free(ChTokenSource *source);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChTokenSource, ch_token_source_free)

/* Reads the file now. False: it is unreadable or holds no token. True without a file. */
bool ch_token_source_load(ChTokenSource *source, int64_t now_us, GError **error);
/* The token to send, or NULL. Borrowed until the next call. */
const char *ch_token_source_get(ChTokenSource *source, int64_t now_us);
/* A request that started at @started_us was answered by 401: a token read before that is read anew
 * at the next get. */
void ch_token_source_refused(ChTokenSource *source, int64_t started_us);
