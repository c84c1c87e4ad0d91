/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/frame.h"

#include <stdio.h>
#include <string.h>

void
ch_grpc_prefix_write(uint8_t out_prefix[static CH_GRPC_PREFIX_BYTES], gsize length)
{
    const guint32 big_endian = GUINT32_TO_BE((guint32)length);

    out_prefix[0] = 0;
    memcpy(out_prefix + 1, &big_endian, sizeof(big_endian));
}

static gsize
prefix_length(const ChGrpcReader *reader)
{
    guint32 big_endian;

    memcpy(&big_endian, reader->prefix + 1, sizeof(big_endian));
    return GUINT32_FROM_BE(big_endian);
}

static bool
prefix_check(const ChGrpcReader *reader, GError **error)
{
    const uint8_t flag = reader->prefix[0];
    const gsize length = prefix_length(reader);

    if (flag == 1)
        return ch_grpc_fail(
            error, CH_GRPC_INTERNAL, "grpc: compressed flag set with identity or empty encoding");
    if (flag != 0)
        return ch_grpc_fail(
            error, CH_GRPC_INTERNAL, "grpc: received unexpected payload format %u", flag);
    if (length > CH_GRPC_MAX_MESSAGE_BYTES)
        return ch_grpc_fail(error,
                            CH_GRPC_RESOURCE_EXHAUSTED,
                            "grpc: received message larger than max (%" G_GSIZE_FORMAT " vs. %u)",
                            length,
                            CH_GRPC_MAX_MESSAGE_BYTES);
    return true;
}

static void
take(const uint8_t **bytes, gsize *length, gsize n)
{
    *bytes += n;
    *length -= n;
}

/* Returns: false with an error; the prefix may still be incomplete on true */
static bool
feed_prefix(ChGrpcReader *reader, const uint8_t **bytes, gsize *length, GError **error)
{
    const gsize n = MIN(*length, (gsize)(CH_GRPC_PREFIX_BYTES - reader->n_prefix));

    if (n > 0)
        memcpy(reader->prefix + reader->n_prefix, *bytes, n);
    reader->n_prefix += (guint)n;
    take(bytes, length, n);
    if (reader->n_prefix < CH_GRPC_PREFIX_BYTES)
        return true;
    if (!prefix_check(reader, error))
        return false;
    reader->body_length = prefix_length(reader);
    reader->body = g_byte_array_new();
    return true;
}

ChGrpcRead
ch_grpc_reader_feed(ChGrpcReader *reader,
                    const uint8_t **bytes,
                    gsize *length,
                    GBytes **out_message,
                    GError **error)
{
    gsize n;

    if (reader->body == NULL && !feed_prefix(reader, bytes, length, error))
        return CH_GRPC_READ_ERROR;
    if (reader->body == NULL)
        return CH_GRPC_READ_MORE;

    n = MIN(*length, reader->body_length - reader->body->len);
    if (n > 0)
        g_byte_array_append(reader->body, *bytes, (guint)n);
    take(bytes, length, n);
    if (reader->body->len < reader->body_length)
        return CH_GRPC_READ_MORE;

    *out_message = g_byte_array_free_to_bytes(g_steal_pointer(&reader->body));
    reader->n_prefix = 0;
    return CH_GRPC_READ_MESSAGE;
}

bool
ch_grpc_reader_is_between(const ChGrpcReader *reader)
{
    return reader->n_prefix == 0;
}

gsize
ch_grpc_reader_n_held(const ChGrpcReader *reader)
{
    return reader->body != NULL ? reader->body->len : 0;
}

void
ch_grpc_reader_clear(ChGrpcReader *reader)
{
    g_clear_pointer(&reader->body, g_byte_array_unref);
    reader->n_prefix = 0;
}

#define MAX_TIMEOUT_NUMBER G_GINT64_CONSTANT(99999999) /* eight digits */

