/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/xml-walk.h"

#include <string.h>

#include "lib/base/errors.h"

/* Notes what it is told; refuses an element named "no". */
static bool
on_start(gpointer data, const ChXmlElement *element, GError **error)
{
    const char *name = element->names[element->depth - 1];
    const char *id = ch_xml_attribute(element, "id");

    if (g_str_equal(name, "no"))
        return ch_fail(error, CH_ERROR_LIMIT, "enough");
    g_string_append_printf(data,
                           "<%s%s%s@%" G_GSIZE_FORMAT,
                           name,
                           id != NULL ? "#" : "",
                           id != NULL ? id : "",
                           element->depth);
    return true;
}

static void
on_end(gpointer data, const ChXmlElement *element, char *text)
{
    g_string_append_printf(data, "[%s]%s>", text, element->names[element->depth - 1]);
}

static const ChXmlHandlers handlers = {on_start, on_end};

static const struct WalkCase {
    const char *path;
    const char *xml;
    const char *told;
} walk_cases[] = {
    {"one", "<a/>", "<a@1[]a>"},
    {"text", "<a> x\n y </a>", "<a@1[x\n y]a>"},
    {"attributes", "<a id='7' other='8'/>", "<a#7@1[]a>"},
    {"nested", "<a><b id='1'>x</b><b>y</b></a>", "<a@1<b#1@2[x]b><b@2[y]b>[]a>"},
    {"text-behind-the-last-child", "<a>x<b/>y</a>", "<a@1<b@2[]b>[y]a>"},
    {"entities", "<a>&lt;&amp;</a>", "<a@1[<&]a>"},
    {"comments", "<!-- x --><a><!-- y -->z</a>", "<a@1[z]a>"},
};

static void
test_walk(gconstpointer data)
{
    const struct WalkCase *c = data;
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    ch_xml_walk(c->xml, strlen(c->xml), "it", &handlers, told, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(told->str, ==, c->told);
}

static const struct FailureCase {
    const char *path;
    const char *xml;
    ChErrorCode code;
    const char *message; /* how it begins */
} failure_cases[] = {
    {"empty", "", CH_ERROR_INVALID, "it: "},
    {"unclosed", "<a>", CH_ERROR_INVALID, "it: "},
    {"crossed", "<a><b></a></b>", CH_ERROR_INVALID, "it: "},
    {"not-utf-8", "<a>\xff</a>", CH_ERROR_INVALID, "it: "},
    {"unknown-entity", "<a>&bomb;</a>", CH_ERROR_INVALID, "it: "},
    {"refused", "<a><no/></a>", CH_ERROR_LIMIT, "it: enough"},
};

static void
test_failure(gconstpointer data)
{
    const struct FailureCase *c = data;
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_xml_walk(c->xml, strlen(c->xml), "it", &handlers, told, &error));
    g_assert_error(error, CH_ERROR, (int)c->code);
    g_assert_true(g_str_has_prefix(error->message, c->message));
}

/* (transfer full): elements within each other */
static char *
nested(guint depth)
{
    GString *xml = g_string_new(NULL);

    for (guint i = 0; i < depth; i++)
        g_string_append(xml, "<a>");
    for (guint i = 0; i < depth; i++)
        g_string_append(xml, "</a>");
    return g_string_free(xml, FALSE);
}

static void
test_limits(void)
{
    g_autofree char *deepest = nested(CH_XML_MAX_DEPTH);
    g_autofree char *too_deep = nested(CH_XML_MAX_DEPTH + 1);
    g_autofree char *too_large = g_strnfill(CH_XML_MAX_BYTES + 1, ' ');
    g_autoptr(GString) told = g_string_new(NULL);
    g_autoptr(GError) depth = NULL;
    g_autoptr(GError) size = NULL;

    g_assert_true(ch_xml_walk(deepest, strlen(deepest), "it", &handlers, told, NULL));
    g_assert_false(ch_xml_walk(too_deep, strlen(too_deep), "it", &handlers, told, &depth));
    g_assert_error(depth, CH_ERROR, CH_ERROR_LIMIT);
    g_assert_false(ch_xml_walk(too_large, strlen(too_large), "it", &handlers, told, &size));
    g_assert_error(size, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_depth_below(void)
{
    static const char *const path[] = {"a", "b"};
    static const char *const inside[] = {"a", "b", "c", "d"};
    static const char *const outside[] = {"a", "x", "b"};

    g_assert_cmpint(
        ch_xml_depth_below(&(ChXmlElement){.names = inside, .depth = 1}, path, 2), ==, -1);
    g_assert_cmpint(
        ch_xml_depth_below(&(ChXmlElement){.names = inside, .depth = 2}, path, 2), ==, 0);
    g_assert_cmpint(
        ch_xml_depth_below(&(ChXmlElement){.names = inside, .depth = 4}, path, 2), ==, 2);
    g_assert_cmpint(
        ch_xml_depth_below(&(ChXmlElement){.names = outside, .depth = 3}, path, 2), ==, -1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(walk_cases); i++) {
        g_autofree char *path = g_strconcat("/xml-walk/", walk_cases[i].path, NULL);

        g_test_add_data_func(path, &walk_cases[i], test_walk);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(failure_cases); i++) {
        g_autofree char *path = g_strconcat("/xml-walk/failure/", failure_cases[i].path, NULL);

        g_test_add_data_func(path, &failure_cases[i], test_failure);
    }
    g_test_add_func("/xml-walk/limits", test_limits);
    g_test_add_func("/xml-walk/depth-below", test_depth_below);
    return g_test_run();
}
