/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/json/json.h"

#include <string.h>

static ChJson *
parse(const char *text)
{
    ChJson *json = ch_json_parse(text, -1, NULL);

    g_assert_nonnull(json);
    return json;
}

static void
assert_text(const ChJson *json, const char *expect)
{
    gsize length = 0;
    g_autofree char *text = ch_json_print(json, &length);

    g_assert_cmpstr(text, ==, expect);
    g_assert_cmpuint(length, ==, strlen(expect));
}

static void
test_walks_by_names(void)
{
    g_autoptr(ChJson) json =
        parse("{\"metadata\":{\"labels\":{\"kubevirt.io/nodeName\":\"n\"},\"u\":null},"
              "\"l\":[1],\"n\":7,\"t\":true,\"z\":\"a\\u0000b\"}");
    int64_t value = 42;

    g_assert_cmpstr(ch_json_string_at(json, "metadata", "labels", "kubevirt.io/nodeName"), ==, "n");
    g_assert_null(ch_json_at(json, "metadata", "u", "x"));
    g_assert_null(ch_json_at(json, "metadata", "absent", "x"));
    g_assert_null(ch_json_at(json, "l", "0"));
    g_assert_null(ch_json_at(NULL, "l"));
    g_assert_null(ch_json_string_at(json, "n"));
    g_assert_null(ch_json_string_at(json, "z"));
    g_assert_false(ch_json_int_at(json, &value, "t"));
    g_assert_cmpint(value, ==, 42);
    g_assert_true(ch_json_int_at(json, &value, "n"));
    g_assert_cmpint(value, ==, 7);
    g_assert_true(ch_json_bool_at(json, false, "t"));
    g_assert_true(ch_json_bool_at(json, true, "n"));
    g_assert_false(ch_json_bool_at(json, false, "absent"));
    g_assert_true(ch_json_has(ch_json_at(json, "metadata"), "u"));
    g_assert_false(ch_json_has(json, "u"));
    g_assert_false(ch_json_has(NULL, "u"));
}

static void
test_find(void)
{
    g_autoptr(ChJson) list = ch_json_parse("[{\"name\":\"a\",\"n\":1},{\"name\":\"b\",\"n\":2},5,"
                                           "{\"name\":\"b\",\"n\":3},{\"name\":7,\"n\":4}]",
                                           -1,
                                           NULL);
    g_autoptr(ChJson) strings = ch_json_parse("[1,\"a\",\"b\"]", -1, NULL);
    int64_t n = 0;
    gsize index = 99;

    g_assert_true(ch_json_int_at(ch_json_find(list, "name", "b"), &n, "n"));
    g_assert_cmpint(n, ==, 2);
    g_assert_null(ch_json_find(list, "name", "c"));
    g_assert_null(ch_json_find(list, "name", "7"));
    g_assert_null(ch_json_find(NULL, "name", "a"));
    g_assert_true(ch_json_find(list, "name", NULL) == ch_json_item(list, 2));
    g_assert_true(ch_json_find_index(list, "name", "b", &index) == ch_json_item(list, index));
    g_assert_null(ch_json_find_index(list, "name", "c", &index));
    g_assert_true(ch_json_contains(strings, "b"));
    g_assert_false(ch_json_contains(strings, "1"));
    g_assert_false(ch_json_contains(list, "b"));
    g_assert_false(ch_json_contains(NULL, "b"));
}

static void
test_integers(void)
{
    static const struct {
        const char *text;
        bool expect_ok;
        int64_t expect;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"9223372036854775807", true, G_MAXINT64},
        {"-9223372036854775808", true, G_MININT64},
        {"9223372036854775808", false, 0},
        {"18446744073709551615", false, 0},
        {"-9223372036854775809", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"\"1\"", false, 0},
        {"[1]", false, 0},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ChJson) json = parse(cases[i].text);
        int64_t value = 42;

        g_test_message("%s", cases[i].text);
        g_assert_cmpint(ch_json_as_int(json, &value), ==, cases[i].expect_ok);
        g_assert_cmpint(value, ==, cases[i].expect_ok ? cases[i].expect : 42);
    }
}

