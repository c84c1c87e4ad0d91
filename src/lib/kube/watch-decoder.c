/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/watch-decoder.h"

#include "lib/base/errors.h"
#include "lib/kube/json-scan.h"

struct ChWatchDecoder {
    ChFrameFunc on_frame;
    gpointer data;
    ChJsonScan scan;
    GString *frame; /* the begin of a frame; empty between frames */
};

ChWatchDecoder *
ch_watch_decoder_new(ChFrameFunc on_frame, gpointer data)
{
    ChWatchDecoder *decoder = g_new0(ChWatchDecoder, 1);

    decoder->on_frame = on_frame;
    decoder->data = data;
    decoder->frame = g_string_new(NULL);
    return decoder;
}

void
ch_watch_decoder_free(ChWatchDecoder *decoder)
{
    if (decoder == NULL)
        return;
    g_string_free(decoder->frame, TRUE);
    g_free(decoder);
}

static ChFrameType
frame_type(const char *text)
{
    static const char *const names[] = {
        [CH_FRAME_ADDED] = "ADDED",
        [CH_FRAME_MODIFIED] = "MODIFIED",
        [CH_FRAME_DELETED] = "DELETED",
        [CH_FRAME_BOOKMARK] = "BOOKMARK",
        [CH_FRAME_ERROR] = "ERROR",
    };

    for (gsize i = CH_FRAME_ADDED; i < G_N_ELEMENTS(names); i++)
        if (g_str_equal(text, names[i]))
            return (ChFrameType)i;
    return CH_FRAME_UNKNOWN;
}

/* A frame must not pin its memory for the minutes that a quiet watch lasts. */
static void
empty_frame(ChWatchDecoder *decoder)
{
    const gsize keep = 4 << 10;

    if (decoder->frame->allocated_len > keep) {
        g_string_free(decoder->frame, TRUE);
        decoder->frame = g_string_new(NULL);
    }
    g_string_truncate(decoder->frame, 0);
}

static bool
deliver(ChWatchDecoder *decoder, bool *out_goes_on, GError **error)
{
    g_autoptr(ChJson) json = ch_json_parse(decoder->frame->str, (gssize)decoder->frame->len, error);
    const char *type = ch_json_string_at(json, "type");
    ChJson *object = ch_json_at(json, "object");

    if (json == NULL)
        return false;
    if (type == NULL || !ch_json_is_object(object))
        return ch_fail(error, CH_ERROR_INVALID, "a frame without type or object");
    *out_goes_on = decoder->on_frame(decoder->data, frame_type(type), type, object);
    return true;
}

/* Takes bytes up to the end of the frame. Returns: how many; 0 with @error set */
static gsize
feed_frame(
    ChWatchDecoder *decoder, const char *bytes, gsize length, bool *out_whole, GError **error)
{
    gsize n = 0;

    *out_whole = false;
    while (n < length && !*out_whole)
        *out_whole = ch_json_scan_byte(&decoder->scan, bytes[n++]);
    if (decoder->frame->len + n > CH_WATCH_MAX_FRAME) {
        ch_fail(error, CH_ERROR_LIMIT, "a frame of more than %u bytes", CH_WATCH_MAX_FRAME);
        return 0;
    }
    g_string_append_len(decoder->frame, bytes, (gssize)n);
    return n;
}

static bool
feed(ChWatchDecoder *decoder, const char *bytes, gsize length, GError **error)
{
    bool goes_on = true;

    for (gsize i = 0; i < length && goes_on;) {
        bool is_whole;
        gsize n;

        if (decoder->frame->len == 0) {
            if (ch_json_scan_is_space(bytes[i])) {
                i++;
                continue;
            }
            if (bytes[i] != '{')
                return ch_fail(error,
                               CH_ERROR_INVALID,
                               "unexpected byte 0x%02x between frames",
                               (guint)(guchar)bytes[i]);
        }
        n = feed_frame(decoder, bytes + i, length - i, &is_whole, error);
        if (n == 0)
            return false;
        i += n;
        if (!is_whole)
            continue;
        if (!deliver(decoder, &goes_on, error))
            return false;
        empty_frame(decoder);
    }
    return true;
}

bool
ch_watch_decoder_feed(ChWatchDecoder *decoder, const char *bytes, gsize length, GError **error)
{
    if (feed(decoder, bytes, length, error))
        return true;
    g_prefix_error(error, "unable to decode an event from the watch stream: ");
    return false;
}
