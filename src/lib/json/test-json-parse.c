/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/json/json.h"

#include "lib/base/errors.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void
assert_prints(const char *text, const char *expect)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) json = ch_json_parse(text, -1, &error);
    g_autofree char *printed = NULL;

    g_test_message("%s", text);
    g_assert_no_error(error);
    printed = ch_json_print(json, NULL);
    g_assert_cmpstr(printed, ==, expect);
}

static void
assert_refused(const char *text, gssize length, ChErrorCode code)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) json = ch_json_parse(text, length, &error);

    g_assert_null(json);
    g_assert_error(error, CH_ERROR, (int)code);
}

static const char *const numbers[] = {
    "0",
    "-0",
    "-1",
    "1.10",
    "1e5",
    "1E+5",
    "-0.0",
    "1e-999",
    "1e999",
    "0.1",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "3.141592653589793238462643383279502884",
};

/* Through every operation that could rewrite a number: parse, dup, edit next to it, print. */
static void
test_numbers_keep_their_text(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
        g_autofree char *text = g_strdup_printf("{\"a\":[%s],\"b\":%s}", numbers[i], numbers[i]);
        g_autofree char *expect =
            g_strdup_printf("{\"a\":[%s],\"b\":%s,\"c\":1}", numbers[i], numbers[i]);
        g_autoptr(ChJson) json = ch_json_parse(text, -1, NULL);
        g_autoptr(ChJson) copy = ch_json_dup(json);
        g_autofree char *printed = NULL;

        g_assert_nonnull(copy);
        g_clear_pointer(&json, ch_json_unref); /* the copy owns its own text */
        ch_json_set_int(copy, "c", 1);
        printed = ch_json_print(copy, NULL);
        g_assert_cmpstr(printed, ==, expect);
    }
}

static void
append_random_value(GString *out, guint depth)
{
    static const char *const strings[] = {
        "\"\"",
        "\"a/b\"",
        "\"\\u0000\"",
        "\"\\\"\\\\\\b\\f\\n\\r\\t\"",
        "\"\\u2028é😀\\u001f\"",
    };
    const int n = g_test_rand_int_range(0, 4);

    switch (g_test_rand_int_range(depth < 6 ? 0 : 2, 8)) {
    case 0:
        g_string_append_c(out, '{');
        for (int i = 0; i < n; i++) {
            g_string_append_printf(out, "%s\"kubevirt.io/k%d\":", i > 0 ? "," : "", i);
            append_random_value(out, depth + 1);
        }
        g_string_append_c(out, '}');
        break;
    case 1:
        g_string_append_c(out, '[');
        for (int i = 0; i < n; i++) {
            g_string_append(out, i > 0 ? "," : "");
            append_random_value(out, depth + 1);
        }
        g_string_append_c(out, ']');
        break;
    case 2:
        g_string_append(out, "true");
        break;
    case 3:
        g_string_append(out, "false");
        break;
    case 4:
        g_string_append(out, "null");
        break;
    case 5:
        g_string_append(out, strings[g_test_rand_int_range(0, G_N_ELEMENTS(strings))]);
        break;
    default:
        g_string_append(out, numbers[g_test_rand_int_range(0, G_N_ELEMENTS(numbers))]);
        break;
    }
}

static void
test_random_documents_survive(void)
{
    for (int round = 0; round < 2000; round++) {
        g_autoptr(GString) text = g_string_new("[");
        g_autoptr(ChJson) json = NULL, copy = NULL, again = NULL;
        g_autofree char *compact = NULL, *pretty = NULL;

        append_random_value(text, 0);
        g_string_append_c(text, ']');
        json = ch_json_parse(text->str, (gssize)text->len, NULL);
        copy = ch_json_dup(json);
        compact = ch_json_print(copy, NULL);
        g_assert_cmpstr(compact, ==, text->str);

        pretty = ch_json_print_pretty(json);
        again = ch_json_parse(pretty, -1, NULL);
        g_assert_true(ch_json_equal(json, again));
    }
}