static void
test_members_keep_their_place(void)
{
    g_autoptr(ChJson) json = parse("{\"a\":1,\"b\":2,\"c\":3}");

    ch_json_set_string(json, "b", "x");
    ch_json_set(json, "a", NULL);
    ch_json_set_bool(json, "d", false);
    ch_json_remove(json, "absent");
    assert_text(json, "{\"a\":null,\"b\":\"x\",\"c\":3,\"d\":false}");
    ch_json_set_string(json, "b", NULL);
    ch_json_remove(json, "a");
    assert_text(json, "{\"c\":3,\"d\":false}");
}

/* As a plain list of names would have it, at sizes with and without an index. */
/* A document whose members "k0" to "k39" have their name as value, the last one twice. */
static ChJson *
parse_many(GPtrArray *names)
{
    g_autoptr(GString) text = g_string_new("{\"k39\":[1]");

    g_ptr_array_add(names, g_strdup("k39"));
    for (int i = 0; i < 39; i++) {
        g_string_append_printf(text, ",\"k%d\":\"k%d\"", i, i);
        g_ptr_array_add(names, g_strdup_printf("k%d", i));
    }
    g_string_append(text, ",\"k39\":\"k39\"}");
    return parse(text->str);
}

/* The same of a tree that was built (@origin 0), parsed (1) or copied (2). */
static void
test_many_edits_keep_order(gconstpointer origin)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ChJson) parsed = GPOINTER_TO_INT(origin) != 0 ? parse_many(names) : NULL;
    g_autoptr(ChJson) json = GPOINTER_TO_INT(origin) == 0   ? ch_json_new_object()
                             : GPOINTER_TO_INT(origin) == 1 ? ch_json_ref(parsed)
                                                            : ch_json_dup(parsed);

    for (int round = 0; round < 4000; round++) {
        g_autofree char *name = g_strdup_printf("k%d", g_test_rand_int_range(0, 90));
        ChJsonIter iter;
        const char *key;
        ChJson *value;
        guint at;

        if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, &at) && g_test_rand_bit()) {
            g_ptr_array_remove_index(names, at);
            ch_json_remove(json, name);
        } else if (!g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL)) {
            g_ptr_array_add(names, g_strdup(name));
            ch_json_set_string(json, name, name);
        } else {
            ch_json_set_string(json, name, name);
        }
        g_assert_cmpuint(ch_json_length(json), ==, names->len);
        ch_json_iter_init(&iter, json);
        for (at = 0; ch_json_iter_next(&iter, &key, &value); at++) {
            g_assert_cmpstr(key, ==, names->pdata[at]);
            g_assert_cmpstr(ch_json_as_string(value), ==, key);
            g_assert_true(ch_json_at(json, key) == value);
        }
    }
}

/* What is held outlives the document that it came from, also as a part of another. */
static void
test_parts_outlive_their_document(void)
{
    g_autoptr(ChJson) other = parse("{\"own\":1}");
    g_autoptr(ChJson) kept = NULL;
    g_autoptr(ChJson) item = NULL;

    for (int origin = 0; origin < 2; origin++) {
        g_autoptr(ChJson) parsed = parse("{\"a\":{\"b\":[\"text\",2]},\"l\":[3,4]}");
        g_autoptr(ChJson) json = origin == 0 ? ch_json_ref(parsed) : ch_json_dup(parsed);

        ch_json_set(other, origin == 0 ? "x" : "y", ch_json_ref(ch_json_at(json, "a")));
        ch_json_unref(kept);
        kept = ch_json_ref(ch_json_at(json, "a", "b"));
        ch_json_unref(item);
        item = ch_json_ref(ch_json_item(ch_json_at(json, "l"), 1));
    }
    assert_text(other, "{\"own\":1,\"x\":{\"b\":[\"text\",2]},\"y\":{\"b\":[\"text\",2]}}");
    assert_text(item, "4");
    ch_json_append(kept, ch_json_new_int(5));
    assert_text(other, "{\"own\":1,\"x\":{\"b\":[\"text\",2]},\"y\":{\"b\":[\"text\",2,5]}}");
    ch_json_remove(other, "x");
    ch_json_remove(other, "y");
    assert_text(kept, "[\"text\",2,5]");
}

