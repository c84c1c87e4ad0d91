/* SPDX-License-Identifier: Apache-2.0 */

/*
 * patch: the patch of a request, by its content type, applied to an object. Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/status.h"

/**
 * ch_patch_apply:
 * @content_type: (nullable): of the request, with or without parameters
 * @out_object: (out) (transfer full): @current with the patch applied
 *
 * Returns: (transfer full) (nullable): 400 (no patch), 415 (kind of patch), 422 (does not apply)
 */
ChRefusal *ch_patch_apply(const ChResource *resource,
                          const char *content_type,
                          const uint8_t *body,
                          gsize length,
                          const ChJson *current,
                          ChJson **out_object);
