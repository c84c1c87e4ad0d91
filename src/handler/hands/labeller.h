/* SPDX-License-Identifier: Apache-2.0 */

/*
 * labeller: the process that can still execute a program, where SELinux wants one for a tap.
 *
 * Theory of operation: the hands may execute nothing (sandbox.h), and `no_new_privs` would keep an
 * exec from changing the label. So where the node has SELinux, and only there, they fork once more
 * before they enter their sandbox. The labeller has a sandbox of its own, and waits for one end of
 * a channel, on which an order and the launcher's pidfd lie; a child of it carries that out
 * (tap-label.h) and answers there. The other end goes to a child of the hands, which does nothing
 * but wait for the answer, with the deadline of any step; when it is killed, the helper is. Both
 * end with the hands. ADR 0012. Thread: the hands' one.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/tap-label.h"

/* Starts it. Mustn't: be called behind the sandbox. @places: static storage. Returns 0 or -errno.
 */
int ch_labeller_start(const ChTapLabelPlaces *places);

/* Whether it was started: taps are to be made by it. Also in children. */
bool ch_labeller_is_wanted(void);

/**
 * ch_labeller_ask: has it make a tap.
 * @pidfd: of the launcher; borrowed
 * @out_fd: (transfer full): for ch_labeller_await()
 *
 * Does not wait. Ends the program when the labeller has ended: a new agent has a new one.
 *
 * Returns: 0 or a positive errno: EAGAIN (it has too much to do)
 */
int ch_labeller_ask(const ChTapOrder *order, int pidfd, int *out_fd);

/* Waits for the answer; in a child. Returns false with the reply filled in on failure. */
bool ch_labeller_await(int fd, ChHandsReply *reply);
