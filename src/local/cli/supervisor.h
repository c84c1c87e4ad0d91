/* SPDX-License-Identifier: Apache-2.0 */

/*
 * supervisor: the process behind `chandler up`.
 *
 * Theory of operation: holds the lock; starts the API server; when that serves, runs `bootstrap`
 * once; then keeps pod runner and agent running. The outcome of the start goes to a descriptor as
 * one line: "ok", or what went wrong. SIGTERM, or that the state
 * directory is gone, ends the three in the reverse order; pods are left alone.
 */

#pragma once

#include "local/cli/cli.h"

typedef struct {
    const ChCli *cli;
    int port;
    bool is_emulated;
    int ready_fd; /* owned by the caller; negative: nobody waits */
} ChSupervisorSpec;

/* Blocks: until it is told to end. Returns: false: it did not start */
bool ch_supervisor_run(const ChSupervisorSpec *spec, GError **error);
