/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/network-edit.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/json/test-text.h"

static void
test_names(void)
{
    static const char *const names[][2] = {
        {"lab", "lab"}, {"other/lab", "lab"}, {"lab/net.b", "net-b"}, {"a.b.c", "a-b-c"}};
    g_autofree char *long_text = g_strnfill(253, 'x');
    g_autofree char *cut = ch_network_name_of_definition(long_text);

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *name = ch_network_name_of_definition(names[i][0]);

        g_assert_cmpstr(name, ==, names[i][1]);
    }
    g_assert_true(ch_network_edit_check(&(ChNetworkEdit){cut, "lab", NULL}, NULL));
}

static const struct CheckCase {
    ChNetworkEdit edit;
    bool is_fine;
} checks[] = {
    {{"lab", "lab", NULL}, true},
    {{"Lab_1-a", "other/net.b", "02:00:00:00:00:01"}, true},
    {{"lab", "lab", "02-00-00-00-00-01"}, true},
    {{"lab", "", NULL}, false},
    {{"lab", "/lab", NULL}, false},
    {{"lab", "a/b/c", NULL}, false},
    {{"lab", "a/", NULL}, false},
    {{"lab", "../x", NULL}, false},
    {{"lab", "LAB", NULL}, false},
    {{"", "lab", NULL}, false},
    {{"../x", "lab", NULL}, false},
    {{".x", "lab", NULL}, false},
    {{"-x", "lab", NULL}, false},
    {{"a b", "lab", NULL}, false},
    {{"a.b", "lab", NULL}, false},
    {{"lab", "lab", ""}, false},
    {{"lab", "lab", "02:00:00:00:00"}, false},
    {{"lab", "lab", "00:00:00:00:00:00"}, false},
    {{"lab", "lab", "01:00:00:00:00:01"}, false},
    {{"lab", "lab", "ff:ff:ff:ff:ff:ff"}, false},
};

