/* SPDX-License-Identifier: Apache-2.0 */

/*
 * stale-sockets: since when which launcher sockets have refused, and which are dead by now. Spec 01
 * §11.4
 *
 * Pure: no I/O, no clock of its own. A verdict needs refusals in every round over strictly more
 * than the watchdog's seconds, so at least two; a socket that takes a connection in between starts
 * anew. Thread: one.
 */

#pragma once

#include "handler/pod/ghost-records.h"

typedef struct ChStaleSockets ChStaleSockets;

ChStaleSockets *ch_stale_sockets_new(int64_t watchdog_us);
void ch_stale_sockets_free(ChStaleSockets *sockets); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChStaleSockets, ch_stale_sockets_free)

/**
 * ch_stale_sockets_judge: takes the outcome of one round in which every launcher was probed.
 * @refusing: ChGhostRecord, those that refused; what is left in it afterwards is dead. A dead one
 * stays dead in every round until it is refusing no more
 * @now_us: monotonic; counted in whole seconds, as the original does
 */
void ch_stale_sockets_judge(ChStaleSockets *sockets, GPtrArray *refusing, int64_t now_us);
