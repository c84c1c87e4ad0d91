/* SPDX-License-Identifier: Apache-2.0 */

/*
 * manifest: Kubernetes objects out of YAML (and JSON, which is YAML), with the lines they came
 * from.
 *
 * Plain scalars mean what they mean to kubectl: YAML 1.1's booleans and integers, numbers keep
 * their text. A tag like !!str on one is not seen: quotes say what a text is. Limits:
 * CH_MANIFEST_MAX_BYTES, CH_JSON_MAX_DEPTH, CH_MANIFEST_MAX_NODES (aliases count each time). Pure,
 * but load. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

#define CH_MANIFEST_MAX_BYTES (16u << 20)
#define CH_MANIFEST_MAX_NODES 200000u

typedef struct {
    ChJson *object; /* has apiVersion, kind and metadata.name */
    char *file;     /* owned: which it came from, for messages */
    gsize line;     /* where in it it begins, from 1 */
} ChManifest;

/**
 * ch_manifest_parse:
 * @name: of the file, for messages
 *
 * Returns: (transfer full) (element-type ChManifest): NULL with CH_ERROR_INVALID or CH_ERROR_LIMIT;
 * the message begins with "NAME:LINE: "
 */
GArray *ch_manifest_parse(const char *text, gsize length, const char *name, GError **error);

/* Blocks: reads the file; "-" is stdin. */
GArray *ch_manifest_load(const char *path, GError **error);
