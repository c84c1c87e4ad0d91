/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rpc-answer: what lies in a launcher's answer, read by its protobuf descriptor. For rpc.c.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "handler/launcher/rpc-table.h"

/**
 * ch_rpc_answer_read:
 * @answer: rpc and message (its strings are UTF-8) are set, the rest is filled in
 *
 * Returns: false with CH_LAUNCHER_ERROR: the launcher refused, or does not say what it must
 */
bool ch_rpc_answer_read(ChLauncherAnswer *answer, GError **error);
