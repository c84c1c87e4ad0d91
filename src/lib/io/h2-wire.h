/* SPDX-License-Identifier: Apache-2.0 */

/*
 * h2-wire: bytes between nghttp2's sessions and libevent's buffers, for clients and servers.
 *
 * nghttp2 keeps a buffer of one frame (16 KiB) in every session for as long as the session lives,
 * though its bytes matter only until nghttp2_session_mem_send() is called again: two thirds of what
 * an idle connection costs. The frame lender, an allocator, lends each session the same one
 * instead. What makes it safe: the sessions belong to one loop, ch_h2_send() copies what nghttp2
 * gives before it does anything else, and a send_data callback never answers WOULDBLOCK. Delete it
 * when nghttp2 frees that buffer itself.
 *
 * It also gives a session its three tables (of streams and of HPACK, 6 KiB that an idle session
 * does not use) in pages of their own. Pages that were never written to cost nothing, and the
 * stream table's is given back by ch_h2_frame_lender_rest() when it holds nothing but zeros, which
 * is what the kernel fills it with when it is next looked at. Thread: the loop's.
 */

#pragma once

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "lib/io/loop.h"

/* What one session borrows. Outlives the session; does not move. */
typedef struct {
    uint8_t *buffer;         /* borrowed from the loop */
    bool is_lent;            /* the session has it; further buffers of that size come from malloc */
    uint8_t *pages;          /* owned; NULL: none are lent */
    bool has_table;          /* the stream table is the first page */
    guint n_tables, n_rings; /* that were placed in the first and in the second page, ever */
    guint n_placed;          /* what lies in the pages now */
    nghttp2_mem mem;         /* for nghttp2_session_server_new3() */
} ChH2FrameLender;

void ch_h2_frame_lender_init(ChH2FrameLender *lender, ChLoop *loop);

/* The session has no stream any more: its stream table's page goes back if it is empty. */
void ch_h2_frame_lender_rest(ChH2FrameLender *lender);

/* Feeds the whole of @input to the session, whose callbacks may free it if they then fail.
 * Returns: 0, or nghttp2's error: the session is of no more use */
int ch_h2_receive(nghttp2_session *session, struct evbuffer *input);

/* Moves what the session has to send to @output, until that holds @high_bytes. Returns: as above */
int ch_h2_send(nghttp2_session *session, struct evbuffer *output, gsize high_bytes);

/* The same, and writes it. What the socket does not take stays in the output of @bev, which is one
 * of ch_write_now_init(), until that has drained. Returns: as above */
int ch_h2_transmit(nghttp2_session *session, struct bufferevent *bev, gsize high_bytes);
