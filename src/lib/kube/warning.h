/* SPDX-License-Identifier: Apache-2.0 */

/*
 * warning: the text of a `Warning` header: `299 - "unknown field \"spec.x\""`. Pure. Thread: any.
 * Spec: RFC 7234 §5.5, as Kubernetes uses it.
 */

#pragma once

#include <glib.h>

#define CH_KUBE_MAX_WARNING 512 /* bytes; the rest is cut off */

/* (transfer full) (nullable): without control characters; NULL: no warning of code 299 */
char *ch_kube_warning_text(const char *header);
