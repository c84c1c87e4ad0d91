/* SPDX-License-Identifier: Apache-2.0 */

/*
 * sandbox: the hands give up what they do not need.
 *
 * Stages, in this order. Should: be done before the first request is read. Mustn't: open anything
 * afterwards that is not named by an operation. The lists of capabilities and system calls are in
 * README.md with their reasons. Thread: the only one. The labeller (labeller.h) has stages of its
 * own: ch_sandbox_enter_labeller().
 */

#pragma once

/* All but the listed capabilities are gone from every set, the bounding set included, and no exec
 * gives any back. A listed one that the process does not have is not missed here: the operation
 * that needs it fails. Returns 0 or -errno. */
int ch_sandbox_drop_capabilities(void);

/* From here on a system call that is not listed ends the process (SIGSYS). Under a sanitizer, whose
 * run-time calls what it likes, nothing is filtered. Returns 0 or -errno. */
int ch_sandbox_filter_calls(void);

/* For a child that touches no mounts: from here on a call that does, or that joins a mount
 * namespace, ends it too. Does nothing without the filter above. Returns 0 or -errno. */
int ch_sandbox_forbid_mounts(void);

/* For the labeller, instead of the first two: capabilities and system calls for a tap, and for
 * executing a program, which `no_new_privs` would keep from changing its label. Calls that are not
 * listed fail (ENOSYS) rather than end the process, since the loader of a program tries what a
 * kernel may not have. Returns 0 or -errno. */
int ch_sandbox_enter_labeller(void);
