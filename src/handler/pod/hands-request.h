/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hands-request: what the modules of this room share in asking the hands. Thread: any.
 */

#pragma once

#include "handler/hands/client.h"

/* A request about the pod with this UID; CH_ERROR_INVALID when it cannot be a pod's. */
bool ch_hands_request_for_uid(ChHandsRequest *out_request,
                              ChHandsOp op,
                              const char *pod_uid,
                              GError **error);
