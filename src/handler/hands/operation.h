/* SPDX-License-Identifier: Apache-2.0 */

/*
 * operation: carrying out a request that ch_hands_request_check() let through.
 *
 * Thread: the hands' one.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"
#include "handler/hands/task.h"

/**
 * ch_operation_begin: does what is done at once, or starts the request's task.
 * @bytes: those that follow the record; borrowed
 * @channel_fd: where the request came from; borrowed
 * @out_fd: (transfer full): what is to be sent along; stays -EBADF when nothing is
 * @reply: initialized for it
 *
 * Returns: true when the reply is complete (of success or failure), false when a task will bring it
 */
bool ch_operation_begin(const ChHandsRequest *request,
                        const void *bytes,
                        int channel_fd,
                        int *out_fd,
                        ChHandsReply *reply);

/**
 * ch_operation_finish: completes the reply of a task whose child has answered.
 * @fd: what the child sent along (owned by the caller, who closes what is left), or -EBADF
 *
 * Returns: the descriptor to send to the brain, borrowed from @task, @fd or the table, or -EBADF
 */
int ch_operation_finish(ChTask *task, int *fd, ChHandsReply *reply);
