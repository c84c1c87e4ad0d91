/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rpc-table: what each command is: one row, no code. For rpc.c.
 *
 * Pure. Thread: any. Spec 03 §2.2, §4.5.
 */

#pragma once

#include "handler/launcher/rpc.h"

typedef enum {
    CH_RPC_REQUEST_INVALID = 0,
    CH_RPC_REQUEST_EMPTY,
    CH_RPC_REQUEST_VMI, /* a VMI and options, both always there: a launcher in Go looks at both */
    CH_RPC_REQUEST_BARE_VMI, /* the same message without options */
    CH_RPC_REQUEST_DOCUMENT, /* a VMI and a JSON object */
    CH_RPC_REQUEST_FREEZE,
    CH_RPC_REQUEST_DUMP,
    CH_RPC_REQUEST_STATS,
    CH_RPC_REQUEST_EXEC,
    CH_RPC_REQUEST_GUEST_PING,
} ChRpcRequestKind;

/* What the JSON in an answer must be. */
typedef enum {
    CH_RPC_JSON_NONE = 0, /* it is none, or its reader sees to it */
    CH_RPC_JSON_OBJECT,
    CH_RPC_JSON_ARRAY,
} ChRpcJson;

/* How failures read and whether success=false is one. */
typedef enum {
    CH_RPC_ERRORS_LABELLED = 0,
    CH_RPC_ERRORS_RAW,        /* the gRPC error as it is; success is not looked at */
    CH_RPC_ERRORS_CHECKPOINT, /* RedefineCheckpoint's own texts */
} ChRpcErrors;

typedef struct {
    const char *method; /* the :path */
    const char *label;  /* in error texts; NULL with CH_RPC_ERRORS_RAW */
    int64_t timeout_us; /* Exec, GuestPing: on top of the request's seconds */
    ChRpcRequestKind request;
    const ProtobufCMessageDescriptor *answer;
    ChRpcJson json;
    const char *absent;   /* the error when the answer's first field is empty; NULL: that is fine */
    const char *stand_in; /* for the answer of a launcher without this command; NULL: an error */
    ChRpcErrors errors;
} ChRpcRow;

/* @rpc: not INVALID */
const ChRpcRow *ch_rpc_row(ChLauncherRpc rpc);
