/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tap: makes a tap in the network namespace that the process is in.
 *
 * Theory of operation: with SELinux a tap has the label of the process that makes it, for good, and
 * a launcher may attach to none but those of its own label. The hands then execute themselves with
 * that label (tap-label.h), and what is executed is ch_tap_main(). Spec: 04 §10.
 */

#pragma once

#include <stdint.h>

/* Arguments of the hands when they are executed for a tap: this, a name, flags as a number. */
#define CH_TAP_COMMAND "make-tap"
#define CH_TAP_N_ARGS  4 /* the program's name included */

/**
 * ch_tap_make: makes a persistent tap for 0:0, or with CH_HANDS_NON_ROOT for 107:107.
 * @flags: CH_HANDS_NON_ROOT, CH_HANDS_MULTI_QUEUE
 *
 * It is persistent last: who is killed meanwhile leaves none. Needs CAP_NET_ADMIN. Thread: any.
 *
 * Returns: 0 or a positive errno: EBUSY (a link has the name; with several queues EINVAL, and an
 * existing such tap is taken), that of opening /dev/net/tun
 */
int ch_tap_make(const char *name, uint32_t flags);

/* The program: makes the tap that @argv names. Returns what it exits with: 0 or a positive errno,
 * as all descriptors may have been taken from a process that changed its label. */
int ch_tap_main(char *const argv[CH_TAP_N_ARGS]);
