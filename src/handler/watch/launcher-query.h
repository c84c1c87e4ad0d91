/* SPDX-License-Identifier: Apache-2.0 */

/*
 * launcher-query: asks the launcher of one ghost record for its domain, on a connection of its own.
 * Spec 01 §11.1
 *
 * Thread: workers. Blocks: at most 5 s to connect, 2 s for HTTP/2, 5 s for each of two calls.
 */

#pragma once

#include "handler/hands/client.h"
#include "handler/pod/ghost-records.h"
#include "handler/watch/domain-store.h"
#include "lib/io/loop.h"

typedef enum {
    CH_LAUNCHER_QUERY_DOMAIN, /* it has one */
    CH_LAUNCHER_QUERY_NO_DOMAIN,
    CH_LAUNCHER_QUERY_NO_SOCKET,   /* nothing at the socket's place */
    CH_LAUNCHER_QUERY_NO_ACCESS,   /* nobody could look there */
    CH_LAUNCHER_QUERY_UNREACHABLE, /* somebody may be there, but does not speak as it should */
    CH_LAUNCHER_QUERY_NO_ANSWER,   /* a launcher that does not say what it has */
} ChLauncherQueryOutcome;

/* @out_domain: (out) (transfer full): with _DOMAIN. @error: with the last three, for the log.
 * Whatever fails on our side is one of them too: only what is certain may end a VM. */
ChLauncherQueryOutcome ch_launcher_query(ChLoop *loop,
                                         ChHands *hands,
                                         const ChGhostRecord *record,
                                         ChKnownDomain **out_domain,
                                         GError **error);
