/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pidfd: processes held by descriptor instead of number.
 *
 * Allocates nothing, errors are -errno, safe in a forked child. Thread: any. Spec: 05 §5.2.
 */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

/**
 * ch_pidfd_open_peer: opens the process at the other side of a connected UNIX stream socket: for
 * the connecting side the process that called listen(2).
 * @out_pid: its number in the caller's pid namespace
 *
 * SO_PEERPIDFD names the process for certain; before Linux 6.5 the number is opened, which may by
 * then be another process's: whoever needs certainty checks something else of the process too.
 *
 * Returns: a pidfd, close-on-exec, or -errno: -ESRCH (the process is gone, or in no pid namespace
 * below the caller's: number 0)
 */
int ch_pidfd_open_peer(int socket_fd, pid_t *out_pid);

/* Whether the process still runs: false from its end on, also while it waits to be reaped. As long
 * as this is true, its number is not given to anybody else. */
bool ch_pidfd_is_alive(int pidfd);

/* Returns 0 or -errno. */
int ch_pidfd_kill(int pidfd, int signo);
