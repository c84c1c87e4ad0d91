/* SPDX-License-Identifier: Apache-2.0 */

/*
 * h2-session: the client's side of one HTTP/2 connection (nghttp2 on a bufferevent).
 *
 * Used by http-client (API server) and by grpc's client (launchers, cleartext with prior
 * knowledge). It owns the bufferevent. Flow control windows are given back as data is delivered.
 * Answers the peer's PINGs; sends its own only with ping_idle_us > 0 (a grpc-go server punishes
 * pings: spec 03 §3.3). Limits: header list 1 MiB, concurrent streams those of the peer (further
 * ones wait). Thread: the loop's. Callbacks may cancel streams and close the session.
 */

#pragma once

#include <event2/bufferevent.h>

#include "lib/io/http-message.h"
#include "lib/io/loop.h"

typedef struct ChH2Session ChH2Session;
typedef struct ChH2Stream ChH2Stream; /* valid until on_close returned or it was reset */

typedef struct {
    int64_t ping_idle_us; /* 0: never ping */
    int64_t ping_timeout_us;
    bool indexes_nothing; /* HPACK without memory for what is sent: for small headers */
} ChH2Options;

typedef struct {
    void (*on_ready)(gpointer data);  /* the peer's first SETTINGS arrived */
    void (*on_goaway)(gpointer data); /* no new streams here; the running ones go on (GOAWAY, or
                                         the peer reads no more) */
    void (*on_closed)(gpointer data, const GError *error); /* the connection is gone, after every
                                                              stream's on_close; NULL: orderly */
} ChH2SessionEvents;

typedef struct {
    /* is_trailer: a header block after the first (or the only one, when it ends the stream:
     * trailers-only has is_trailer false) */
    void (*on_headers)(gpointer data,
                       const ChHttpHeader *headers,
                       gsize n_headers,
                       bool is_trailer,
                       bool end_stream);
    void (*on_data)(gpointer data, const uint8_t *bytes, gsize length);
    /* error: NULL when the stream ended as it should. CH_HTTP_ERROR_STREAM or _UNSENT: h2_error is
     * the code of the peer's RST_STREAM (it may be NO_ERROR: reset before the answer's end). Lost
     * connection: _EOF with message "EOF", or _RESET with e.g. "connection reset by peer" */
    void (*on_close)(gpointer data, uint32_t h2_error, const GError *error);
} ChH2StreamEvents;

/**
 * ch_h2_session_new: sends the preface.
 * @bev: (transfer full): connected (and through its handshake), made with BEV_OPT_CLOSE_ON_FREE
 * @options: (nullable): all zero
 */
ChH2Session *ch_h2_session_new(ChLoop *loop,
                               struct bufferevent *bev,
                               const ChH2Options *options,
                               const ChH2SessionEvents *events,
                               gpointer data);
/* Closes at once: streams get no callback any more. */
void ch_h2_session_free(ChH2Session *session);

/**
 * ch_h2_session_request: only while ch_h2_session_takes_streams().
 * @headers: the pseudo headers first; copied
 * @body: (nullable): referenced; NULL: the request ends with its headers
 *
 * The bytes leave in a later turn of the loop, and so no callback comes from within. Beyond the
 * peer's limit of concurrent streams the request waits for its turn.
 */
ChH2Stream *ch_h2_session_request(ChH2Session *session,
                                  const ChHttpHeader *headers,
                                  gsize n_headers,
                                  GBytes *body,
                                  const ChH2StreamEvents *events,
                                  gpointer data);
/* RST_STREAM(@code); no callback comes any more. */
void ch_h2_stream_reset(ChH2Stream *stream, uint32_t code);
bool ch_h2_session_takes_streams(const ChH2Session *session); /* false after GOAWAY or loss */
guint ch_h2_session_n_streams(const ChH2Session *session);
