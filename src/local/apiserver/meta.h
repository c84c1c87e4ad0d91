/* SPDX-License-Identifier: Apache-2.0 */

/*
 * meta: the rules of object metadata: what a new object gets, what an update may change, when a
 * deleted object is really gone.
 *
 * Pure but for random names and UIDs. Thread: the owner's.
 */

#pragma once

#include "local/apiserver/status.h"

/* Which part of an object a request is about. */
typedef enum {
    CH_PART_MAIN,
    CH_PART_STATUS,
} ChPart;

/**
 * ch_meta_prepare_create: makes @object, as its maker sent it, fit to be stored: name, UID, times,
 * first status.
 * @namespace_: (nullable): of the URL
 * @keeps_given: UID and status stay as given
 */
ChRefusal *ch_meta_prepare_create(const ChResource *resource,
                                  ChJson *object,
                                  const char *namespace_,
                                  bool keeps_given,
                                  int64_t now_us);

/* (transfer full): what a write of @sent to /status means: @old with that status. */
ChJson *ch_meta_with_status(const ChJson *old, const ChJson *sent);

/**
 * ch_meta_prepare_update: makes @object, as sent, the successor of @old.
 * Returns: (transfer full) (nullable): 409 when somebody was faster
 */
ChRefusal *
ch_meta_prepare_update(const ChResource *resource, const ChJson *old, ChJson *object, ChPart part);

/* Parts of DeleteOptions. */
typedef struct {
    const char *uid;              /* (nullable): precondition */
    const char *resource_version; /* (nullable): precondition */
    int64_t grace_s;              /* -1: the object's own */
} ChDeleteOptions;

/**
 * ch_meta_prepare_delete: marks @object as being deleted.
 * Returns: (transfer full) (nullable): 409 for a precondition
 */
ChRefusal *ch_meta_prepare_delete(const ChResource *resource,
                                  ChJson *object,
                                  const ChDeleteOptions *options,
                                  int64_t now_us);

/* Being deleted, and nobody holds it any more. */
bool ch_meta_is_gone(const ChJson *object);

const char *ch_meta_name(const ChJson *object);      /* (transfer none): "" when there is none */
const char *ch_meta_namespace(const ChJson *object); /* (transfer none): "" when there is none */
void ch_meta_set_revision(ChJson *object, int64_t revision);
