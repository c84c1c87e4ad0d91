/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/json-text.h"

#include "lib/base/json-span.h"

#define BYTES(literal) literal, sizeof(literal) - 1

static const struct TextCase {
    const char *path;
    const char *bytes;
    gsize length;
    const char *expect;
} cases[] = {
    {"/json-text/empty", BYTES(""), "\"\""},
    {"/json-text/slash-and-html-stay", BYTES("</a>&'"), "\"</a>&'\""},
    {"/json-text/quote-and-backslash", BYTES("\"\\"), "\"\\\"\\\\\""},
    {"/json-text/short-forms", BYTES("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
    {"/json-text/control-characters",
     BYTES("\0\x01\x1b[m\x1f"),
     "\"\\u0000\\u0001\\u001b[m\\u001f\""},
    {"/json-text/delete-is-plain", BYTES("\x7f"), "\"\x7f\""},
    {"/json-text/utf8-stays", BYTES("ä€😀"), "\"ä€😀\""},
    {"/json-text/line-separators", BYTES("\u2028\u2029\u2030"), "\"\\u2028\\u2029\u2030\""},
    {"/json-text/stray-continuation", BYTES("a\x80z"), "\"a\\ufffdz\""},
    {"/json-text/cut-character", BYTES("\xe2\x82"), "\"\\ufffd\\ufffd\""},
    {"/json-text/overlong", BYTES("\xc0\xaf"), "\"\\ufffd\\ufffd\""},
    {"/json-text/surrogate", BYTES("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\""},
    {"/json-text/beyond-unicode", BYTES("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
};

static void
test_append(gconstpointer data)
{
    const struct TextCase *c = data;
    g_autoptr(GString) out = g_string_new("x");

    ch_json_text_append(out, c->bytes, c->length);
    g_assert_cmpstr(out->str + 1, ==, c->expect);
}

/* A NUL inside of a multi-byte character must end it, not the text. */
static void
test_nul_after_lead_byte(void)
{
    g_autoptr(GString) out = g_string_new(NULL);

    ch_json_text_append(out, BYTES("\xe2\0z"));
    g_assert_cmpstr(out->str, ==, "\"\\ufffd\\u0000z\"");
}

/* Each byte at each place of texts around the eight bytes that are looked at together. */
static void
test_span_stops_where_it_must(void)
{
    for (gsize length = 1; length <= 20; length++) {
        for (gsize at = 0; at < length; at++) {
            for (int byte = 0; byte < 256; byte++) {
                char text[20];
                const bool is_plain = byte >= 0x20 && byte != '"' && byte != '\\';

                memset(text, ' ', sizeof(text));
                text[at] = (char)byte;
                g_assert_cmpuint(ch_json_span(text, length, false), ==, is_plain ? length : at);
                g_assert_cmpuint(
                    ch_json_span(text, length, true), ==, is_plain && byte < 0x80 ? length : at);
                text[length - 1] = '"'; /* the first of two counts */
                g_assert_cmpuint(ch_json_span(text, length, false),
                                 ==,
                                 is_plain ? length - 1 : MIN(at, length - 1));
            }
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_append);
    g_test_add_func("/json-text/nul-after-lead-byte", test_nul_after_lead_byte);
    g_test_add_func("/json-text/span-stops-where-it-must", test_span_stops_where_it_must);
    return g_test_run();
}
