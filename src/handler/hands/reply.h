/* SPDX-License-Identifier: Apache-2.0 */

/*
 * reply: filling in and sending the hands' answers. Allocates nothing. Thread: the hands' one, and
 * its children.
 */

#pragma once

#include "handler/hands/protocol.h"

/* An answer to @request that reports success so far. */
void ch_reply_init(ChHandsReply *reply, const ChHandsRequest *request);

/**
 * ch_reply_fail: makes it report an error.
 * @errnum: of either sign, not 0
 * @format: what failed; ": " and the errno's text are appended, the whole is cut to its field
 *
 * Returns: always false, so that failing is one statement
 */
bool ch_reply_fail(ChHandsReply *reply, int errnum, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* The same of a mount's work, with the part of it that failed. */
bool ch_reply_fail_step(ChHandsReply *reply, ChHandsMountStep step, int errnum, const char *what);

/* The same, as another answer has it. */
bool ch_reply_take_failure(ChHandsReply *reply, const ChHandsReply *failed);

/* Sends it to the brain, with @fd (borrowed) if that is one. Returns false when it does not fit
 * into the channel: the brain waits for one at a time, so it has stopped reading. */
bool ch_reply_send(ChHandsReply *reply, int channel_fd, int fd);

/* Whether an errno, of either sign, says nothing about the pod, and must not pass for a fact about
 * it: memory or descriptors are lacking for the moment, or a lookup was disturbed too often. */
bool ch_reply_is_shortage(int errnum);

/* Whether a -errno leaves open what is there: a shortage, or an error of the device, which may
 * last. What is looked for is then neither found nor absent. @result: what a lookup returned, found
 * (not negative) or not. */
bool ch_reply_is_unknown(long result);
