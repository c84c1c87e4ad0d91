/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/manifest.h"

#include <string.h>

#include "lib/base/errors.h"

#define HEAD "apiVersion: v1\nkind: X\nmetadata: {name: vm}\n"

static GArray *
parse(const char *text, GError **error)
{
    return ch_manifest_parse(text, strlen(text), "vm.yaml", error);
}

static const struct ScalarCase {
    const char *yaml, *json;
} scalars[] = {
    {"abc", "\"abc\""},
    {"\"1\"", "\"1\""},
    {"'true'", "\"true\""},
    {"true", "true"},
    {"Yes", "true"},
    {"off", "false"},
    {"", "null"},
    {"~", "null"},
    {"12", "12"},
    {"+12", "12"},
    {"0x1F", "31"},
    {"-0o17", "-15"},
    {"017", "15"},
    {"1_000", "1000"},
    {"1.50", "1.50"},
    {"1e3", "1e3"},
    {"18446744073709551615", "18446744073709551615"},
    {"128Mi", "\"128Mi\""},
    {"1.2.3", "\"1.2.3\""},
    {"2026-11-29", "\"2026-11-29\""},
    {"[1, {a: b}]", "[1,{\"a\":\"b\"}]"},
    {"|\n  a\n  b\n", "\"a\\nb\\n\""},
};

static void
test_scalars(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(scalars); i++) {
        g_autofree char *text = g_strconcat(HEAD "value: ", scalars[i].yaml, "\n", NULL);
        g_autofree char *wanted = g_strconcat("{\"v\":", scalars[i].json, "}", NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(GArray) manifests = parse(text, &error);
        g_autoptr(ChJson) expected = ch_json_parse(wanted, -1, NULL);
        g_autofree char *printed = NULL;

        g_assert_no_error(error);
        printed = ch_json_print(ch_json_at(g_array_index(manifests, ChManifest, 0).object, "value"),
                                NULL);
        g_test_message("%s -> %s", scalars[i].yaml, printed);
        if (g_str_equal(scalars[i].json, "null"))
            g_assert_null(ch_json_at(g_array_index(manifests, ChManifest, 0).object, "value"));
        else
            g_assert_true(
                ch_json_equal(ch_json_at(g_array_index(manifests, ChManifest, 0).object, "value"),
                              ch_json_at(expected, "v")));
    }
}

static const struct BadCase {
    const char *yaml;
    const char *prefix; /* of the message */
} bad[] = {
    {"", "vm.yaml:1:"},
    {"a: [", "vm.yaml:"},
    {"kind: X\n", "vm.yaml:1: 'apiVersion' is missing"},
    {"\n\n" HEAD "---\napiVersion: v1\nkind: X\n", "vm.yaml:7: 'metadata.name' is missing"},
    {HEAD "a: 1\nb:\n  c: 1\n  c: 2\n", "vm.yaml:7: 'c' is there twice"},
    {HEAD "a: !!python/object x\n", "vm.yaml:4:"},
    {HEAD "? [a]\n: b\n", "vm.yaml:4: a key"},
    {HEAD "a: \"\\0\"\n", "vm.yaml:4: a text has a NUL"},
    {HEAD "a: *nowhere\n", "vm.yaml:4:"},
    {HEAD "a:\n\t- b\n", "vm.yaml:5:"},
    {"- a\n", "vm.yaml:1: this is no object"},
    {HEAD "a: &a [*a]\n", "vm.yaml:4:"},
    {"\xff\xfe\xff", "vm.yaml:1:"},
};

static void
test_bad_manifests(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(parse(bad[i].yaml, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        g_test_message("%s", error->message);
        g_assert_true(g_str_has_prefix(error->message, bad[i].prefix));
    }
}

/* Each level doubles what the one before stands for. */
static void
test_aliases_cannot_explode(void)
{
    g_autoptr(GString) text = g_string_new(HEAD "a0: &a0 [x, x]\n");
    g_autoptr(GError) error = NULL;

    for (int i = 1; i < 40; i++)
        g_string_append_printf(text, "a%d: &a%d [*a%d, *a%d]\n", i, i, i - 1, i - 1);
    g_assert_null(parse(text->str, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_documents_and_lines(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) manifests = parse("# a comment\n" HEAD "---\n---\n" HEAD, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(manifests->len, ==, 2);
    g_assert_cmpuint(g_array_index(manifests, ChManifest, 0).line, ==, 2);
    g_assert_cmpuint(g_array_index(manifests, ChManifest, 1).line, ==, 7);
    g_assert_cmpstr(g_array_index(manifests, ChManifest, 1).file, ==, "vm.yaml");
}

static void
test_json_and_merge_keys(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) json = parse(
        "{\"apiVersion\":\"v1\",\"kind\":\"X\",\n \"metadata\":{\"name\":\"n\"},\"a\":\"\\u00e9\"}",
        &error);
    g_autoptr(GArray) merged = parse(HEAD "base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\n", &error);
    int64_t x = 0, y = 0;
    const ChJson *object;

    g_assert_no_error(error);
    g_assert_cmpstr(
        ch_json_string_at(g_array_index(json, ChManifest, 0).object, "a"), ==, "\xc3\xa9");
    object = g_array_index(merged, ChManifest, 0).object;
    g_assert_true(ch_json_int_at(object, &x, "more", "x"));
    g_assert_true(ch_json_int_at(object, &y, "more", "y"));
    g_assert_cmpint(x, ==, 1);
    g_assert_cmpint(y, ==, 3);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/manifest/scalars", test_scalars);
    g_test_add_func("/manifest/bad-manifests", test_bad_manifests);
    g_test_add_func("/manifest/aliases-cannot-explode", test_aliases_cannot_explode);
    g_test_add_func("/manifest/documents-and-lines", test_documents_and_lines);
    g_test_add_func("/manifest/json-and-merge-keys", test_json_and_merge_keys);
    return g_test_run();
}
