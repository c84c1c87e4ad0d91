/* SPDX-License-Identifier: Apache-2.0 */

/*
 * h1-session: the client's side of one HTTP/1.1 connection, one request at a time.
 *
 * It owns the bufferevent. The body of an answer is delivered as it comes, chunk or half a chunk.
 * Thread: the loop's. Callbacks may free the session.
 */

#pragma once

#include <event2/bufferevent.h>

#include "lib/io/http-message.h"
#include "lib/io/loop.h"

typedef struct ChH1Session ChH1Session;

/* Called when the session is of no more use: its connection was lost, or may not be kept. The
 * request that ran, if any, has had its on_end. */
typedef void (*ChH1ClosedFunc)(gpointer data);

/* @bev: (transfer full): connected, made with BEV_OPT_CLOSE_ON_FREE */
ChH1Session *
ch_h1_session_new(ChLoop *loop, struct bufferevent *bev, ChH1ClosedFunc on_closed, gpointer data);
/* Closes at once; the request that runs gets no callback any more (this is how it is cancelled). */
void ch_h1_session_free(ChH1Session *session);

/**
 * ch_h1_session_request: only while ch_h1_session_is_idle().
 * @headers: without host, content-length and transfer-encoding
 * @body: (nullable): referenced
 *
 * No callback comes from within.
 */
void ch_h1_session_request(ChH1Session *session,
                           const char *method,
                           const char *path,
                           const char *authority,
                           const ChHttpHeader *headers,
                           gsize n_headers,
                           GBytes *body,
                           const ChHttpSink *sink,
                           gpointer data);
/* Takes a request; true already within the on_end of the one before. */
bool ch_h1_session_is_idle(const ChH1Session *session);
