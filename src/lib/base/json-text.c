/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/json-text.h"

#include "lib/base/json-span.h"

/* The letter after the backslash, 0 for characters without a short form. */
static char
short_escape(unsigned char byte)
{
    switch (byte) {
    case '"':
    case '\\':
        return (char)byte;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

static void
append_ascii(GString *out, unsigned char byte)
{
    const char letter = short_escape(byte);

    if (letter != 0) {
        g_string_append_c(out, '\\');
        g_string_append_c(out, letter);
    } else {
        g_string_append_printf(out, "\\u%04x", byte);
    }
}

/* Appends the character at @text. Returns: the bytes it takes, at least one. */
static gsize
append_multibyte(GString *out, const char *text, gsize length)
{
    const gunichar c = g_utf8_get_char_validated(text, (gssize)length);
    gsize size;

    if (c == (gunichar)-1 || c == (gunichar)-2) {
        g_string_append(out, "\\ufffd");
        return 1;
    }
    size = (gsize)g_utf8_skip[(unsigned char)*text];
    if (c == 0x2028 || c == 0x2029)
        g_string_append_printf(out, "\\u%04x", c);
    else
        g_string_append_len(out, text, (gssize)size);
    return size;
}

void
ch_json_text_append(GString *out, const char *text, gsize length)
{
    gsize at = 0;

    g_string_append_c(out, '"');
    while (at < length) {
        const gsize plain = ch_json_span(text + at, length - at, true);

        g_string_append_len(out, text + at, (gssize)plain);
        at += plain;
        if (at == length)
            break;
        if ((unsigned char)text[at] < 0x80)
            append_ascii(out, (unsigned char)text[at++]);
        else
            at += append_multibyte(out, text + at, length - at);
    }
    g_string_append_c(out, '"');
}
