/* SPDX-License-Identifier: Apache-2.0 */

/*
 * status: the `Status` objects with which a Kubernetes API server says no (or a plain yes).
 *
 * A refusal is an outcome, not a GError: functions of this room that can be refused return
 * (transfer full) (nullable) ChRefusal *, NULL meaning "go on". Shapes as k8s.io/apimachinery's
 * pkg/api/errors makes them. Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/resource.h"

typedef struct {
    int code;          /* HTTP */
    int retry_after_s; /* 0: no Retry-After header */
    ChJson *body;      /* owned: the Status object */
} ChRefusal;

void ch_refusal_free(ChRefusal *refusal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChRefusal, ch_refusal_free)

/* Any code; reason "" for none. */
ChRefusal *ch_refusal_new(int code, const char *reason, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
ChRefusal *ch_refuse_bad_request(const char *format, ...) G_GNUC_PRINTF(1, 2);
ChRefusal *ch_refuse_not_found(const ChResource *resource, const char *name);
ChRefusal *ch_refuse_no_route(void);
ChRefusal *ch_refuse_exists(const ChResource *resource, const char *name);
ChRefusal *ch_refuse_conflict(const ChResource *resource, const char *name, const char *why);
ChRefusal *ch_refuse_forbidden(const ChResource *resource, const char *name, const char *why);
ChRefusal *ch_refuse_method(void);
/* @causes: (element-type ChCause), at least one */
ChRefusal *ch_refuse_invalid(const ChResource *resource, const char *name, GPtrArray *causes);
ChRefusal *ch_refuse_media_type(const char *accepted);
/* A patch that is well-formed but cannot be applied. */
ChRefusal *ch_refuse_patch(const char *why);
ChRefusal *ch_refuse_expired(int64_t wanted, int64_t oldest);
ChRefusal *ch_refuse_too_new(int64_t wanted, int64_t current);
ChRefusal *ch_refuse_unauthorized(void);
ChRefusal *ch_refuse_too_large(gsize limit_bytes);
ChRefusal *ch_refuse_internal(const GError *error);

/* (transfer full): `Success`, as DELETE answers it. */
ChJson *ch_status_deleted(const ChResource *resource, const char *name, const char *uid);