static void
test_checks(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(checks); i++) {
        const ChNetworkEdit *edit = &checks[i].edit;
        g_autoptr(GError) error = NULL;

        g_test_message("'%s' '%s' '%s'", edit->name, edit->definition, edit->mac);
        g_assert_cmpint(ch_network_edit_check(edit, &error), ==, checks[i].is_fine);
        if (!checks[i].is_fine)
            g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static void
test_there_and_away(void)
{
    g_autoptr(ChJson) vmi = parse_json("{'spec':{'domain':{'devices':{'rng':{}}}}}");
    g_autoptr(GError) error = NULL;
    const ChNetworkEdit edit = {"red", "other/net-r", "02:00:00:00:00:01"};

    g_assert_true(ch_vmi_add_network(vmi, &edit, &error));
    g_assert_no_error(error);
    assert_json(vmi,
                "{'spec':{'domain':{'devices':{'rng':{},'interfaces':[{'name':'red','bridge':{},"
                "'macAddress':'02:00:00:00:00:01'}]}},'networks':[{'name':'red','multus':{"
                "'networkName':'other/net-r'}}]}}");
    g_assert_true(ch_vmi_has_network(vmi, "red"));
    g_assert_false(ch_vmi_add_network(vmi, &edit, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_clear_error(&error);
    for (int i = 0; i < 2; i++) { /* twice is once */
        g_assert_true(ch_vmi_remove_network(vmi, "red", NULL));
        assert_json(vmi,
                    "{'spec':{'domain':{'devices':{'rng':{},'interfaces':[{'name':'red','bridge':{}"
                    ",'macAddress':'02:00:00:00:00:01','state':'absent'}]}},'networks':[{'name':"
                    "'red','multus':{'networkName':'other/net-r'}}]}}");
    }
    g_assert_false(ch_vmi_add_network(vmi, &edit, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_nonnull(strstr(error->message, "just being detached"));
}

static const char vmi_text[] =
    "{'metadata':{'uid':'u1'},'spec':{'domain':{'devices':{'interfaces':[{'name':'default',"
    "'bridge':{}},{'name':'blue','bridge':{},'macAddress':'02:00:00:00:00:0A'}]}},"
    "'volumes':[{'name':'data'}],'networks':[{'name':'default','pod':{}},{'name':'blue','multus':{'"
    "networkName':'net-b'}},"
    "{'name':'unused','multus':{'networkName':'net-b'}}]},"
    "'status':{'interfaces':[{'name':'default','mac':'02:00:00:00:00:0b','infoSource':'domain'},"
    "{'name':'blue','infoSource':'multus-status'},"
    "{'mac':'02:00:00:00:00:0c','infoSource':'guest-agent'}]}}";

static void
test_what_is_taken(void)
{
    static const ChNetworkEdit edits[] = {
        {"default", "net", NULL},
        {"unused", "net", NULL},
        {"data", "net", NULL},
        {"red", "net", "02:00:00:00:00:0a"},
        {"red", "net", "02:00:00:00:00:0B"},
        {"red", "net", "02:00:00:00:00:0c"},
    };
    g_autoptr(ChJson) vmi = parse_json(vmi_text);

    for (gsize i = 0; i < G_N_ELEMENTS(edits); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(ch_vmi_add_network(vmi, &edits[i], &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    }
    assert_json(vmi, vmi_text);
}

static void
test_what_cannot_go(void)
{
    g_autoptr(ChJson) vmi = parse_json(vmi_text);
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_vmi_remove_network(vmi, "default", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_false(ch_vmi_remove_network(vmi, "red", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_false(ch_vmi_remove_network(vmi, "unused", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_NOT_FOUND);
    assert_json(vmi, vmi_text);
}

static void
test_when_it_is_plugged_in(void)
{
    g_autoptr(ChJson) vmi = parse_json(vmi_text);

    g_assert_cmpstr(
        ch_json_string_at(ch_vmi_plugged_network(vmi, "default"), "mac"), ==, "02:00:00:00:00:0b");
    g_assert_null(ch_vmi_plugged_network(vmi, "blue"));
    g_assert_null(ch_vmi_plugged_network(vmi, "red"));
}

static void
append_event(
    ChJson *items, const char *uid, const char *reason, const char *revision, const char *message)
{
    ChJson *event = ch_json_new_object();

    ch_json_set_string(ch_json_ensure_object(event, "involvedObject"), "uid", uid);
    ch_json_set_string(event, "reason", reason);
    ch_json_set_string(ch_json_ensure_object(event, "metadata"), "resourceVersion", revision);
    ch_json_set_string(event, "message", message);
    ch_json_append(items, event);
}

static void
assert_trouble(const ChJson *vmi,
               const ChJson *events,
               const char *name,
               bool attaches,
               int64_t since,
               const char *expected)
{
    const ChNetworkQuestion question = {name, attaches, since};

    g_assert_cmpstr(ch_network_trouble(vmi, events, &question), ==, expected);
}

/* The newest of this VM's, of this network and direction, that came after the question. */
static void
test_trouble(void)
{
    static const char attach[] = "FailedAttachNetwork";
    g_autoptr(ChJson) vmi = parse_json(vmi_text);
    g_autoptr(ChJson) events = parse_json("{'metadata':{'resourceVersion':'10'},'items':[]}");
    ChJson *items = ch_json_at(events, "items");

    append_event(items, "u1", attach, "7", "network 'blue': old");
    append_event(items, "u1", attach, "9", "network 'blue': newest");
    append_event(items, "u1", "FailedDetachNetwork", "8", "network 'blue': newer");
    append_event(items, "u1", attach, "10", "(combined from similar events): network 'red': many");
    append_event(items, "u1", attach, "10", "network 'bluest': no");
    append_event(items, "u2", attach, "10", "network 'blue': no");
    append_event(items, "u1", "Stopped", "10", "network 'blue': no");
    append_event(items, "u1", attach, NULL, "network 'blue': no");
    append_event(items, "u1", attach, "ten", "network 'blue': no");
    append_event(items, "u1", attach, "10", NULL);
    g_assert_cmpint(ch_events_revision(events), ==, 10);
    g_assert_cmpint(ch_events_revision(NULL), ==, 0);
    assert_trouble(vmi, events, "blue", true, 0, "newest");
    assert_trouble(vmi, events, "blue", true, 8, "newest");
    assert_trouble(vmi, events, "blue", true, 9, NULL);
    assert_trouble(vmi, events, "blue", false, 0, "newer");
    assert_trouble(vmi, events, "red", true, 0, "many");
    assert_trouble(vmi, NULL, "blue", true, 0, NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network-edit/names", test_names);
    g_test_add_func("/network-edit/checks", test_checks);
    g_test_add_func("/network-edit/there-and-away", test_there_and_away);
    g_test_add_func("/network-edit/what-is-taken", test_what_is_taken);
    g_test_add_func("/network-edit/what-cannot-go", test_what_cannot_go);
    g_test_add_func("/network-edit/when-it-is-plugged-in", test_when_it_is_plugged_in);
    g_test_add_func("/network-edit/trouble", test_trouble);
    return g_test_run();
}
