/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/strategic.h"

#include "local/apiserver/test-support.h"

static const ChMergeKey keys[] = {
    {"list", "name"},
    {"list.env", "key"},
    {"set", ""},
    {NULL},
};

static const struct Case {
    const char *path;
    const char *target;
    const char *patch;
    const char *result; /* NULL: refused */
} cases[] = {
    {"/strategic/merges-objects", "{'a':{'x':1,'y':2}}", "{'a':{'y':3}}", "{'a':{'x':1,'y':3}}"},
    {"/strategic/null-removes", "{'a':1,'b':2}", "{'a':null}", "{'b':2}"},
    {"/strategic/replaces-plain-lists", "{'l':[1,2]}", "{'l':[3]}", "{'l':[3]}"},
    {"/strategic/merges-by-key",
     "{'list':[{'name':'a','x':1},{'name':'b'}]}",
     "{'list':[{'name':'b','y':2},{'name':'c'}]}",
     "{'list':[{'name':'a','x':1},{'name':'b','y':2},{'name':'c'}]}"},
    {"/strategic/merges-nested-keys",
     "{'list':[{'name':'a','env':[{'key':'k','v':1}]}]}",
     "{'list':[{'name':'a','env':[{'key':'k','v':2},{'key':'l'}]}]}",
     "{'list':[{'name':'a','env':[{'key':'k','v':2},{'key':'l'}]}]}"},
    {"/strategic/deletes-by-key",
     "{'list':[{'name':'a'},{'name':'b'}]}",
     "{'list':[{'name':'a','$patch':'delete'},{'name':'z','$patch':'delete'}]}",
     "{'list':[{'name':'b'}]}"},
    {"/strategic/replaces-keyed-list",
     "{'list':[{'name':'a'},{'name':'b'}]}",
     "{'list':[{'$patch':'replace'},{'name':'c'}]}",
     "{'list':[{'name':'c'}]}"},
    {"/strategic/replaces-object",
     "{'a':{'x':1}}",
     "{'a':{'$patch':'replace','y':2}}",
     "{'a':{'y':2}}"},
    {"/strategic/deletes-object", "{'a':{'x':1},'b':1}", "{'a':{'$patch':'delete'}}", "{'b':1}"},
    {"/strategic/delete-of-nothing", "{'b':1}", "{'a':{'$patch':'delete'}}", "{'b':1}"},
    {"/strategic/sets", "{'set':['a','b']}", "{'set':['b','c']}", "{'set':['a','b','c']}"},
    {"/strategic/deletes-from-set",
     "{'set':['a','b','a']}",
     "{'$deleteFromPrimitiveList/set':['a']}",
     "{'set':['b']}"},
    {"/strategic/orders",
     "{'list':[{'name':'a'},{'name':'b'}]}",
     "{'$setElementOrder/list':[{'name':'c'},{'name':'b'}],'list':[{'name':'c'}]}",
     "{'list':[{'name':'c'},{'name':'b'},{'name':'a'}]}"},
    {"/strategic/retains-keys",
     "{'a':{'x':1,'y':2}}",
     "{'a':{'$retainKeys':['y','z'],'z':3}}",
     "{'a':{'y':2,'z':3}}"},
    {"/strategic/new-places-get-no-directives",
     "{}",
     "{'list':[{'name':'a','$patch':'delete'},{'name':'b','env':[{'key':'k','n':null}]}]}",
     "{'list':[{'name':'b','env':[{'key':'k'}]}]}"},
    {"/strategic/other-types-replace",
     "{'a':[1],'b':{'x':1}}",
     "{'a':{'y':1},'b':2}",
     "{'a':{'y':1},'b':2}"},
    {"/strategic/replaces-a-list-that-is-not-there",
     "{}",
     "{'list':[{'$patch':'replace'},{'name':'c'}],'l':[{'$patch':'replace'},1]}",
     "{'list':[{'name':'c'}],'l':[1]}"},
    {"/strategic/unknown-patch", "{'a':{}}", "{'a':{'$patch':'frob'}}", NULL},
    {"/strategic/unknown-directive", "{'a':{}}", "{'a':{'$frob':[]}}", NULL},
    {"/strategic/delete-of-the-whole", "{}", "{'$patch':'delete'}", NULL},
    {"/strategic/order-no-list", "{'list':[]}", "{'$setElementOrder/list':5}", NULL},
    {"/strategic/retain-no-list", "{'a':{'x':1}}", "{'a':{'$retainKeys':'x'}}", NULL},
    {"/strategic/item-without-key", "{'list':[{'name':'a'}]}", "{'list':[{'x':1}]}", NULL},
};

static ChJson *
parse(const char *text)
{
    g_autofree char *quoted = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(GError) error = NULL;
    ChJson *json = ch_json_parse(quoted, -1, &error);

    g_assert_no_error(error);
    return json;
}

static void
test_case(gconstpointer data)
{
    const struct Case *c = data;
    g_autoptr(ChJson) target = parse(c->target);
    g_autoptr(ChJson) patch = parse(c->patch);
    g_autofree char *complaint = ch_strategic_merge(keys, target, patch);
    g_autofree char *printed = ch_json_print(target, NULL);

    if (c->result == NULL) {
        g_assert_nonnull(complaint);
        return;
    }
    g_assert_null(complaint);
    g_strdelimit(printed, "\"", '\'');
    g_assert_cmpstr(printed, ==, c->result);
}

/* It would take a minute; the test's time-out is the assertion. */
static void
test_long_lists_are_refused(void)
{
    g_autoptr(ChJson) target = ch_json_new_object();
    g_autoptr(ChJson) patch = ch_json_new_object();
    ChJson *list = ch_json_new_array(), *backwards = ch_json_new_array();
    g_autofree char *complaint = NULL;

    for (int i = 0; i < 60000; i++) {
        ch_json_append(list, ch_json_new_int(i));
        ch_json_append(backwards, ch_json_new_int(60000 - i));
    }
    ch_json_set(target, "set", list);
    ch_json_set(patch, "set", backwards);
    complaint = ch_strategic_merge(keys, target, patch);
    g_assert_nonnull(complaint);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_case);
    g_test_add_func("/strategic/long-lists", test_long_lists_are_refused);
    return g_test_run();
}
