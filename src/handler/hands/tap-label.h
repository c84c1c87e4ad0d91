/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tap-label: a tap with the label that a launcher's process has.
 *
 * Theory of operation: see ADR 0012. The kernel gives a tap the label of the process that asks for
 * it, and a process gets another one by executing a program: so this program, once the label is in
 * `attr/exec`. Runs in a child of the labeller (labeller.h), which ends after it. Spec: 04 §10, 05
 * §11.3.
 */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "handler/hands/protocol.h"

typedef struct {
    const char *proc;    /* "/proc", but in tests */
    const char *program; /* "/proc/self/exe": what is executed with ch_tap_main()'s arguments */
} ChTapLabelPlaces;

typedef struct {
    pid_t pid; /* the launcher's */
    uint32_t flags;
    char name[CH_HANDS_NAME_SIZE];
} ChTapOrder;

/**
 * ch_tap_label_make: makes the tap in the network namespace of the process.
 * @pidfd: of order->pid; borrowed
 * @caller_fd: the helper is killed once its other side is closed; borrowed
 * @reply: of a failure
 *
 * Executes nothing when the launcher's label is this process's own. SIGCHLD must have its default
 * action. Mustn't: be called by a process that is to do anything else.
 *
 * Returns: false with the reply filled in: ESRCH (the launcher is gone), EBADMSG (no label), or
 * another errno of the label, the exec or the tap
 */
bool ch_tap_label_make(const ChTapLabelPlaces *places,
                       const ChTapOrder *order,
                       int pidfd,
                       int caller_fd,
                       ChHandsReply *reply);
