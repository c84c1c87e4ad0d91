/* SPDX-License-Identifier: Apache-2.0 */

/*
 * capabilities: giving up privilege, for good.
 *
 * Thread: the only one (a thread has capabilities of its own: one that is there already keeps
 * them).
 */

#pragma once

#include <stddef.h>

/**
 * ch_capabilities_keep: gives up all capabilities but these, in every set, the bounding set
 * included; no exec gives any back (`no_new_privs`).
 * @kept: CAP_..., those that the process has now; one that it does not have is not missed here
 *
 * Should: be called while there is one thread. Mustn't: be followed by an exec that wants more.
 *
 * Returns: 0 or -errno
 */
int ch_capabilities_keep(const unsigned kept[], size_t n_kept);

/* As ch_capabilities_keep(), but an exec as root gives back those of the kept ones that the process
 * gave up since; without CAP_SETPCAP, whatever the bounding set has. */
int ch_capabilities_limit(const unsigned kept[], size_t n_kept);
