/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/jsonpatch.h"

#include "lib/base/errors.h"

#define OK (-1)

static const struct {
    const char *document;
    const char *patch;
    int code; /* OK, or of CH_ERROR */
    const char *expect;
} patches[] = {
    {"{\"a\":1}", "[]", OK, "{\"a\":1}"},
    /* add */
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":1.10}]", OK, "{\"a\":1,\"b\":1.10}"},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", OK, "{\"a\":null}"},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":[2]}]", OK, "[2]"},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/\",\"value\":2}]", OK, "{\"a\":1,\"\":2}"},
    {"{}", "[{\"op\":\"add\",\"path\":\"/a~1b~0c\",\"value\":2}]", OK, "{\"a/b~c\":2}"},
    {"{}", "[{\"op\":\"add\",\"path\":\"/~01\",\"value\":2}]", OK, "{\"~1\":2}"},
    {"[1,3]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":2}]", OK, "[1,2,3]"},
    {"[1]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":2}]", OK, "[1,2]"},
    {"[1]", "[{\"op\":\"add\",\"path\":\"/-\",\"value\":2}]", OK, "[1,2]"},
    {"[]", "[{\"op\":\"add\",\"path\":\"/0\",\"value\":null}]", OK, "[null]"},
    {"[1]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":2}]", CH_ERROR_NOT_FOUND, NULL},
    {"[1]", "[{\"op\":\"add\",\"path\":\"/01\",\"value\":2}]", CH_ERROR_NOT_FOUND, NULL},
    {"[1]", "[{\"op\":\"add\",\"path\":\"/-1\",\"value\":2}]", CH_ERROR_NOT_FOUND, NULL},
    {"[1]", "[{\"op\":\"add\",\"path\":\"/x\",\"value\":2}]", CH_ERROR_NOT_FOUND, NULL},
    {"{}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":2}]", CH_ERROR_NOT_FOUND, NULL},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":2}]", CH_ERROR_NOT_FOUND, NULL},
    {"{\"a\":null}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":2}]", CH_ERROR_NOT_FOUND, NULL},
    {"{}", "[{\"op\":\"add\",\"path\":\"\",\"value\":null}]", CH_ERROR_INVALID, NULL},
    /* remove */
    {"{\"a\":1,\"b\":2}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", OK, "{\"b\":2}"},
    {"[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", OK, "[1,3]"},
    {"{\"a\":null}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", OK, "{}"},
    {"{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", CH_ERROR_NOT_FOUND, NULL},
    {"[1]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", CH_ERROR_NOT_FOUND, NULL},
    {"[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", CH_ERROR_NOT_FOUND, NULL},
    {"{}", "[{\"op\":\"remove\",\"path\":\"\"}]", CH_ERROR_INVALID, NULL},
    /* replace */
    {"{\"a\":1,\"b\":2}",
     "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":3}]",
     OK,
     "{\"a\":3,\"b\":2}"},
    {"[1,2]", "[{\"op\":\"replace\",\"path\":\"/0\",\"value\":3}]", OK, "[3,2]"},
    {"[1,2]", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{}}]", OK, "{}"},
    {"{}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":3}]", CH_ERROR_NOT_FOUND, NULL},
    {"[1]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":3}]", CH_ERROR_NOT_FOUND, NULL},
    {"[1]", "[{\"op\":\"replace\",\"path\":\"/-\",\"value\":3}]", CH_ERROR_NOT_FOUND, NULL},
    /* move */
    {"{\"a\":{\"x\":1},\"b\":{}}",
     "[{\"op\":\"move\",\"from\":\"/a/x\",\"path\":\"/b/y\"}]",
     OK,
     "{\"a\":{},\"b\":{\"y\":1}}"},
    {"[1,2,3]", "[{\"op\":\"move\",\"from\":\"/0\",\"path\":\"/2\"}]", OK, "[2,3,1]"},
    {"{\"a\":[1]}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", OK, "{\"a\":[1]}"},
    {"{\"a\":[1]}", "[{\"op\":\"move\",\"from\":\"\",\"path\":\"\"}]", OK, "{\"a\":[1]}"},
    {"{\"a\":[1],\"ab\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"\"}]", OK, "[1]"},
    {"{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", CH_ERROR_INVALID, NULL},
    {"{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"\",\"path\":\"/a\"}]", CH_ERROR_INVALID, NULL},
    {"{}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}]", CH_ERROR_NOT_FOUND, NULL},
    /* copy */
    {"{\"a\":{\"x\":1}}",
     "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},{\"op\":\"add\",\"path\":\"/b/"
     "y\",\"value\":2}]",
     OK,
     "{\"a\":{\"x\":1},\"b\":{\"x\":1,\"y\":2}}"},
    {"{\"a\":1}",
     "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b\"}]",
     OK,
     "{\"a\":1,\"b\":{\"a\":1}}"},
    {"{}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]", CH_ERROR_NOT_FOUND, NULL},
    /* test */
    {"{\"a\":{\"x\":1,\"y\":[1.0]}}",
     "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"y\":[1],\"x\":1.00}}]",
     OK,
     "{\"a\":{\"x\":1,\"y\":[1.0]}}"},
    {"{\"a\":\"1\"}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", CH_ERROR_FAILED, NULL},
    {"{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", CH_ERROR_FAILED, NULL},
    {"{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", OK, "{}"},
    {"{\"a\":null}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", OK, "{\"a\":null}"},
    /* all or none */
    {"{\"a\":1}",
     "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2},{\"op\":\"test\",\"path\":\"/"
     "a\",\"value\":1}]",
     CH_ERROR_FAILED,
     NULL},
    /* malformed */
    {"{}", "{}", CH_ERROR_INVALID, NULL},
    {"{}", "[null]", CH_ERROR_INVALID, NULL},
    {"{}", "[{}]", CH_ERROR_INVALID, NULL},
    {"{}", "[{\"op\":\"nop\",\"path\":\"\"}]", CH_ERROR_INVALID, NULL},
    {"{}", "[{\"op\":\"add\",\"value\":1}]", CH_ERROR_INVALID, NULL},
    {"{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", CH_ERROR_INVALID, NULL},
    {"{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", CH_ERROR_INVALID, NULL},
    {"{}", "[{\"op\":\"add\",\"path\":\"/~2\",\"value\":1}]", CH_ERROR_INVALID, NULL},
    {"{}", "[{\"op\":\"add\",\"path\":\"/a~\",\"value\":1}]", CH_ERROR_INVALID, NULL},
    {"{}", "[{\"op\":\"copy\",\"path\":\"/a\"}]", CH_ERROR_INVALID, NULL},
};

