/* SPDX-License-Identifier: Apache-2.0 */

/*
 * discovery: what a client asks to find out which kinds there are. Made from the resource table.
 * Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/status.h"

/**
 * ch_discovery_answer:
 * @segments: of the path: {"api"}, {"apis", "kubevirt.io", "v1"}, {"version"}, ...
 *
 * Returns: (transfer full) (nullable): the document; NULL: there is none at this path
 */
ChJson *ch_discovery_answer(const char *const *segments);

/* A minimal OpenAPI v2 document in the protobuf form that kubectl up to 1.2x insists on. */
GBytes *ch_discovery_openapi_protobuf(void);
/* as servers write it: what clients ask for has an `@`, which no media type may have */
#define CH_OPENAPI_PROTOBUF_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
