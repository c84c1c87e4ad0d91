/* SPDX-License-Identifier: Apache-2.0 */

/*
 * api-status: the API server's `Status` objects as errors. Spec 01 §2, §3.3, 3.4.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

/* The code is the HTTP status of the answer, or the code in the Status of a watch's ERROR event;
 * the message is the Status object's message, or else the body's first bytes. */
#define CH_KUBE_ERROR (ch_kube_error_quark())
GQuark ch_kube_error_quark(void);

/* The Status object's reason ("Expired", "Conflict", "NotFound", ...), or "" where there was none
 * or @error is of another domain. Borrowed from @error. */
const char *ch_kube_error_reason(const GError *error);
/* The resource version that was asked for is not known here anymore: 410, reason Expired or Gone.
 */
bool ch_kube_error_is_expired(const GError *error);
/* ... or not yet ("too large resource version"). */
bool ch_kube_error_is_too_large_version(const GError *error);

/**
 * ch_kube_error_from_answer:
 * @http_status: of the answer
 * @body: its body; any bytes
 *
 * Returns: (transfer full): CH_KUBE_ERROR
 */
GError *ch_kube_error_from_answer(int http_status, const char *body, gsize length);

struct ChJson;
/* (transfer full): CH_KUBE_ERROR of a Status object that came as an event; 500 when it is none. */
GError *ch_kube_error_from_status(const struct ChJson *status);
