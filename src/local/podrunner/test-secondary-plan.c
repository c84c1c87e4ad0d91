/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/secondary-plan.h"

#include "lib/json/test-text.h"

#define DEFAULT_IFACE   "{'name':'default','masquerade':{}}"
#define DEFAULT_NETWORK "{'name':'default','pod':{}}"
#define RED_NETWORK     "{'name':'red','multus':{'networkName':'net-r'}}"
#define IFACE(state)    "{'name':'red','bridge':{}" state "}"
#define ABSENT          ",'state':'absent'"

#define MADE                                                                                       \
    "{'network':'red','definition':'lab/net-r','link':'podb1f51a511f1','plugins':[],'result':{}}"
#define PENDING "{'network':'red','definition':'lab/net-r','link':'podb1f51a511f1','pending':true}"

static ChJson *
make_vmi(const char *interfaces, const char *networks, const char *status)
{
    g_autofree char *text =
        g_strdup_printf("{'spec':{'domain':{'devices':{'interfaces':[%s]}},'networks':[%s]}%s}",
                        interfaces,
                        networks,
                        status);

    return parse_json(text);
}

static void
test_what_is_made(void)
{
    g_autoptr(ChJson) attachments = parse_json("[" PENDING "," MADE "]");
    g_autoptr(ChJson) made = ch_secondary_made(attachments);

    assert_json(made, "[" MADE "]");
    g_assert_false(ch_secondary_is_made(NULL));
}

static void
test_what_is_wanted(void)
{
    static const struct {
        const char *interfaces, *networks;
        bool is_wanted;
    } cases[] = {
        {IFACE(""), RED_NETWORK, true},
        {IFACE(",'state':'down'"), RED_NETWORK, true},
        {IFACE(ABSENT), RED_NETWORK, false},
        {IFACE(""), "", false},
        {"", RED_NETWORK, false},
        {IFACE(""), "{'name':'red','pod':{}}", false},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ChJson) vmi = make_vmi(cases[i].interfaces, cases[i].networks, "");

        g_assert_cmpint(ch_secondary_is_wanted(vmi, "red"), ==, cases[i].is_wanted);
    }
}

static void
test_failures_count(void)
{
    g_autoptr(ChJson) attachment = parse_json(MADE);

    g_assert_cmpint(ch_secondary_count_failure(attachment), ==, 1);
    g_assert_cmpint(ch_secondary_count_failure(attachment), ==, 2);
    g_assert_true(ch_secondary_is_made(attachment));
}

static void
test_what_the_guest_has(void)
{
    g_autoptr(ChJson) vmi =
        make_vmi("",
                 "",
                 ",'status':{'interfaces':[{'name':'red','infoSource':'domain, multus-status'},"
                 "{'name':'blue','infoSource':'multus-status'}]}");

    g_assert_true(ch_secondary_is_in_guest(vmi, "red"));
    g_assert_false(ch_secondary_is_in_guest(vmi, "blue"));
    g_assert_false(ch_secondary_is_in_guest(vmi, "green"));
}

static void
test_links(void)
{
    static const struct {
        const char *devices;
        bool has_pod_link, has_links, has_renamed;
    } cases[] = {
        {"", false, false, false},
        {"Inter-|   Receive\n face |bytes\n    lo:       0\n  eth0: 1\n", false, false, false},
        {"podb1f51a511f1:   90       1\n", true, false, false},
        {"  podb1f51a511f1: 90\n", true, false, false},
        {"b1f51a511f1-nic: 90\n", false, false, true},
        {"k6t-b1f51a511f1: 0\nb1f51a511f1-nic: 90\n", false, true, true},
        {"tapb1f51a511f1: 0\npodb1f51a511f1: 1\n", true, true, false},
        {"tap16477688c0e: 0\npod16477688c0e: 1\nk6t-16477688c0e: 3\n", false, false, false},
        {"podb1f51a511f1", false, false, false},
    };
    g_autoptr(ChJson) attachment = parse_json(MADE);

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ChSecondaryLinks links = ch_secondary_look(attachment, cases[i].devices);

        g_test_message("%s", cases[i].devices);
        g_assert_cmpint(links.has_pod_link, ==, cases[i].has_pod_link);
        g_assert_cmpint(links.has_links, ==, cases[i].has_links);
        g_assert_cmpint(links.has_renamed, ==, cases[i].has_renamed);
    }
}

#define IN_GUEST ",'status':{'interfaces':[{'name':'red','infoSource':'domain, multus-status'}]}"

