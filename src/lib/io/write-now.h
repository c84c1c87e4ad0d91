/* SPDX-License-Identifier: Apache-2.0 */

/*
 * write-now: bytes of a bufferevent go out at once, where the socket takes them.
 *
 * Theory of operation: libevent asks the kernel to be told that a socket is writable, is told so a
 * turn later, writes, and takes its wish back: four system calls where one will do. So writing
 * stays disabled while nothing waits, and is enabled for what a socket does not take, or fails to
 * take: libevent then writes the rest, or finds the error and reports it as ever. A TLS bufferevent
 * is left to libevent. Thread: the loop's.
 */

#pragma once

#include <event2/bufferevent.h>

/* Before the first bytes: @bev, which reads, is to be written to by ch_write_now(). */
void ch_write_now_init(struct bufferevent *bev);

/* After bytes were added to the output of @bev. Calls no callback. */
void ch_write_now(struct bufferevent *bev);