static void
test_patches(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(patches); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChJson) document = ch_json_parse(patches[i].document, -1, NULL);
        g_autoptr(ChJson) patch = ch_json_parse(patches[i].patch, -1, NULL);
        g_autoptr(ChJson) result = ch_jsonpatch_apply(document, patch, &error);
        g_autofree char *untouched = ch_json_print(document, NULL);

        g_test_message("%s %s", patches[i].document, patches[i].patch);
        g_assert_cmpstr(untouched, ==, patches[i].document);
        if (patches[i].code == OK) {
            g_autofree char *text = NULL;

            g_assert_no_error(error);
            text = ch_json_print(result, NULL);
            g_assert_cmpstr(text, ==, patches[i].expect);
        } else {
            g_assert_null(result);
            g_assert_error(error, CH_ERROR, patches[i].code);
        }
    }
}

/* The table of RFC 7386, appendix A, as far as the result is not null. */
static const struct {
    const char *document;
    const char *patch;
    const char *expect;
} merges[] = {
    {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
    {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
    {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
    {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
    {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
    {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
    {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
    {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
    {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
    {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
    {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    {"{\"n\":18446744073709551616}", "{\"m\":1.10}", "{\"n\":18446744073709551616,\"m\":1.10}"},
};

static void
test_merges(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(merges); i++) {
        g_autoptr(ChJson) document = ch_json_parse(merges[i].document, -1, NULL);
        g_autoptr(ChJson) patch = ch_json_parse(merges[i].patch, -1, NULL);
        g_autoptr(ChJson) result = ch_jsonpatch_merge(document, patch);
        g_autofree char *text = ch_json_print(result, NULL);
        g_autofree char *untouched = ch_json_print(document, NULL);

        g_test_message("%s %s", merges[i].document, merges[i].patch);
        g_assert_cmpstr(text, ==, merges[i].expect);
        g_assert_cmpstr(untouched, ==, merges[i].document);
    }
}

/* @operation: repeated @n times */
static void
assert_limited(const char *document_text, const char *operation, guint n)
{
    g_autoptr(ChJson) document = ch_json_parse(document_text, -1, NULL);
    g_autoptr(ChJson) one = ch_json_parse(operation, -1, NULL);
    g_autoptr(ChJson) patch = ch_json_new_array();
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < n; i++)
        ch_json_append(patch, ch_json_ref(one));
    g_assert_null(ch_jsonpatch_apply(document, patch, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_limits(void)
{
    g_autoptr(GString) path = g_string_new(NULL);
    g_autoptr(GString) list = g_string_new("{\"l\":[1");
    g_autofree char *add_deep = NULL;

    for (int i = 0; i <= CH_JSON_MAX_DEPTH; i++)
        g_string_append(path, "/a");
    add_deep = g_strdup_printf("{\"op\":\"add\",\"path\":\"%s\",\"value\":1}", path->str);
    assert_limited("{}", add_deep, 1);
    assert_limited(
        "{}", "{\"op\":\"test\",\"path\":\"\",\"value\":{}}", CH_JSONPATCH_MAX_OPERATIONS + 1);
    /* each copy is a level deeper than the last, */
    assert_limited("{}", "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b\"}", 1000);
    /* or doubles the document */
    assert_limited("[1]", "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/-\"}", 30);
    /* minutes: a large value moved, a long list shifted, again and again */
    for (int i = 0; i < 100000; i++)
        g_string_append(list, ",1");
    g_string_append(list, "]}");
    assert_limited(list->str, "{\"op\":\"move\",\"from\":\"/l\",\"path\":\"/l\"}", 10000);
    assert_limited(list->str, "{\"op\":\"add\",\"path\":\"/l/0\",\"value\":1}", 10000);
    assert_limited(list->str, "{\"op\":\"remove\",\"path\":\"/l/0\"}", 10000);
}

/* What a patch makes can be read again. */
static void
test_deepest_result_is_still_a_document(void)
{
    g_autoptr(ChJson) document = ch_json_parse("[]", -1, NULL);
    g_autoptr(ChJson) patch =
        ch_json_parse("[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/0\"}]", -1, NULL);

    for (;;) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChJson) again = NULL;
        g_autofree char *text = ch_json_print(document, NULL);
        ChJson *next;

        again = ch_json_parse(text, -1, &error);
        g_assert_no_error(error);
        next = ch_jsonpatch_apply(again, patch, &error);
        if (next == NULL) {
            g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
            break;
        }
        ch_json_unref(document);
        document = next;
        while (ch_json_length(document) > 1)
            ch_json_remove_item(document, 1);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/jsonpatch/patches", test_patches);
    g_test_add_func("/jsonpatch/merges", test_merges);
    g_test_add_func("/jsonpatch/limits", test_limits);
    g_test_add_func("/jsonpatch/deepest-result-is-still-a-document",
                    test_deepest_result_is_still_a_document);
    return g_test_run();
}