static const struct SpecCase {
    const char *path;
    const char *interfaces, *networks, *status, *attachments;
    const char *interfaces_after, *networks_after; /* NULL: as they were */
} spec_cases[] = {
    {"/secondary-plan/spec/as-it-is",
     DEFAULT_IFACE "," IFACE(""),
     DEFAULT_NETWORK "," RED_NETWORK,
     IN_GUEST,
     MADE,
     NULL,
     NULL},
    {"/secondary-plan/spec/not-there-yet", IFACE(""), RED_NETWORK, "", "", NULL, NULL},
    {"/secondary-plan/spec/on-its-way", IFACE(ABSENT), RED_NETWORK, "", MADE, NULL, NULL},
    {"/secondary-plan/spec/goes-at-last",
     DEFAULT_IFACE "," IFACE(ABSENT),
     RED_NETWORK "," DEFAULT_NETWORK,
     "",
     "",
     DEFAULT_IFACE,
     DEFAULT_NETWORK},
    {"/secondary-plan/spec/not-while-the-guest-has-it",
     IFACE(ABSENT),
     RED_NETWORK,
     IN_GUEST,
     "",
     NULL,
     NULL},
    {"/secondary-plan/spec/others-are-not-ours",
     "{'name':'default','bridge':{}" ABSENT "},{'name':'odd'" ABSENT "}",
     DEFAULT_NETWORK,
     "",
     "",
     NULL,
     NULL},
    {"/secondary-plan/spec/put-back",
     DEFAULT_IFACE,
     DEFAULT_NETWORK,
     IN_GUEST,
     MADE,
     DEFAULT_IFACE "," IFACE(ABSENT),
     DEFAULT_NETWORK ",{'name':'red','multus':{'networkName':'lab/net-r'}}"},
    {"/secondary-plan/spec/network-put-back",
     IFACE(""),
     "",
     "",
     MADE,
     IFACE(ABSENT),
     "{'name':'red','multus':{'networkName':'lab/net-r'}}"},
    {"/secondary-plan/spec/interface-put-back",
     "",
     RED_NETWORK,
     "",
     MADE,
     IFACE(ABSENT),
     RED_NETWORK},
    {"/secondary-plan/spec/what-was-never-told-is-not-put-back",
     DEFAULT_IFACE,
     DEFAULT_NETWORK,
     "",
     PENDING,
     NULL,
     NULL},
};

static void
test_spec(gconstpointer data)
{
    const struct SpecCase *c = data;
    const bool is_changed = c->interfaces_after != NULL;
    g_autoptr(ChJson) vmi = make_vmi(c->interfaces, c->networks, c->status);
    g_autoptr(ChJson) wanted = make_vmi(is_changed ? c->interfaces_after : c->interfaces,
                                        is_changed ? c->networks_after : c->networks,
                                        c->status);
    g_autofree char *list = g_strconcat("[", c->attachments, "]", NULL);
    g_autofree char *text = ch_json_print(wanted, NULL);
    g_autoptr(ChJson) attachments = parse_json(list);

    g_assert_cmpint(ch_secondary_set_spec(vmi, attachments), ==, is_changed);
    assert_json(vmi, text);
    g_assert_false(ch_secondary_set_spec(vmi, attachments)); /* once is enough */
}

#define PRIMARY "{'name':'default','podInterfaceName':'eth0','infoSource':'domain'}"
#define RED(source)                                                                                \
    "{'name':'red','infoSource':'" source "','podInterfaceName':'podb1f51a511f1','mac':'m'}"

static const struct StatusCase {
    const char *path;
    const char *before, *attachments;
    const char *after; /* NULL: as before */
} status_cases[] = {
    {"/secondary-plan/status/nothing", PRIMARY, "", NULL},
    {"/secondary-plan/status/pending", PRIMARY, PENDING, NULL},
    {"/secondary-plan/status/new",
     PRIMARY,
     MADE,
     PRIMARY ",{'name':'red','podInterfaceName':'podb1f51a511f1','infoSource':'multus-status'}"},
    {"/secondary-plan/status/known", RED("domain, guest-agent, multus-status"), MADE, NULL},
    {"/secondary-plan/status/known-by-others",
     RED("domain, guest-agent"),
     MADE,
     RED("domain, guest-agent, multus-status")},
    {"/secondary-plan/status/without-source", RED(""), MADE, RED("multus-status")},
    {"/secondary-plan/status/gone", PRIMARY "," RED("multus-status"), "", PRIMARY},
    {"/secondary-plan/status/gone-from-the-pod-first",
     RED("domain, multus-status"),
     "",
     RED("domain")},
    {"/secondary-plan/status/made-anew", RED("multus-status"), PENDING, ""},
    {"/secondary-plan/status/of-the-guest-alone",
     "{'infoSource':'guest-agent','mac':'m'}",
     "",
     NULL},
};

static void
test_status(gconstpointer data)
{
    const struct StatusCase *c = data;
    g_autofree char *before = g_strdup_printf("{'status':{'interfaces':[%s]}}", c->before);
    g_autofree char *after =
        g_strdup_printf("{'status':{'interfaces':[%s]}}", c->after != NULL ? c->after : c->before);
    g_autofree char *list = g_strconcat("[", c->attachments, "]", NULL);
    g_autoptr(ChJson) vmi = parse_json(before);
    g_autoptr(ChJson) attachments = parse_json(list);

    g_assert_cmpint(ch_secondary_set_status(vmi, attachments), ==, c->after != NULL);
    assert_json(vmi, after);
    g_assert_false(ch_secondary_set_status(vmi, attachments));
}

/* A VM without networks is not touched. */
static void
test_no_status(void)
{
    g_autoptr(ChJson) vmi = parse_json("{'spec':{}}");
    g_autoptr(ChJson) none = ch_json_new_array();

    g_assert_false(ch_secondary_set_status(vmi, none));
    g_assert_false(ch_secondary_set_spec(vmi, none));
    assert_json(vmi, "{'spec':{}}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/secondary-plan/what-is-made", test_what_is_made);
    g_test_add_func("/secondary-plan/what-is-wanted", test_what_is_wanted);
    g_test_add_func("/secondary-plan/what-the-guest-has", test_what_the_guest_has);
    g_test_add_func("/secondary-plan/failures-count", test_failures_count);
    g_test_add_func("/secondary-plan/links", test_links);
    g_test_add_func("/secondary-plan/no-status", test_no_status);
    for (gsize i = 0; i < G_N_ELEMENTS(spec_cases); i++)
        g_test_add_data_func(spec_cases[i].path, &spec_cases[i], test_spec);
    for (gsize i = 0; i < G_N_ELEMENTS(status_cases); i++)
        g_test_add_data_func(status_cases[i].path, &status_cases[i], test_status);
    return g_test_run();
}
