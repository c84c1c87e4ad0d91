/* SPDX-License-Identifier: Apache-2.0 */

/*
 * json-span: how much of a text JSON takes as it is, eight bytes at a time.
 *
 * Pure. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <string.h>

/* In a byte's highest bit: whether this byte of the word is below @limit (up to 0x80), or is @byte.
 * Bytes above one that is may be told wrongly. */
#define CH_JSON_EACH(byte)         (G_GUINT64_CONSTANT(0x0101010101010101) * (byte))
#define CH_JSON_BELOW(word, limit) (((word)-CH_JSON_EACH(limit)) & ~(word)&CH_JSON_EACH(0x80))
#define CH_JSON_IS(word, byte)     CH_JSON_BELOW((word) ^ CH_JSON_EACH(byte), 1)

/**
 * ch_json_span: counts the bytes before the first control character, quote or backslash.
 * @only_ascii: or the first byte that is not ASCII
 */
static inline gsize
ch_json_span(const char *text, gsize length, bool only_ascii)
{
    gsize n = 0;

    while (n + sizeof(guint64) <= length) {
        guint64 word, found;

        memcpy(&word, text + n, sizeof(word));
        word = GUINT64_FROM_LE(word); /* the first byte is the lowest */
        found = CH_JSON_BELOW(word, 0x20) | CH_JSON_IS(word, '"') | CH_JSON_IS(word, '\\') |
                (only_ascii ? word & CH_JSON_EACH(0x80) : 0);
        if (found != 0)
            return n + (gsize)__builtin_ctzll(found) / 8;
        n += sizeof(word);
    }
    while (n < length && (guchar)text[n] >= 0x20 && (!only_ascii || (guchar)text[n] < 0x80) &&
           text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}
