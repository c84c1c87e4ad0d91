/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/frame.h"

#include <string.h>

static const struct {
    int64_t timeout_us;
    const char *text;
} formats[] = {
    {-1, "0n"},
    {0, "0n"},
    {1, "1u"},
    {4999964, "4999964u"},
    {60 * G_GINT64_CONSTANT(1000000), "60000000u"},
    {99999999, "99999999u"},
    {100000001, "100001m"}, /* rounded up */
    {G_GINT64_CONSTANT(99999999) * 1000 + 1, "100000S"},
    {G_MAXINT64, "99999999H"},
};

static void
test_timeout_format(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        char text[CH_GRPC_TIMEOUT_SIZE];

        ch_grpc_timeout_format(formats[i].timeout_us, text);
        g_assert_cmpstr(text, ==, formats[i].text);
    }
}

static const struct {
    const char *text;
    int64_t timeout_us; /* -1: refused */
} parses[] = {
    {"5u", 5},
    {"1n", 1},
    {"2001n", 3},
    {"7m", 7000},
    {"20S", 20000000},
    {"2M", 120000000},
    {"99999999H", G_GINT64_CONSTANT(99999999) * 3600 * 1000000},
    {"0n", 0},
    {"", -1},
    {"5", -1},
    {"u", -1},
    {"123456789u", -1},
    {"5x", -1},
    {"-5u", -1},
    {"+5u", -1},
    {" 5u", -1},
    {"5uu", -1},
};

static void
test_timeout_parse(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(parses); i++) {
        g_autoptr(GError) error = NULL;
        int64_t timeout_us = -1;

        if (ch_grpc_timeout_parse(parses[i].text, &timeout_us, &error))
            g_assert_no_error(error);
        else
            g_assert_error(error, CH_GRPC_ERROR, CH_GRPC_INTERNAL);
        g_assert_cmpint(timeout_us, ==, parses[i].timeout_us);
    }
}

static const struct {
    const char *plain;
    const char *encoded;
} percents[] = {
    {"", ""},
    {"plain ~", "plain ~"},
    {"boom % ünï\nx", "boom %25 %C3%BCn%C3%AF%0Ax"}, /* spec 03 §3.2 */
    {"\x7f", "%7F"},
};

static void
test_percent_round_trip(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(percents); i++) {
        g_autofree char *encoded = ch_grpc_percent_encode(percents[i].plain, G_MAXSIZE);
        g_autofree char *decoded = ch_grpc_percent_decode(percents[i].encoded);

        g_assert_cmpstr(encoded, ==, percents[i].encoded);
        g_assert_cmpstr(decoded, ==, percents[i].plain);
    }
}

static void
test_percent_tolerates_bad_escapes(void)
{
    g_autofree char *kept = ch_grpc_percent_decode("100% %zz %4 %");
    g_autofree char *invalid = ch_grpc_percent_decode("a%ffb");
    g_autofree char *nul = ch_grpc_percent_decode("a%00b");

    g_assert_cmpstr(kept, ==, "100% %zz %4 %");
    g_assert_cmpstr(invalid,
                    ==,
                    "a\xef\xbf\xbd"
                    "b");
    g_assert_cmpstr(nul,
                    ==,
                    "a\xef\xbf\xbd"
                    "b");
}

static void
test_percent_cuts_between_characters(void)
{
    g_autofree char *encoded = ch_grpc_percent_encode("abü", 7);

    g_assert_cmpstr(encoded, ==, "ab");
}

/* Feeds @bytes in pieces of @piece; returns the messages joined by '|'. */
static char *
read_in_pieces(const uint8_t *bytes, gsize length, gsize piece)
{
    ChGrpcReader reader = {0};
    GString *seen = g_string_new(NULL);

    for (gsize at = 0; at < length; at += piece) {
        const uint8_t *input = bytes + at;
        gsize left = MIN(piece, length - at);
        ChGrpcRead read;

        do {
            g_autoptr(GBytes) message = NULL;

            read = ch_grpc_reader_feed(&reader, &input, &left, &message, NULL);
            if (read == CH_GRPC_READ_MESSAGE) {
                gsize n;
                const char *data = g_bytes_get_data(message, &n);

                g_string_append_len(seen, data, (gssize)n);
                g_string_append_c(seen, '|');
            }
        } while (read == CH_GRPC_READ_MESSAGE && left > 0);
    }
    g_assert_true(ch_grpc_reader_is_between(&reader));
    ch_grpc_reader_clear(&reader);
    return g_string_free(seen, FALSE);
}

static void
test_reader_joins_and_splits(void)
{
    static const uint8_t bytes[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\1d";

    for (gsize piece = 1; piece <= sizeof(bytes) - 1; piece++) {
        g_autofree char *seen = read_in_pieces(bytes, sizeof(bytes) - 1, piece);

        g_assert_cmpstr(seen, ==, "abc||d|");
    }
}

static void
test_reader_refuses(gconstpointer data)
{
    static const struct {
        const char *prefix;
        ChGrpcStatus status;
        const char *text;
    } rows[] = {
        {"\1\0\0\0\1",
         CH_GRPC_INTERNAL,
         "grpc: compressed flag set with identity or empty encoding"},
        {"\2\0\0\0\1", CH_GRPC_INTERNAL, "grpc: received unexpected payload format 2"},
        {"\0\0\x50\0\x09",
         CH_GRPC_RESOURCE_EXHAUSTED,
         "grpc: received message larger than max (5242889 vs. 4194304)"}, /* spec 03 §3.3 */
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        ChGrpcReader reader = {0};
        const uint8_t *input = (const uint8_t *)rows[i].prefix;
        gsize left = CH_GRPC_PREFIX_BYTES;
        g_autoptr(GBytes) message = NULL;
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(
            ch_grpc_reader_feed(&reader, &input, &left, &message, &error), ==, CH_GRPC_READ_ERROR);
        g_assert_error(error, CH_GRPC_ERROR, (int)rows[i].status);
        g_assert_cmpstr(error->message, ==, rows[i].text);
        ch_grpc_reader_clear(&reader);
    }
}

static void
test_reader_holds_what_came_only(void)
{
    ChGrpcReader reader = {0};
    const uint8_t *input = (const uint8_t *)"\0\0\x40\0\0ab"; /* announces the whole 4 MiB */
    gsize left = 7;
    g_autoptr(GBytes) message = NULL;

    g_assert_cmpint(
        ch_grpc_reader_feed(&reader, &input, &left, &message, NULL), ==, CH_GRPC_READ_MORE);
    g_assert_cmpuint(ch_grpc_reader_n_held(&reader), ==, 2);
    g_assert_false(ch_grpc_reader_is_between(&reader));
    ch_grpc_reader_clear(&reader);
    g_assert_true(ch_grpc_reader_is_between(&reader));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/grpc/frame/timeout-format", test_timeout_format);
    g_test_add_func("/grpc/frame/timeout-parse", test_timeout_parse);
    g_test_add_func("/grpc/frame/percent-round-trip", test_percent_round_trip);
    g_test_add_func("/grpc/frame/percent-tolerates-bad-escapes",
                    test_percent_tolerates_bad_escapes);
    g_test_add_func("/grpc/frame/percent-cuts-between-characters",
                    test_percent_cuts_between_characters);
    g_test_add_func("/grpc/frame/reader-joins-and-splits", test_reader_joins_and_splits);
    g_test_add_data_func("/grpc/frame/reader-refuses", NULL, test_reader_refuses);
    g_test_add_func("/grpc/frame/reader-holds-what-came-only", test_reader_holds_what_came_only);
    return g_test_run();
}
