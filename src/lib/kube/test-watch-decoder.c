/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/watch-decoder.h"

#include "lib/base/errors.h"

typedef struct {
    GString *seen;
    const char *stop_at; /* (nullable) type */
} Sink;

static bool
note(gpointer data, ChFrameType type, const char *type_text, ChJson *object)
{
    Sink *sink = data;
    g_autofree char *text = ch_json_print(object, NULL);

    g_string_append_printf(sink->seen, "%d:%s:%s;", (int)type, type_text, text);
    return g_strcmp0(type_text, sink->stop_at) != 0;
}

/* Returns: what was seen; @error is set when the decoder gave up. */
static char *
decode(const char *text, gsize piece, const char *stop_at, GError **error)
{
    Sink sink = {g_string_new(NULL), stop_at};
    g_autoptr(ChWatchDecoder) decoder = ch_watch_decoder_new(note, &sink);
    const gsize length = strlen(text);

    for (gsize i = 0; i < length; i += piece)
        if (!ch_watch_decoder_feed(decoder, text + i, MIN(piece, length - i), error))
            break;
    return g_string_free(sink.seen, FALSE);
}

static const struct Case {
    const char *path, *text, *seen;
    int code; /* of CH_ERROR; 0: none */
} cases[] = {
    {"/watch-decoder/types",
     "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n{\"type\":\"MODIFIED\",\"object\":{}}"
     "{\"type\":\"DELETED\",\"object\":{}} {\"type\":\"BOOKMARK\",\"object\":{}}\r\n"
     "{\"type\":\"ERROR\",\"object\":{\"code\":410}}{\"type\":\"NEWS\",\"object\":{}}",
     "1:ADDED:{\"a\":1};2:MODIFIED:{};3:DELETED:{};4:BOOKMARK:{};5:ERROR:{\"code\":410};"
     "0:NEWS:{};",
     0},
    {"/watch-decoder/half-frame-is-no-error",
     "{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"ADDED\",\"obj",
     "1:ADDED:{};",
     0},
    {"/watch-decoder/garbage-between",
     "{\"type\":\"ADDED\",\"object\":{}}\nhello",
     "1:ADDED:{};",
     CH_ERROR_INVALID},
    {"/watch-decoder/bad-json", "{\"type\":\"ADDED\",\"object\":{,}}", "", CH_ERROR_INVALID},
    {"/watch-decoder/brackets-mismatch",
     "{\"type\":\"ADDED\",\"object\":{]}}",
     "",
     CH_ERROR_INVALID},
    {"/watch-decoder/no-object", "{\"type\":\"ADDED\"}", "", CH_ERROR_INVALID},
    {"/watch-decoder/object-is-text", "{\"type\":\"A\",\"object\":\"x\"}", "", CH_ERROR_INVALID},
    {"/watch-decoder/type-is-number", "{\"type\":1,\"object\":{}}", "", CH_ERROR_INVALID},
    {"/watch-decoder/array", "[{\"type\":\"ADDED\",\"object\":{}}]", "", CH_ERROR_INVALID},
};

static void
test_decode(gconstpointer data)
{
    const struct Case *c = data;

    for (gsize piece = 1; piece < 60; piece++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *seen = decode(c->text, piece, NULL, &error);

        g_assert_cmpstr(seen, ==, c->seen);
        if (c->code != 0)
            g_assert_error(error, CH_ERROR, c->code);
        else
            g_assert_no_error(error);
    }
}

static void
test_stop_leaves_the_rest(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *seen = decode("{\"type\":\"ERROR\",\"object\":{}}{\"type\":\"ADDED\","
                                   "\"object\":{}}",
                                   1000,
                                   "ERROR",
                                   &error);

    g_assert_no_error(error);
    g_assert_cmpstr(seen, ==, "5:ERROR:{};");
}

static void
test_frame_limit(void)
{
    static char filler[1 << 16];
    Sink sink = {g_string_new(NULL), NULL};
    g_autoptr(ChWatchDecoder) decoder = ch_watch_decoder_new(note, &sink);
    g_autoptr(GError) error = NULL;
    gsize total = 0;

    memset(filler, 'x', sizeof filler);
    g_assert_true(ch_watch_decoder_feed(decoder, "{\"a\":\"", 6, &error));
    while (ch_watch_decoder_feed(decoder, filler, sizeof filler, &error)) {
        total += sizeof filler;
        g_assert_cmpuint(total, <=, CH_WATCH_MAX_FRAME);
    }
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
    g_string_free(sink.seen, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_decode);
    g_test_add_func("/watch-decoder/stop", test_stop_leaves_the_rest);
    g_test_add_func("/watch-decoder/limit", test_frame_limit);
    return g_test_run();
}
