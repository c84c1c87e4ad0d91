/* SPDX-License-Identifier: Apache-2.0 */

/* What the API server streams: watch frames and lists, whole and in pieces as long as the first
 * byte says: how the bytes are cut must not change what comes out. */

#include "lib/kube/api-status.h"
#include "lib/kube/list-splitter.h"
#include "lib/kube/object.h"
#include "lib/kube/watch-decoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is cached can be read again, and is then the same. */
static void
check_object(ChJson *json, GString *seen)
{
    g_autoptr(ChObject) object = ch_object_new(json, "v1", "Thing", NULL);
    g_autoptr(ChJson) again = NULL;
    g_autoptr(ChObject) copy = NULL;

    if (object == NULL)
        return;
    again = ch_json_parse(object->text, (gssize)object->length, NULL);
    g_assert_nonnull(again);
    copy = ch_object_new(again, "v1", "Thing", NULL);
    g_assert_cmpstr(copy->text, ==, object->text);
    g_assert_cmpstr(copy->key, ==, object->key);
    g_string_append_printf(seen, "%s=%s;", object->key, object->text);
}

typedef struct {
    GString *seen;
    bool is_over; /* an ERROR came */
} Frames;

static bool
on_frame(gpointer data, ChFrameType type, const char *type_text, ChJson *object)
{
    Frames *frames = data;

    g_string_append_printf(frames->seen, "%d ", (int)type);
    if (type == CH_FRAME_ERROR) {
        g_autoptr(GError) error = ch_kube_error_from_status(object);

        g_string_append_printf(frames->seen, "%d %s;", error->code, error->message);
        frames->is_over = true;
        return false;
    }
    check_object(object, frames->seen);
    return true;
}

static bool
on_item(gpointer data, const char *text, gsize length, GError **error)
{
    g_autoptr(ChJson) json = ch_json_parse(text, (gssize)length, error);

    if (json == NULL)
        return false;
    check_object(json, data);
    return true;
}

static char *
decode_frames(const char *bytes, gsize size, gsize piece)
{
    Frames frames = {.seen = g_string_new(NULL)};
    g_autoptr(ChWatchDecoder) decoder = ch_watch_decoder_new(on_frame, &frames);
    bool is_good = true;

    for (gsize at = 0; at < size && is_good && !frames.is_over; at += piece)
        is_good = ch_watch_decoder_feed(decoder, bytes + at, MIN(piece, size - at), NULL);
    g_string_append(frames.seen, is_good ? "good" : "bad");
    return g_string_free(frames.seen, FALSE);
}

static char *
split_list(const char *bytes, gsize size, gsize piece)
{
    GString *seen = g_string_new(NULL);
    g_autoptr(ChListSplitter) splitter = ch_list_splitter_new(on_item, seen);
    g_autofree char *version = NULL;
    g_autofree char *token = NULL;
    bool is_good = true;

    for (gsize at = 0; at < size && is_good; at += piece)
        is_good = ch_list_splitter_feed(splitter, bytes + at, MIN(piece, size - at), NULL);
    if (is_good)
        is_good = ch_list_splitter_finish(splitter, &version, &token, NULL);
    g_string_append_printf(
        seen, "%s %s %s", is_good ? "good" : "bad", is_good ? version : "", is_good ? token : "");
    return g_string_free(seen, FALSE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const gsize piece = size > 0 ? 1u + data[0] : 1;
    const char *bytes = (const char *)data + (size > 0);
    const gsize length = size - (size > 0);
    g_autofree char *frames = decode_frames(bytes, length, length + 1);
    g_autofree char *frames_in_pieces = decode_frames(bytes, length, piece);
    g_autofree char *list = split_list(bytes, length, length + 1);
    g_autofree char *list_in_pieces = split_list(bytes, length, piece);
    g_autoptr(GError) error = ch_kube_error_from_answer(500, bytes, length);

    g_assert_cmpstr(frames_in_pieces, ==, frames);
    g_assert_cmpstr(list_in_pieces, ==, list);
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
    return 0;
}