static void
test_strings(void)
{
    assert_prints("\"\\/\\u002f</b>&\"", "\"//</b>&\"");
    assert_prints("\"\\u00e4\\u20ac\\ud83d\\ude00\"", "\"ä€😀\"");
    assert_prints("\"a\\u0000b\"", "\"a\\u0000b\"");
    assert_prints("\"\\u001b\\u007f\"", "\"\\u001b\x7f\"");
    assert_prints("\"\u2028\"", "\"\\u2028\"");
    /* halves of surrogate pairs */
    assert_prints("\"\\ud800\"", "\"\ufffd\"");
    assert_prints("\"\\ud800x\"", "\"\ufffdx\"");
    assert_prints("\"\\udc00\\ud800\"", "\"\ufffd\ufffd\"");
    assert_prints("\"\\ud800\\u0041\"", "\"\ufffdA\"");
    assert_prints("\"\\ud83d\\ud83d\\ude00\"", "\"\ufffd😀\"");
    assert_prints("\"\\ud800\\n\"", "\"\ufffd\\n\"");
}

static void
test_members(void)
{
    assert_prints(" { \"b\" : 1 ,\r\n\t\"a\" : 2 } ", "{\"b\":1,\"a\":2}");
    assert_prints("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}");
    assert_prints("{\"\":{},\"n\":null,\"l\":[null,[]]}", "{\"\":{},\"n\":null,\"l\":[null,[]]}");
    assert_prints("{\"a\\n\":1}", "{\"a\\n\":1}");
}

static void
test_malformed(void)
{
    static const char *const texts[] = {
        "",
        " ",
        "null",
        "{",
        "}",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{'a':1}",
        "{1:2}",
        "{\"a\" 1}",
        "[1]x",
        "[1][2]",
        "1 2",
        "nul",
        "nulL",
        "True",
        "NaN",
        "Infinity",
        "-Infinity",
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "1.e1",
        "0x10",
        "1_0",
        "\"",
        "\"a",
        "'a'",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\",
        "\"\n\"",
        "\"\t\"",
        "\"\x1f\"",
        "/* c */ 1",
        "[1] // c",
        "\xef\xbb\xbf[]",
        "{\"a\\u0000b\":1}",
        "[1\v]",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_test_message("%s", texts[i]);
        assert_refused(texts[i], -1, CH_ERROR_INVALID);
    }
}