/* Larger than one piece of an arena, by one value and by many. */
static void
test_large_documents(void)
{
    g_autofree char *long_text = g_strnfill(100000, 'x');
    g_autoptr(ChJson) built = ch_json_new_array();
    g_autoptr(ChJson) parsed = NULL;
    g_autoptr(ChJson) copy = NULL;
    g_autofree char *text = NULL;

    for (int i = 0; i < 5000; i++) {
        ChJson *object = ch_json_new_object();

        ch_json_set_int(object, "n", i);
        if (i % 1000 == 0)
            ch_json_set_string(object, "long", long_text);
        ch_json_append(built, object);
    }
    text = ch_json_print(built, NULL);
    parsed = parse(text);
    copy = ch_json_dup(parsed);
    g_assert_true(ch_json_equal(parsed, built));
    assert_text(copy, text);
    while (ch_json_length(copy) > 0)
        ch_json_remove_item(copy, ch_json_length(copy) / 2);
    assert_text(parsed, text);
}

static void
test_kinds_of_numbers(void)
{
    g_autoptr(ChJson) json =
        parse("[1,18446744073709551615,18446744073709551616,1.5,1e3,\"1\",true]");
    static const bool is_integer[] = {true, true, false, false, false, false, false};

    for (gsize i = 0; i < G_N_ELEMENTS(is_integer); i++) {
        g_assert_cmpint(ch_json_is_integer(ch_json_item(json, i)), ==, is_integer[i]);
        g_assert_cmpint(ch_json_is_number(ch_json_item(json, i)), ==, i < 5);
    }
    g_assert_cmpfloat(ch_json_as_double(ch_json_item(json, 3)), ==, 1.5);
    g_assert_cmpfloat(ch_json_as_double(ch_json_item(json, 5)), ==, 0);
    g_assert_true(ch_json_is_bool(ch_json_item(json, 6)));
    g_assert_false(ch_json_is_bool(NULL));
}

static void
test_ensure(void)
{
    g_autoptr(ChJson) json = parse("{\"a\":{\"x\":1},\"b\":null}");

    ch_json_set_int(ch_json_ensure_object(json, "a"), "y", 2);
    ch_json_set_int(ch_json_ensure_object(json, "b"), "y", 3);
    ch_json_set_int(ch_json_ensure_object(json, "c"), "y", 4);
    g_assert_true(ch_json_ensure_array(json, "d") == ch_json_at(json, "d"));
    g_assert_true(ch_json_ensure_array(json, "d") == ch_json_at(json, "d"));
    ch_json_ensure_array(json, "c");
    assert_text(json, "{\"a\":{\"x\":1,\"y\":2},\"b\":{\"y\":3},\"c\":[],\"d\":[]}");
}

static void
test_array_items(void)
{
    g_autoptr(ChJson) array = ch_json_new_array();

    ch_json_append(array, ch_json_new_string("c"));
    ch_json_insert_item(array, 0, ch_json_new_string("a"));
    ch_json_insert_item(array, 1, ch_json_new_number("1.50"));
    ch_json_insert_item(array, 3, NULL);
    assert_text(array, "[\"a\",1.50,\"c\",null]");
    ch_json_set_item(array, 2, ch_json_new_bool(true));
    ch_json_remove_item(array, 0);
    ch_json_remove_item(array, 9);
    assert_text(array, "[1.50,true,null]");
    g_assert_cmpuint(ch_json_length(array), ==, 3);
    g_assert_null(ch_json_item(array, 3));
}

static void
test_iterates_in_order(void)
{
    g_autoptr(ChJson) json = parse("{\"z\":1,\"a\":null,\"m\":{}}");
    g_autoptr(ChJson) array = parse("[1]");
    g_autoptr(GString) seen = g_string_new(NULL);
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ch_json_iter_init(&iter, json);
    while (ch_json_iter_next(&iter, &key, &value))
        g_string_append_printf(seen, "%s%s ", key, value == NULL ? "!" : "");
    g_assert_cmpstr(seen->str, ==, "z a! m ");
    g_assert_cmpuint(ch_json_length(json), ==, 3);
    g_assert_cmpuint(ch_json_length(NULL), ==, 0);

    ch_json_iter_init(&iter, array);
    g_assert_false(ch_json_iter_next(&iter, &key, &value));
    ch_json_iter_init(&iter, NULL);
    g_assert_false(ch_json_iter_next(&iter, &key, &value));
}

