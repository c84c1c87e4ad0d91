/* SPDX-License-Identifier: Apache-2.0 */

/*
 * status: gRPC status codes, and what HTTP and HTTP/2 failures become (spec 03 §3.4).
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Code is the gRPC status (1 Canceled ... 16 Unauthenticated); message is grpc-message, or the
 * local text. A peer may send a number that has no name here. */
#define CH_GRPC_ERROR (ch_grpc_error_quark())
GQuark ch_grpc_error_quark(void);

typedef enum {
    CH_GRPC_OK = 0,
    CH_GRPC_CANCELED = 1,
    CH_GRPC_UNKNOWN = 2,
    CH_GRPC_INVALID_ARGUMENT = 3,
    CH_GRPC_DEADLINE_EXCEEDED = 4,
    CH_GRPC_NOT_FOUND = 5,
    CH_GRPC_ALREADY_EXISTS = 6,
    CH_GRPC_PERMISSION_DENIED = 7,
    CH_GRPC_RESOURCE_EXHAUSTED = 8,
    CH_GRPC_FAILED_PRECONDITION = 9,
    CH_GRPC_ABORTED = 10,
    CH_GRPC_OUT_OF_RANGE = 11,
    CH_GRPC_UNIMPLEMENTED = 12,
    CH_GRPC_INTERNAL = 13,
    CH_GRPC_UNAVAILABLE = 14,
    CH_GRPC_DATA_LOSS = 15,
    CH_GRPC_UNAUTHENTICATED = 16,
} ChGrpcStatus;

/* "Unavailable", as grpc-go spells it in "rpc error: code = Unavailable desc = ..."; "Unknown" for
 * a number without a name. Static storage. */
const char *ch_grpc_status_name(ChGrpcStatus status);

/* What a response that is not gRPC's means. */
ChGrpcStatus ch_grpc_status_from_http(int http_status);
/* What an RST_STREAM with this HTTP/2 error code means, when the status had not come yet. */
ChGrpcStatus ch_grpc_status_from_h2(uint32_t h2_error);
/* "REFUSED_STREAM"; NULL for a number without a name. Static storage. */
const char *ch_grpc_h2_error_name(uint32_t h2_error);

/* Returns: always false, so that raising is one statement */
bool ch_grpc_fail(GError **error, ChGrpcStatus status, const char *format, ...) G_GNUC_PRINTF(3, 4);
