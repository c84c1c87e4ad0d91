/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rpc-error: how the failures of commands read. For rpc.c.
 *
 * Pure. Thread: any. Spec 03 §4.6: the texts, grpc-go's among them, are what users see in events.
 */

#pragma once

#include "handler/launcher/rpc-table.h"

/* @reason: what ch_grpc_call() said. Returns: false */
bool ch_rpc_fail_call(GError **error, const ChRpcRow *row, const GError *reason);

/* @message: of an answer with success=false; UTF-8. @is_invalid_checkpoint: RedefineCheckpoint's
 * verdict. Returns: false */
bool ch_rpc_fail_refused(GError **error,
                         const ChRpcRow *row,
                         const char *message,
                         bool is_invalid_checkpoint);
