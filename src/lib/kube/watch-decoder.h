/* SPDX-License-Identifier: Apache-2.0 */

/*
 * watch-decoder: the frames of a watch stream: JSON objects {"type": ..., "object": ...}, one after
 * the other. Spec 01 §3.4.
 *
 * Limit: a frame CH_WATCH_MAX_FRAME, as client-go. Pure. Thread: the owner's.
 */

#pragma once

#include "lib/json/json.h"

#define CH_WATCH_MAX_FRAME (16u << 20)

typedef enum {
    CH_FRAME_UNKNOWN = 0, /* a type that this program does not know */
    CH_FRAME_ADDED,
    CH_FRAME_MODIFIED,
    CH_FRAME_DELETED,
    CH_FRAME_BOOKMARK,
    CH_FRAME_ERROR,
} ChFrameType;

typedef struct ChWatchDecoder ChWatchDecoder;

/* @object: borrowed, may be edited; an object. @type_text: for the log, untrusted. Returns: false:
 * the rest of the bytes is not wanted anymore (the decoder may be freed after the feed returned,
 * not within). */
typedef bool (*ChFrameFunc)(gpointer data, ChFrameType type, const char *type_text, ChJson *object);

ChWatchDecoder *ch_watch_decoder_new(ChFrameFunc on_frame, gpointer data);
void ch_watch_decoder_free(ChWatchDecoder *decoder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChWatchDecoder, ch_watch_decoder_free)

/* False: CH_ERROR_INVALID or CH_ERROR_LIMIT, the frame is undecodable and the stream of no use
 * anymore. What is left at the end of the stream is no error: the connection was cut. */
bool
ch_watch_decoder_feed(ChWatchDecoder *decoder, const char *bytes, gsize length, GError **error);
