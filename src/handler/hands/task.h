/* SPDX-License-Identifier: Apache-2.0 */

/*
 * task: a step in a pod that a child does, with a deadline.
 *
 * Theory of operation: a task has a slot, and the slot a child (child.h), which stays for a moment
 * after its task for the next one: a start is five steps and more. A child answers the brain itself
 * (the task is "direct") and notes that on the board (board.h), but for what the hands must
 * complete; the server waits for the channels of children, by which it hears the rest, and of their
 * end. A child that misses its deadline is killed and answered for, but one that hangs in a dead
 * file system dies only when that lets go of it: its task stays taken
 * (`is_late`) until its end of the channel closes, and a pod that has CH_TASK_MAX_LATE of these
 * gets no further ones, so that no pod can use up all tasks. The kernel reaps children (SIGCHLD is
 * ignored). Static storage, thread: the hands' one.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/hands/child.h"
#include "handler/hands/launcher.h"
#include "handler/hands/protocol.h"

#define CH_TASK_MAX      64
#define CH_TASK_MAX_LATE 2
#define CH_TASK_IDLE_US  INT64_C(2000000) /* how long a child waits for another task */

typedef struct {
    ChHandsRequest request;
    int channel_fd; /* of the asking thread; borrowed */
    ChPodEntry pod; /* the table's (borrowed), or CONNECT's candidate with its pidfd (owned) */
    ChLauncherConnection connection; /* CONNECT only; owned */
    bool is_on_mounts;               /* wants a child of its own, which ends with it */
    bool is_direct;                  /* the child answers the brain, where there is a board */

    /* The task's own. */
    bool is_taken;
    bool is_late;   /* killed and answered for */
    bool has_child; /* also of a slot that is not taken: it is idle */
    ChChild child;
    uint32_t turn; /* of a direct task, on the board */
    int64_t started_us;
    int64_t deadline_us; /* of the task, or of the idle child */
} ChTask;

/* Children are added to this epoll instance (borrowed), with the number of their slot and @first in
 * the event's data. Without it nobody is told of them. */
void ch_task_set_epoll(int epoll_fd, uint32_t first);

/**
 * ch_task_start: has a child do a step.
 * @task: request, channel_fd, pod and connection; copied
 * @bytes: that follow the record; borrowed for the call
 * @given_fd: what the step works on; borrowed for the call
 * @func: what children do; the same in each call
 *
 * Returns: false with the reply filled in (EAGAIN, or the errno of fork and the like); the caller
 * then still owns what the task owns
 */
bool ch_task_start(
    const ChTask *task, const void *bytes, int given_fd, ChStepFunc func, ChHandsReply *reply);

/* Whether a slot is free. When all are taken by tasks that are late, which may stay for ever, also
 * true: the next one is then refused rather than kept waiting. */
bool ch_task_has_room(void);

/* How many tasks do @op. */
unsigned ch_task_count(uint32_t op);

/* Frees the slots of direct tasks that are done: before anything else is made of what happened. */
void ch_task_settle(void);

/* Slots from this number on have neither a task nor a child. */
unsigned ch_task_n_used(void);

/* Slot @index below CH_TASK_MAX, NULL when it is free. */
ChTask *ch_task_peek(unsigned index);

/**
 * ch_task_collect: takes what the child of a readable task sent.
 * @out_fd: what it sent along, or -EBADF; the caller's
 *
 * Returns: false when there is nothing to answer (it was late, or done); the task is free then
 */
bool ch_task_collect(ChTask *task, int *out_fd, ChHandsReply *out_reply);

/* For an idle child of slot @index of which an event was told: it may have died. */
void ch_task_check_idle(unsigned index);

/* Kills the child of a task whose deadline has passed; the task stays, late. */
void ch_task_expire(ChTask *task, ChHandsReply *out_reply);

/* Closes what the task owns and frees it; its child waits for another. For after
 * ch_task_collect(). */
void ch_task_end(ChTask *task);

/* Lets children end that have been idle for long enough. */
void ch_task_dismiss_idle(int64_t now_us);

/* Microseconds to the nearest deadline of a task that is not late, or of an idle child, or to the
 * time when the child of a direct task would be idle for long enough; at least 0; -1: none. */
int64_t ch_task_time_left(int64_t now_us);