static void
test_pretty(void)
{
    g_autoptr(ChJson) json = parse("{\"a\":[1,{}],\"b\":[],\"c\":{\"d\":null}}");
    g_autofree char *text = ch_json_print_pretty(json);

    g_assert_cmpstr(text,
                    ==,
                    "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": [],\n  \"c\": {\n    \"d\": "
                    "null\n  }\n}");
}

static void
test_new_number(void)
{
    g_assert_null(ch_json_new_number(""));
    g_assert_null(ch_json_new_number("1 "));
    g_assert_null(ch_json_new_number("01"));
    g_assert_null(ch_json_new_number("nan"));
}

static void
test_equal(void)
{
    static const struct {
        const char *a, *b;
        bool expect;
    } cases[] = {
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
        {"{\"a\":1}", "{\"a\":1,\"b\":null}", false},
        {"{\"a\":null}", "{\"b\":null}", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"[]", "{}", false},
        {"[null]", "[false]", false},
        {"[null]", "[null]", true},
        {"true", "false", false},
        {"\"a\\u0000b\"", "\"a\\u0000c\"", false},
        {"\"a\"", "\"a\\u0000\"", false},
        {"\"1\"", "1", false},
        {"1", "1.0", true},
        {"1.10", "1.1", true},
        {"100", "1e2", true},
        {"0.001", "1E-3", true},
        {"0", "-0.0e7", true},
        {"1", "-1", false},
        {"9007199254740992", "9007199254740993", false},
        {"9007199254740993.0", "9007199254740992", false},
        {"18446744073709551615", "18446744073709551614", false},
        {"18446744073709551616", "18446744073709551616.0", true},
        {"1e400", "1e401", false},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ChJson) a = parse(cases[i].a);
        g_autoptr(ChJson) b = parse(cases[i].b);

        g_test_message("%s %s", cases[i].a, cases[i].b);
        g_assert_cmpint(ch_json_equal(a, b), ==, cases[i].expect);
        g_assert_cmpint(ch_json_equal(b, a), ==, cases[i].expect);
    }
    g_assert_true(ch_json_equal(NULL, NULL));
}

static void
test_dup_is_deep(void)
{
    g_autoptr(ChJson) json = parse("{\"a\":{\"b\":[1,\"x\\u0000y\",null,18446744073709551615]}}");
    g_autoptr(ChJson) copy = ch_json_dup(json);

    ch_json_append(ch_json_at(json, "a", "b"), ch_json_new_int(2));
    assert_text(copy, "{\"a\":{\"b\":[1,\"x\\u0000y\",null,18446744073709551615]}}");
    g_assert_null(ch_json_dup(NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json/walks-by-names", test_walks_by_names);
    g_test_add_func("/json/find", test_find);
    g_test_add_func("/json/integers", test_integers);
    g_test_add_func("/json/members-keep-their-place", test_members_keep_their_place);
    g_test_add_data_func(
        "/json/many-edits-keep-order/built", GINT_TO_POINTER(0), test_many_edits_keep_order);
    g_test_add_data_func(
        "/json/many-edits-keep-order/parsed", GINT_TO_POINTER(1), test_many_edits_keep_order);
    g_test_add_data_func(
        "/json/many-edits-keep-order/copied", GINT_TO_POINTER(2), test_many_edits_keep_order);
    g_test_add_func("/json/parts-outlive-their-document", test_parts_outlive_their_document);
    g_test_add_func("/json/large-documents", test_large_documents);
    g_test_add_func("/json/kinds-of-numbers", test_kinds_of_numbers);
    g_test_add_func("/json/ensure", test_ensure);
    g_test_add_func("/json/array-items", test_array_items);
    g_test_add_func("/json/iterates-in-order", test_iterates_in_order);
    g_test_add_func("/json/pretty", test_pretty);
    g_test_add_func("/json/new-number", test_new_number);
    g_test_add_func("/json/equal", test_equal);
    g_test_add_func("/json/dup-is-deep", test_dup_is_deep);
    return g_test_run();
}