/* Ascending: the first unit in which the number fits is the finest. */
static const struct {
    char unit;
    int64_t us;
} timeout_units[] = {
    {'u', 1},
    {'m', 1000},
    {'S', 1000000},
    {'M', 60 * G_GINT64_CONSTANT(1000000)},
    {'H', 3600 * G_GINT64_CONSTANT(1000000)},
};

void
ch_grpc_timeout_format(int64_t timeout_us, char out_text[static CH_GRPC_TIMEOUT_SIZE])
{
    if (timeout_us <= 0) {
        g_strlcpy(out_text, "0n", CH_GRPC_TIMEOUT_SIZE);
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(timeout_units); i++) {
        const int64_t us = timeout_units[i].us;
        const int64_t number = timeout_us / us + (timeout_us % us != 0);

        if (number <= MAX_TIMEOUT_NUMBER) {
            g_snprintf(out_text,
                       CH_GRPC_TIMEOUT_SIZE,
                       "%" G_GINT64_FORMAT "%c",
                       number,
                       timeout_units[i].unit);
            return;
        }
    }
    g_snprintf(out_text, CH_GRPC_TIMEOUT_SIZE, "%" G_GINT64_FORMAT "H", MAX_TIMEOUT_NUMBER);
}

static bool
timeout_scale(int64_t number, char unit, int64_t *out_timeout_us)
{
    if (unit == 'n') {
        *out_timeout_us = number / 1000 + (number % 1000 != 0);
        return true;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(timeout_units); i++) {
        if (timeout_units[i].unit == unit) {
            *out_timeout_us = number * timeout_units[i].us;
            return true;
        }
    }
    return false;
}

bool
ch_grpc_timeout_parse(const char *text, int64_t *out_timeout_us, GError **error)
{
    const gsize length = strlen(text);
    const gsize n_digits = strspn(text, "0123456789");
    const char *problem = NULL;
    g_autofree char *quoted = NULL;

    if (length < 2)
        problem = "timeout string is too short";
    else if (length > 9)
        problem = "timeout string is too long";
    else if (n_digits != length - 1)
        problem = "timeout is not a number and a unit";
    else if (!timeout_scale(g_ascii_strtoll(text, NULL, 10), text[length - 1], out_timeout_us))
        problem = "timeout unit is not recognized";
    if (problem == NULL)
        return true;

    quoted = g_strescape(text, NULL);
    return ch_grpc_fail(
        error, CH_GRPC_INTERNAL, "malformed grpc-timeout: transport: %s: \"%s\"", problem, quoted);
}

/* The length of the character at @text; a byte that is no UTF-8 counts as one. */
static gsize
character_length(const char *text)
{
    const gunichar c = g_utf8_get_char_validated(text, -1);

    return c == (gunichar)-1 || c == (gunichar)-2 ? 1 : (gsize)(g_utf8_next_char(text) - text);
}

char *
ch_grpc_percent_encode(const char *text, gsize max_bytes)
{
    GString *encoded = g_string_new(NULL);

    while (*text != '\0') {
        const gsize before = encoded->len;

        for (gsize left = character_length(text); left > 0; left--, text++) {
            const guchar byte = (guchar)*text;

            if (byte >= 0x20 && byte <= 0x7e && byte != '%')
                g_string_append_c(encoded, (char)byte);
            else
                g_string_append_printf(encoded, "%%%02X", byte);
        }
        if (encoded->len > max_bytes) {
            g_string_truncate(encoded, before);
            break;
        }
    }
    return g_string_free(encoded, FALSE);
}

char *
ch_grpc_percent_decode(const char *text)
{
    g_autoptr(GString) decoded = g_string_new(NULL);

    while (*text != '\0') {
        if (text[0] == '%' && g_ascii_isxdigit(text[1]) && g_ascii_isxdigit(text[2])) {
            const int byte = g_ascii_xdigit_value(text[1]) << 4 | g_ascii_xdigit_value(text[2]);

            g_string_append_c(decoded, (char)byte);
            text += 3;
        } else {
            g_string_append_c(decoded, *text++);
        }
    }
    return g_utf8_make_valid(decoded->str, (gssize)decoded->len);
}