/* An empty field of protobuf-c is NULL. */
static void
test_no_text(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_json_parse(NULL, 0, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_invalid_utf8(void)
{
    static const char *const texts[] = {
        "\"\x80\"",
        "\"\xc0\xaf\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe2\x82\"",
        "[\xff]",
        "{\"\xc3\":1}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        assert_refused(texts[i], -1, CH_ERROR_INVALID);
    assert_refused("\"a\0b\"", 5, CH_ERROR_INVALID);
    assert_refused("[1]\0", 4, CH_ERROR_INVALID);
}

static const char sample[] =
    "{\"apiVersion\":\"kubevirt.io/v1\",\"metadata\":{\"name\":\"vm\",\"labels\":{\"a/"
    "b\":\"\\u00e4\\n\"},"
    "\"generation\":18446744073709551615},\"spec\":{\"list\":[1.10,-2e5,true,false,null,{}],\"s\":"
    "\"é\"}}";

/* Each prefix is refused: in a buffer of exactly its size, so that ASan sees a read beyond it. */
static void
test_truncated_everywhere(void)
{
    const gsize length = sizeof sample - 1;
    g_autoptr(ChJson) whole = ch_json_parse(sample, (gssize)length, NULL);

    g_assert_nonnull(whole);
    for (gsize n = 0; n < length; n++) {
        g_autofree char *prefix = g_memdup2(sample, n);

        assert_refused(prefix != NULL ? prefix : "", (gssize)n, CH_ERROR_INVALID);
    }
}

/* What is left out is checked as strictly. */
static void
assert_nothing_of_it(const char *text, gssize length, bool is_good)
{
    static const ChJsonPart none[] = {{NULL, NULL}};
    g_autoptr(ChJson) json = ch_json_parse_parts(text, length, none, NULL);

    g_assert_cmpint(json != NULL, ==, is_good);
    g_assert_cmpuint(ch_json_is_object(json) ? ch_json_length(json) : 0, ==, 0);
}

static void
test_parts(void)
{
    static const ChJsonPart inner[] = {{"x", NULL}, {NULL, NULL}};
    static const ChJsonPart parts[] = {{"all", NULL}, {"some", inner}, {NULL, NULL}};
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"{}", "{}"},
        {"{\"other\":{\"all\":1}}", "{}"},
        {"{\"al\":1,\"allx\":2,\"\":3,\"a\\u006cl\":4}", "{\"all\":4}"},
        {"{\"all\":{\"x\":1,\"some\":{\"y\":2}}}", "{\"all\":{\"x\":1,\"some\":{\"y\":2}}}"},
        {"{\"some\":{\"y\":[{}],\"x\":{\"y\":1}},\"all\":2}",
         "{\"some\":{\"x\":{\"y\":1}},\"all\":2}"},
        {"{\"some\":[{\"x\":1,\"y\":1},[{\"y\":1}],\"s\",null]}",
         "{\"some\":[{\"x\":1},[{}],\"s\",null]}"},
        {"{\"some\":7,\"other\":[1,\"\\ud800\",true,false,null,-1.5e3]}", "{\"some\":7}"},
        {"{\"all\":1,\"other\":2,\"all\":3}", "{\"all\":3}"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChJson) json = ch_json_parse_parts(cases[i].text, -1, parts, &error);
        g_autofree char *printed = NULL;

        g_assert_no_error(error);
        printed = ch_json_print(json, NULL);
        g_assert_cmpstr(printed, ==, cases[i].expect);
    }
}

/* No single wrong byte may crash it; what it accepts must print as something it accepts again. */
static void
test_any_wrong_byte(void)
{
    const gsize length = sizeof sample - 1;

    for (gsize n = 0; n < length; n++) {
        for (int byte = 0; byte < 256; byte += 3) {
            g_autofree char *text = g_memdup2(sample, length);
            g_autoptr(ChJson) json = NULL, again = NULL;
            g_autofree char *printed = NULL;

            text[n] = (char)byte;
            json = ch_json_parse(text, (gssize)length, NULL);
            assert_nothing_of_it(text, (gssize)length, json != NULL);
            if (json == NULL)
                continue;
            printed = ch_json_print(json, NULL);
            again = ch_json_parse(printed, -1, NULL);
            g_assert_true(ch_json_equal(json, again));
        }
    }
}

static char *
nested(guint depth)
{
    g_autofree char *open = g_strnfill(depth, '[');
    g_autofree char *close = g_strnfill(depth, ']');

    return g_strconcat(open, close, NULL);
}

static void
test_depth_limit(void)
{
    g_autofree char *deepest = nested(CH_JSON_MAX_DEPTH);
    g_autofree char *too_deep = nested(CH_JSON_MAX_DEPTH + 1);
    g_autofree char *absurd = g_strnfill(1 << 20, '[');
    g_autofree char *deep_value = nested(CH_JSON_MAX_DEPTH - 1);
    g_autofree char *in_member_deepest = g_strconcat("{\"x\":", deep_value, "}", NULL);
    g_autofree char *in_member_too_deep = g_strconcat("{\"x\":", deepest, "}", NULL);

    assert_prints(deepest, deepest);
    assert_refused(too_deep, -1, CH_ERROR_LIMIT);
    assert_nothing_of_it(in_member_deepest, -1, true);
    assert_nothing_of_it(in_member_too_deep, -1, false);
    assert_refused(absurd, -1, CH_ERROR_LIMIT);
}

static void
test_size_limits(void)
{
    g_autofree char *number = g_strnfill(CH_JSON_MAX_NUMBER, '1');
    g_autofree char *long_number = g_strnfill(CH_JSON_MAX_NUMBER + 1, '1');
    g_autofree char *spaces = g_strnfill(CH_JSON_MAX_BYTES + 1, ' ');
    g_autoptr(GString) objects = g_string_new("[{}");

    assert_prints(number, number);
    assert_refused(long_number, -1, CH_ERROR_LIMIT);
    spaces[0] = '1';
    assert_refused(spaces, -1, CH_ERROR_LIMIT);

    for (guint i = 0; i < CH_JSON_MAX_TREE_BYTES / 128; i++)
        g_string_append(objects, ",{}");
    g_string_append_c(objects, ']');
    assert_refused(objects->str, -1, CH_ERROR_LIMIT);
}

/* Two letters a bit, so that all names have one g_str_hash(). They take minutes where each is
 * compared with all before. */
static void
test_names_with_one_hash(void)
{
    const guint n_bits = 16;
    g_autoptr(GString) text = g_string_new("{");
    g_autoptr(GString) name = g_string_new(NULL);
    g_autoptr(ChJson) json = NULL;
    int64_t value;

    for (guint i = 0; i < 1u << n_bits; i++) {
        g_string_truncate(name, 0);
        for (guint bit = 0; bit < n_bits; bit++)
            g_string_append(name, i >> bit & 1 ? "Ez" : "FY");
        g_string_append_printf(text, "%s\"%s\":%u", i > 0 ? "," : "", name->str, i);
    }
    g_string_append_c(text, '}');
    json = ch_json_parse(text->str, (gssize)text->len, NULL);
    g_assert_cmpuint(ch_json_length(json), ==, 1u << n_bits);
    g_assert_true(ch_json_int_at(json, &value, name->str));
    g_assert_cmpint(value, ==, (1u << n_bits) - 1);
}

/* The text ends where the memory does. */
static void
test_reads_nothing_behind_the_text(void)
{
    static const char text[] =
        "{\"some-name\":[12345678,\"1234567 \xc3\xa4\\u00e4\",true,null,-0.5]}";
    const gsize page = (gsize)sysconf(_SC_PAGESIZE), length = sizeof(text) - 1;
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    g_assert_true(memory != MAP_FAILED);
    g_assert_cmpint(mprotect(memory + page, page, PROT_NONE), ==, 0);
    for (gsize n = 0; n <= length; n++) {
        g_autoptr(ChJson) json = NULL;

        memcpy(memory + page - n, text, n);
        json = ch_json_parse(memory + page - n, (gssize)n, NULL);
        g_assert_cmpint(json != NULL, ==, n == length);
    }
    g_assert_cmpint(munmap(memory, 2 * page), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json-parse/numbers-keep-their-text", test_numbers_keep_their_text);
    g_test_add_func("/json-parse/random-documents-survive", test_random_documents_survive);
    g_test_add_func("/json-parse/strings", test_strings);
    g_test_add_func("/json-parse/members", test_members);
    g_test_add_func("/json-parse/malformed", test_malformed);
    g_test_add_func("/json-parse/no-text", test_no_text);
    g_test_add_func("/json-parse/invalid-utf8", test_invalid_utf8);
    g_test_add_func("/json-parse/truncated-everywhere", test_truncated_everywhere);
    g_test_add_func("/json-parse/parts", test_parts);
    g_test_add_func("/json-parse/any-wrong-byte", test_any_wrong_byte);
    g_test_add_func("/json-parse/depth-limit", test_depth_limit);
    g_test_add_func("/json-parse/size-limits", test_size_limits);
    g_test_add_func("/json-parse/names-with-one-hash", test_names_with_one_hash);
    g_test_add_func("/json-parse/reads-nothing-behind-the-text",
                    test_reads_nothing_behind_the_text);
    return g_test_run();
}
