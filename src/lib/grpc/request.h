/* SPDX-License-Identifier: Apache-2.0 */

/*
 * request: the header block of a call as a server sees it, and grpc-go's verdict on it.
 *
 * nghttp2's own HTTP checks are off, since they reset what a gRPC server answers (and refuse what
 * it accepts, e.g. no :authority). Pure. Thread: the owner's. Spec: 03 §3.2.
 */

#pragma once

#include "lib/grpc/frame.h"

#define CH_GRPC_MAX_HEADER_LIST_BYTES (1u << 20) /* names, values and 32 each, as HTTP/2 counts */

/* Collected by ch_grpc_request_add(). All zeroes is a request without headers. */
typedef struct {
    char *path;          /* (nullable): owned, as are the others */
    char *method;        /* (nullable): ":method" */
    char *content_type;  /* (nullable): the last one seen, good or bad */
    char *encoding;      /* (nullable): "grpc-encoding" */
    GError *bad_timeout; /* (nullable): of a "grpc-timeout" */
    int64_t timeout_us;  /* valid if has_timeout */
    bool has_timeout;
    char *subtype;     /* (nullable): of the last content type of gRPC's; "" for the bare one */
    bool is_malformed; /* HTTP/2 itself forbids it */
    bool has_regular;  /* a header without colon came */
    guint pseudo_seen; /* bits, one a pseudo header */
    guint n_hosts;
    gsize n_bytes;
} ChGrpcRequest;

/* Names and values are bytes from the peer, not terminated. Beyond the limit nothing is kept. */
void ch_grpc_request_add(ChGrpcRequest *request,
                         const uint8_t *name,
                         gsize name_length,
                         const uint8_t *value,
                         gsize value_length);
void ch_grpc_request_clear(ChGrpcRequest *request);

typedef enum {
    CH_GRPC_VERDICT_INVALID = 0, /* never returned */
    CH_GRPC_VERDICT_SERVE,
    CH_GRPC_VERDICT_RESET, /* RST_STREAM(h2_error), nothing else */
    CH_GRPC_VERDICT_ABORT, /* http_status and error, trailers-only */
} ChGrpcVerdict;

/**
 * ch_grpc_request_judge: call when the block is complete.
 * @out_h2_error: (out): with RESET
 * @out_http_status: (out): with ABORT
 * @error: CH_GRPC_ERROR with ABORT
 */
ChGrpcVerdict ch_grpc_request_judge(const ChGrpcRequest *request,
                                    uint32_t *out_h2_error,
                                    guint *out_http_status,
                                    GError **error);

/* (transfer none) (nullable): what follows "application/grpc" and '+' or ';', "" for nothing; NULL
 * for other content types */
const char *ch_grpc_content_subtype(const char *content_type);
