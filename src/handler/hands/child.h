/* SPDX-License-Identifier: Apache-2.0 */

/*
 * child: a process that does steps in pods, one after the other.
 *
 * Theory of operation: a copy of the hands, with the same capabilities and filter, that keeps none
 * of their descriptors. A step comes as a record with the one descriptor that it needs (a pod's
 * root, its process, or a netlink socket in it), and mostly with the channel of the brain that it
 * is to be answered on; else the answer goes to the hands. The child closes both once it has
 * answered, so that nothing of a pod is left when the next step, perhaps in another pod, comes. It
 * ends when its channel closes, when the hands do, or when a step says that it left traces. Thread:
 * the hands' one.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/launcher.h"
#include "handler/hands/protocol.h"

/* What a child gets of a task. */
typedef struct {
    ChHandsRequest request;
    char pod_uid[CH_HANDS_UID_SIZE];
    pid_t pid;      /* CONNECT: the listener's */
    ChFileId inode; /* CONNECT: of the socket it was reached by */
    uint32_t slot;  /* what is noted on the board once it is done, if the child answers the brain */
    uint32_t turn;  /* 0: it answers the hands */
} ChStep;

/**
 * ChStepFunc: does one step, in the child.
 * @bytes: those that follow the record
 * @given_fd: what the step works on, borrowed
 * @out_fd: may be set to one to send along; the child's
 * @reply: initialized; filled in
 *
 * Returns: whether the process is as it was before, and may do another
 */
typedef bool (*ChStepFunc)(
    const ChStep *step, const void *bytes, int given_fd, int *out_fd, ChHandsReply *reply);

typedef struct {
    int channel_fd; /* owned; our end */
    int pidfd;      /* owned; -EBADF when it had ended before this was opened */
} ChChild;

/* Forks. @func does its steps. @is_on_mounts: it may touch mounts; another is killed when it tries.
 * Returns 0 or a positive errno. */
int ch_child_start(ChChild *out_child, ChStepFunc func, bool is_on_mounts);

/* @bytes: step->request.n_bytes of them. @brain_fd: where a step with a turn is answered. Returns 0
 * or a positive errno: EPIPE or ECONNRESET when the child is no more. */
int ch_child_send(
    const ChChild *child, const ChStep *step, const void *bytes, int given_fd, int brain_fd);

/**
 * ch_child_receive: takes the answer of a child that is readable, of a step without a turn.
 * @out_fd: what it sent along, or -EBADF; the caller's
 * @out_is_last: whether the child ends after it
 *
 * Returns: false when it ended without one
 */
bool
ch_child_receive(const ChChild *child, ChHandsReply *out_reply, int *out_fd, bool *out_is_last);

/* For one that does no step. */
bool ch_child_has_ended(const ChChild *child);

/* Lets it end once it has done what it does. */
void ch_child_dismiss(ChChild *child);
