/* SPDX-License-Identifier: Apache-2.0 */

/*
 * server: the hands' one loop: requests in, replies out, tasks watched.
 *
 * Thread: the hands' one.
 */

#pragma once

/* Serves the channels at descriptors CH_HANDS_FIRST_FD and up until the brain closes any of them
 * (it never does while it lives). Returns 0, or a positive errno when polling itself fails. */
int ch_server_run(void);
