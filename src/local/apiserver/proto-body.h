/* SPDX-License-Identifier: Apache-2.0 */

/*
 * proto-body: the protobuf form of the few kinds that kubectl's `create KIND` commands send in no
 * other (from 1.31 on): namespaces, config maps, secrets, service accounts.
 *
 * Reads only what those commands can say. A field that is set and not in the tables is an error,
 * never a silent loss. Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

#define CH_PROTO_BODY_TYPE "application/vnd.kubernetes.protobuf"

/* (transfer full): the object; NULL with CH_ERROR_INVALID */
ChJson *ch_proto_body_parse(const uint8_t *bytes, gsize length, GError **error);
