/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/selector.h"

#include "lib/base/errors.h"

static const char object_text[] =
    "{\"metadata\":{\"name\":\"vm\",\"namespace\":\"default\",\"labels\":{\"app\":\"web\","
    "\"empty\":\"\","
    "\"kubevirt.io/"
    "nodeName\":\"node01\",\"in\":\"x\"}},\"spec\":{\"n\":7,\"b\":true,\"s\":\"a,b=c\","
    "\"o\":{}}}";

static const struct {
    const char *text;
    bool expect;
} labels[] = {
    {"", true},
    {"  ", true},
    {"app=web", true},
    {" app == web ", true},
    {"app=db", false},
    {"app=", false},
    {"empty=", true},
    {"absent=", false},
    {"app!=db", true},
    {"app != web", false},
    {"absent!=x", true},
    {"app in (web)", true},
    {"app in (z, web ,a)", true},
    {"app in(db)", false},
    {"empty in ()", true},
    {"app notin (db,web)", false},
    {"app notin (db)", true},
    {"absent notin (x)", true},
    {"absent in (x)", false},
    {"app", true},
    {"absent", false},
    {"!absent", true},
    {"! app", false},
    {"in in (x)", true},
    {"in", true},
    {"kubevirt.io/nodeName in (node01)", true},
    {"kubevirt.io/nodeName=node01,app=web,!x", true},
    {"app=web,empty,app=db", false},
};

static void
test_labels(void)
{
    g_autoptr(ChJson) object = ch_json_parse(object_text, -1, NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(labels); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChSelector) selector = ch_selector_parse_labels(labels[i].text, &error);

        g_test_message("%s", labels[i].text);
        g_assert_no_error(error);
        g_assert_cmpint(ch_selector_matches(selector, object), ==, labels[i].expect);
    }
}

static void
test_object_without_labels(void)
{
    g_autoptr(ChSelector) absent = ch_selector_parse_labels("!a,b!=c", NULL);
    g_autoptr(ChSelector) present = ch_selector_parse_labels("a", NULL);

    g_assert_true(ch_selector_matches_labels(absent, NULL));
    g_assert_false(ch_selector_matches_labels(present, NULL));
}

static void
test_malformed_labels(void)
{
    static const char *const texts[] = {
        ",",         "a,",        ",a",         "a,,b",    "=b",        "!=b",
        "!",         "!!a",       "a b",        "a=b c",   "a=b=c",     "a=!b",
        "a===b",     "a in",      "a in x",     "a in (x", "a in x)",   "a in (x y)",
        "a in (x),", "a notin x", "(a)",        "a>1",     "a=b/c",     "a/b/c",
        "-a",        "a=-",       "a=\xc3\xa4", "!a=b",    "a in (x)b",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", texts[i]);
        g_assert_null(ch_selector_parse_labels(texts[i], &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static const struct {
    const char *text;
    bool expect;
} fields[] = {
    {"", true},
    {",,", true},
    {"metadata.name=vm", true},
    {"metadata.name==vm", true},
    {"metadata.name!=vm", false},
    {"metadata.name=", false},
    {"metadata.name=vm,metadata.namespace=other", false},
    {"spec.n=7,spec.b=true,", true},
    {"spec.absent=", true},
    {"spec.absent!=", false},
    {"spec.absent!=x", true},
    {"spec.o=", true},
    {"spec.s.deeper=", true},
    {"spec.s=a\\,b\\=c", true},
    {"spec.s=a\\\\", false},
};

static void
test_fields(void)
{
    g_autoptr(ChJson) object = ch_json_parse(object_text, -1, NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChSelector) selector = ch_selector_parse_fields(fields[i].text, &error);

        g_test_message("%s", fields[i].text);
        g_assert_no_error(error);
        g_assert_cmpint(ch_selector_matches(selector, object), ==, fields[i].expect);
    }
}

static void
test_malformed_fields(void)
{
    static const char *const texts[] = {
        "a",
        "=b",
        "!=b",
        "a!b",
        "a=b=c",
        "a=b\\",
        "a=b\\x",
        "a\\=b",
        "a=b,c",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", texts[i]);
        g_assert_null(ch_selector_parse_fields(texts[i], &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static void
test_keys(void)
{
    g_autoptr(ChSelector) selector = ch_selector_parse_labels("b in (2),!a", NULL);

    g_assert_cmpstr(ch_selector_key(selector, 0), ==, "b");
    g_assert_cmpstr(ch_selector_key(selector, 1), ==, "a");
    g_assert_null(ch_selector_key(selector, 2));
}

static void
test_length_limit(void)
{
    g_autofree char *text = g_strnfill(CH_SELECTOR_MAX_TEXT + 1, ' ');
    g_autoptr(GError) labels_error = NULL, fields_error = NULL;

    g_assert_null(ch_selector_parse_labels(text, &labels_error));
    g_assert_error(labels_error, CH_ERROR, CH_ERROR_LIMIT);
    g_assert_null(ch_selector_parse_fields(text, &fields_error));
    g_assert_error(fields_error, CH_ERROR, CH_ERROR_LIMIT);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/selector/labels", test_labels);
    g_test_add_func("/selector/object-without-labels", test_object_without_labels);
    g_test_add_func("/selector/malformed-labels", test_malformed_labels);
    g_test_add_func("/selector/fields", test_fields);
    g_test_add_func("/selector/malformed-fields", test_malformed_fields);
    g_test_add_func("/selector/keys", test_keys);
    g_test_add_func("/selector/length-limit", test_length_limit);
    return g_test_run();
}
