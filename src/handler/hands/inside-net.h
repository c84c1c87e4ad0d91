/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-net: what is done in a pod's network namespace, beyond netlink messages.
 *
 * These run in a child of the hands, which joins the namespace of the process that @pidfd
 * holds, and stays there until ch_inside_leave_net(). Each returns false with the reply filled in
 * when it fails. Needs CAP_SYS_ADMIN and CAP_SYS_PTRACE to join; EPERM for the namespace that the
 * hands are in themselves. Spec: 04 §5, §10, §11.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

/* A netlink socket in it, after the sysctls of the mask (0: none) are set there. Idempotent. */
bool ch_inside_open_net(int pidfd, ChHandsNet net, uint32_t mask, int *out_fd, ChHandsReply *reply);

/* Joins it. */
bool ch_inside_join_net(int pidfd, ChHandsReply *reply);

/* As ch_tap_make() does, in it. */
bool ch_inside_make_tap(int pidfd, const char *name, uint32_t flags, ChHandsReply *reply);

/* Sets those of the mask. Needs CAP_NET_ADMIN; idempotent. */
bool ch_inside_set_sysctls(int pidfd, uint32_t sysctls, ChHandsReply *reply);

/* Returns 0, or -errno: -EXDEV: that is the namespace which this process comes from, the node's
 * own. */
int ch_inside_check_away(int network_fd);

/* Goes back to where the process came from, if it has left it. Returns: whether it is there; if
 * not, it must end. */
bool ch_inside_leave_net(void);
