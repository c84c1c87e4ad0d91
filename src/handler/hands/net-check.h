/* SPDX-License-Identifier: Apache-2.0 */

/*
 * net-check: which netlink messages the hands send for the brain, and sending them.
 *
 * The sender's privilege makes a message count, so what is sent is what an operation on a pod's
 * network is made of and nothing more: no link is moved to another namespace or reached through a
 * namespace's number, none but bridges and dummies are made, and of netfilter only nf_tables is
 * spoken to. Allocates nothing. Thread: the hands' one. Fuzzed: tests/fuzz/fuzz-hands-net.c.
 */

#pragma once

#include "handler/hands/protocol.h"

/**
 * ch_net_check:
 * @bytes: @n_bytes of whole messages, aligned to 4
 *
 * Pure. Returns: 0, or a positive errno: EBADMSG (no whole messages), EPERM (one that is not sent)
 */
int ch_net_check(ChHandsNet net, const void *bytes, gsize n_bytes);

/* Sends them to the kernel in one go, without waiting. Returns 0 or a positive errno. */
int ch_net_send(int fd, const void *bytes, gsize n_bytes);
