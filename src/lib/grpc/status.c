/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/status.h"

/* clang-format off */
static const char *const status_names[] = {
    [CH_GRPC_OK]                  = "OK",
    [CH_GRPC_CANCELED]            = "Canceled",
    [CH_GRPC_UNKNOWN]             = "Unknown",
    [CH_GRPC_INVALID_ARGUMENT]    = "InvalidArgument",
    [CH_GRPC_DEADLINE_EXCEEDED]   = "DeadlineExceeded",
    [CH_GRPC_NOT_FOUND]           = "NotFound",
    [CH_GRPC_ALREADY_EXISTS]      = "AlreadyExists",
    [CH_GRPC_PERMISSION_DENIED]   = "PermissionDenied",
    [CH_GRPC_RESOURCE_EXHAUSTED]  = "ResourceExhausted",
    [CH_GRPC_FAILED_PRECONDITION] = "FailedPrecondition",
    [CH_GRPC_ABORTED]             = "Aborted",
    [CH_GRPC_OUT_OF_RANGE]        = "OutOfRange",
    [CH_GRPC_UNIMPLEMENTED]       = "Unimplemented",
    [CH_GRPC_INTERNAL]            = "Internal",
    [CH_GRPC_UNAVAILABLE]         = "Unavailable",
    [CH_GRPC_DATA_LOSS]           = "DataLoss",
    [CH_GRPC_UNAUTHENTICATED]     = "Unauthenticated",
};

/* Indexed by HTTP/2 error code. */
static const struct {
    const char *name;
    ChGrpcStatus status;
} h2_errors[] = {
    { "NO_ERROR",            CH_GRPC_INTERNAL           },
    { "PROTOCOL_ERROR",      CH_GRPC_INTERNAL           },
    { "INTERNAL_ERROR",      CH_GRPC_INTERNAL           },
    { "FLOW_CONTROL_ERROR",  CH_GRPC_RESOURCE_EXHAUSTED },
    { "SETTINGS_TIMEOUT",    CH_GRPC_INTERNAL           },
    { "STREAM_CLOSED",       CH_GRPC_INTERNAL           },
    { "FRAME_SIZE_ERROR",    CH_GRPC_INTERNAL           },
    { "REFUSED_STREAM",      CH_GRPC_UNAVAILABLE        },
    { "CANCEL",              CH_GRPC_CANCELED           },
    { "COMPRESSION_ERROR",   CH_GRPC_INTERNAL           },
    { "CONNECT_ERROR",       CH_GRPC_INTERNAL           },
    { "ENHANCE_YOUR_CALM",   CH_GRPC_RESOURCE_EXHAUSTED },
    { "INADEQUATE_SECURITY", CH_GRPC_PERMISSION_DENIED  },
    { "HTTP_1_1_REQUIRED",   CH_GRPC_INTERNAL           },
};

static const struct {
    int http_status;
    ChGrpcStatus status;
} http_statuses[] = {
    { 400, CH_GRPC_INTERNAL          },
    { 401, CH_GRPC_UNAUTHENTICATED   },
    { 403, CH_GRPC_PERMISSION_DENIED },
    { 404, CH_GRPC_UNIMPLEMENTED     },
    { 429, CH_GRPC_UNAVAILABLE       },
    { 502, CH_GRPC_UNAVAILABLE       },
    { 503, CH_GRPC_UNAVAILABLE       },
    { 504, CH_GRPC_UNAVAILABLE       },
};
/* clang-format on */

G_DEFINE_QUARK(ch - grpc - error - quark, ch_grpc_error)

const char *
ch_grpc_status_name(ChGrpcStatus status)
{
    const guint index = (guint)status;

    return index < G_N_ELEMENTS(status_names) ? status_names[index] : "Unknown";
}

ChGrpcStatus
ch_grpc_status_from_http(int http_status)
{
    for (gsize i = 0; i < G_N_ELEMENTS(http_statuses); i++) {
        if (http_statuses[i].http_status == http_status)
            return http_statuses[i].status;
    }
    return CH_GRPC_UNKNOWN;
}

ChGrpcStatus
ch_grpc_status_from_h2(uint32_t h2_error)
{
    return h2_error < G_N_ELEMENTS(h2_errors) ? h2_errors[h2_error].status : CH_GRPC_UNKNOWN;
}

const char *
ch_grpc_h2_error_name(uint32_t h2_error)
{
    return h2_error < G_N_ELEMENTS(h2_errors) ? h2_errors[h2_error].name : NULL;
}

bool
ch_grpc_fail(GError **error, ChGrpcStatus status, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, CH_GRPC_ERROR, (int)status, message);
    return false;
}
