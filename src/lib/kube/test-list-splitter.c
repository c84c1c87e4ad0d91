/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/list-splitter.h"

#include "lib/base/errors.h"

static bool
collect(gpointer data, const char *text, gsize length, GError **error)
{
    GPtrArray *items = data;

    if (strstr(text, "poison") != NULL)
        return ch_fail(error, CH_ERROR_EXISTS, "poison");
    g_ptr_array_add(items, g_strndup(text, length));
    return true;
}

/* Splits @text, fed in pieces of @piece bytes. Returns: the items joined by '|', or NULL. */
static char *
split(const char *text, gsize piece, char **out_version, char **out_token, GError **error)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ChListSplitter) splitter = ch_list_splitter_new(collect, items);
    const gsize length = strlen(text);

    for (gsize i = 0; i < length; i += piece)
        if (!ch_list_splitter_feed(splitter, text + i, MIN(piece, length - i), error))
            return NULL;
    if (!ch_list_splitter_finish(splitter, out_version, out_token, error))
        return NULL;
    g_ptr_array_add(items, NULL);
    return g_strjoinv("|", (char **)items->pdata);
}

static const struct Good {
    const char *path, *text, *items, *version, *token;
} good[] = {
    {"/list-splitter/typical",
     "{\"kind\":\"VMIList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"41\","
     "\"continue\":\"abc\"},\"items\":[{\"a\":1},{\"b\":[1,{\"c\":2}]}]}\n",
     "{\"a\":1}|{\"b\":[1,{\"c\":2}]}",
     "41",
     "abc"},
    {"/list-splitter/items-first-and-spaced",
     " { \"items\" : [ {\"a\":\"]},{\"} ,\n{ } ] , \"kind\" : \"L\\u0069st\" , "
     "\"metadata\": { \"resourceVersion\" : \"7\" } } ",
     "{\"a\":\"]},{\"}|{ }",
     "7",
     ""},
    {"/list-splitter/escaped-quotes",
     "{\"kind\":\"AList\",\"items\":[{\"a\":\"\\\\\"},{\"b\":\"\\\"}\"}],\"metadata\":{}}",
     "{\"a\":\"\\\\\"}|{\"b\":\"\\\"}\"}",
     "",
     ""},
    {"/list-splitter/empty", "{\"kind\":\"AList\",\"items\":[]}", "", "", ""},
    {"/list-splitter/null-items",
     "{\"kind\":\"AList\",\"metadata\":{\"resourceVersion\":\"3\"},\"items\":null}",
     "",
     "3",
     ""},
    {"/list-splitter/nested-items-are-not-the-items",
     "{\"kind\":\"AList\",\"metadata\":{\"items\":[1,2]},\"x\":\"items\",\"y\":[3],"
     "\"items\":[{\"items\":[4]}]}",
     "{\"items\":[4]}",
     "",
     ""},
};

static void
test_good(gconstpointer data)
{
    const struct Good *c = data;

    for (gsize piece = 1; piece < 40; piece++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *version = NULL;
        g_autofree char *token = NULL;
        g_autofree char *items = split(c->text, piece, &version, &token, &error);

        g_assert_no_error(error);
        g_assert_cmpstr(items, ==, c->items);
        g_assert_cmpstr(version, ==, c->version);
        g_assert_cmpstr(token, ==, c->token);
    }
}

static const struct Bad {
    const char *path, *text;
    int code;
} bad[] = {
    {"/list-splitter/half-item", "{\"kind\":\"AList\",\"items\":[{\"a\":1", CH_ERROR_INVALID},
    {"/list-splitter/half-array", "{\"kind\":\"AList\",\"items\":[{\"a\":1},", CH_ERROR_INVALID},
    {"/list-splitter/half-envelope", "{\"kind\":\"AList\",\"items\":[{\"a\":1}]", CH_ERROR_INVALID},
    {"/list-splitter/nothing", "", CH_ERROR_INVALID},
    {"/list-splitter/garbage", "<html>it works</html>", CH_ERROR_INVALID},
    {"/list-splitter/another-object", "{}", CH_ERROR_INVALID},
    {"/list-splitter/a-status", "{\"kind\":\"Status\",\"code\":200}", CH_ERROR_INVALID},
    {"/list-splitter/hidden-items",
     "{\"kind\":\"AList\",\"it\\u0065ms\":[{\"a\":1}]}",
     CH_ERROR_INVALID},
    {"/list-splitter/items-are-no-array", "{\"kind\":\"AList\",\"items\":{}}", CH_ERROR_INVALID},
    {"/list-splitter/items-twice",
     "{\"kind\":\"AList\",\"items\":[{\"a\":1}],\"items\":[]}",
     CH_ERROR_INVALID},
    {"/list-splitter/item-is-no-object", "{\"kind\":\"AList\",\"items\":[1]}", CH_ERROR_INVALID},
    {"/list-splitter/missing-comma", "{\"kind\":\"AList\",\"items\":[{}{}]}", CH_ERROR_INVALID},
    {"/list-splitter/trailing-comma", "{\"kind\":\"AList\",\"items\":[{},]}", CH_ERROR_INVALID},
    {"/list-splitter/two-documents", "{\"kind\":\"AList\",\"items\":[]}{}", CH_ERROR_INVALID},
    {"/list-splitter/item-refused",
     "{\"kind\":\"AList\",\"items\":[{},{\"poison\":1}]}",
     CH_ERROR_EXISTS},
};

static void
test_bad(gconstpointer data)
{
    const struct Bad *c = data;

    for (gsize piece = 1; piece < 40; piece++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *version = NULL;
        g_autofree char *token = NULL;
        g_autofree char *items = split(c->text, piece, &version, &token, &error);

        g_assert_error(error, CH_ERROR, c->code);
        g_assert_null(items);
        g_assert_null(version);
    }
}

/* Feeds @head and then blanks and 'x's within whatever it opened, until that is too much. */
static void
assert_limit(const char *head, gsize most)
{
    static char filler[1 << 16];
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ChListSplitter) splitter = ch_list_splitter_new(collect, items);
    g_autoptr(GError) error = NULL;
    gsize total = strlen(head);

    memset(filler, 'x', sizeof filler);
    g_assert_true(ch_list_splitter_feed(splitter, head, strlen(head), &error));
    while (ch_list_splitter_feed(splitter, filler, sizeof filler, &error)) {
        total += sizeof filler;
        g_assert_cmpuint(total, <=, most);
    }
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_limits(void)
{
    assert_limit("{\"kind\":\"AList\",\"items\":[{\"a\":\"", CH_LIST_MAX_ITEM);
    assert_limit("{\"kind\":\"", CH_LIST_MAX_ENVELOPE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
        g_test_add_data_func(good[i].path, &good[i], test_good);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_test_add_data_func(bad[i].path, &bad[i], test_bad);
    g_test_add_func("/list-splitter/limits", test_limits);
    return g_test_run();
}
