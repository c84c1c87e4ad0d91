/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/nic-plan.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/json/test-text.h"
#include "local/launcher/xml.h"

#define NIC(name, tap, more)                                                                       \
    "<interface type='ethernet'><mac address='02:00:00:00:00:01'/><target dev='" tap               \
    "' managed='no'/><alias name='ua-" name "'/>" more "</interface>"

/* Of the networks "red" and "blue". */
#define RED      NIC("red", "tapb1f51a511f1", "")
#define RED_DOWN NIC("red", "tapb1f51a511f1", "<link state='down'/>")
#define BLUE     NIC("blue", "tap16477688c0e", "<address type='pci' bus='0x02'/>")
#define DEFAULT  NIC("default", "tap0", "")
#define DISK     "<disk type='file'><target dev='vda'/><alias name='ua-red'/></disk>"

#define IFACE(name, more) "{'name':'" name "','bridge':{}" more "}"
#define READY(name)       "{'name':'" name "','infoSource':'multus-status'}"
#define THERE(name)       "{'name':'" name "','infoSource':'domain, guest-agent, multus-status'}"

static const struct PlanCase {
    const char *name;
    const char *live, *interfaces, *status;
    const char *attach, *detach, *update, *clash; /* names, by comma */
} cases[] = {
    {"nothing", "", "", "", "", "", ""},
    {"as-it-is", DEFAULT RED, IFACE("default", "") "," IFACE("red", ""), THERE("red"), "", "", ""},
    {"not-in-the-pod-yet", "", IFACE("red", ""), "", "", "", ""},
    {"another-source",
     "",
     IFACE("red", ""),
     "{'name':'red','infoSource':'guest-agent'}",
     "",
     "",
     ""},
    {"comes", DEFAULT, IFACE("red", ""), READY("red"), "red", "", ""},
    {"comes-down", DEFAULT, IFACE("red", ",'state':'down'"), READY("red"), "red", "", ""},
    {"both-come",
     "",
     IFACE("red", "") "," IFACE("blue", ""),
     READY("red") "," READY("blue"),
     "red,blue",
     "",
     ""},
    {"name-of-a-disk",
     DISK,
     IFACE("red", "") "," IFACE("blue", ""),
     READY("red") "," READY("blue"),
     "blue",
     "",
     "",
     "red"},
    {"there-already", RED, IFACE("red", ""), READY("red"), "", "", ""},
    {"absent-does-not-come", "", IFACE("red", ",'state':'absent'"), READY("red"), "", "", ""},
    {"sriov-is-no-nic", "", "{'name':'red','sriov':{}}", READY("red"), "", "", ""},
    {"goes", RED BLUE, IFACE("red", "") "," IFACE("blue", ",'state':'absent'"), "", "", "blue", ""},
    {"left-the-spec", RED BLUE, IFACE("red", ""), "", "", "blue", ""},
    {"other-taps-stay",
     DEFAULT NIC("blue", "tap1", ""),
     IFACE("default", ",'state':'absent'") "," IFACE("blue", ",'state':'absent'"),
     "",
     "",
     "",
     ""},
    {"link-goes-down", RED, IFACE("red", ",'state':'down'"), "", "", "", "red"},
    {"link-comes-up", RED_DOWN, IFACE("red", ""), "", "", "", "red"},
    {"link-is-down", RED_DOWN, IFACE("red", ",'state':'down'"), "", "", "", ""},
    {"link-of-the-pod-network",
     DEFAULT,
     IFACE("default", ",'state':'down'"),
     "",
     "",
     "",
     "default"},
    {"no-alias-not-ours",
     "<interface type='ethernet'><target dev='tapb1f51a511f1'/></interface>",
     "",
     "",
     "",
     "",
     ""},
    {"alias-of-libvirt",
     "<interface type='ethernet'><target dev='tapb1f51a511f1'/><alias name='net0'/></interface>",
     "",
     "",
     "",
     "",
     ""},
};

static ChJson *
make_vmi(const char *interfaces, const char *status)
{
    g_autofree char *text = g_strdup_printf(
        "{'spec':{'domain':{'devices':{'interfaces':[%s]}}},'status':{'interfaces':[%s]}}",
        interfaces,
        status);

    return parse_json(text);
}

static char *
make_live(const char *devices)
{
    return g_strconcat("<domain><devices>", devices, "</devices></domain>", NULL);
}

static void
test_taken(void)
{
    g_autofree char *live = make_live(BLUE DISK);

    g_assert_true(ch_nic_plan_is_taken(live, "red"));
    g_assert_true(ch_nic_plan_is_taken(live, "blue"));
    g_assert_false(ch_nic_plan_is_taken(live, "green"));
    g_assert_true(ch_nic_plan_is_taken("<domain", "green"));
}

static char *
names_of(const GArray *changes)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < changes->len; i++)
        g_string_append_printf(
            text, "%s%s", i > 0 ? "," : "", g_array_index(changes, ChNicChange, i).name);
    return g_string_free(text, FALSE);
}

static char *
join(GPtrArray *names)
{
    g_ptr_array_add(names, NULL);
    return g_strjoinv(",", (char **)names->pdata);
}

static void
test_plan(gconstpointer data)
{
    const struct PlanCase *c = data;
    g_autoptr(ChJson) vmi = make_vmi(c->interfaces, c->status);
    g_autofree char *live = make_live(c->live);
    g_autoptr(GError) error = NULL;
    g_auto(ChNicPlan) plan = {0};

    g_assert_true(ch_nic_plan(live, vmi, &plan, &error));
    g_assert_no_error(error);
    g_autofree char *detach = names_of(plan.detach);
    g_autofree char *update = names_of(plan.update);
    g_autofree char *attach = join(plan.attach);
    g_autofree char *clash = join(plan.clash);
    g_assert_cmpstr(attach, ==, c->attach);
    g_assert_cmpstr(clash, ==, c->clash != NULL ? c->clash : "");
    g_assert_cmpstr(detach, ==, c->detach);
    g_assert_cmpstr(update, ==, c->update);
}

static char *
link_state(const char *xml)
{
    g_autoptr(xmlDoc) doc = ch_xml_parse(xml, NULL);

    g_assert_cmpstr((const char *)xmlDocGetRootElement(doc)->name, ==, "interface");
    return ch_xml_dup_attribute(ch_xml_child(xmlDocGetRootElement(doc), "link"), "state");
}

/* The whole element, but where it is plugged in: that is another place in what is defined. */
static void
test_what_libvirt_gets(void)
{
    g_autoptr(ChJson) vmi = make_vmi(IFACE("red", "") "," IFACE("blue", ",'state':'absent'"), "");
    g_autofree char *live = make_live(RED_DOWN BLUE);
    g_auto(ChNicPlan) plan = {0};

    g_assert_true(ch_nic_plan(live, vmi, &plan, NULL));
    g_autofree char *state = link_state(g_array_index(plan.update, ChNicChange, 0).xml);
    g_assert_cmpstr(state, ==, "up");
    g_autoptr(xmlDoc) doc = ch_xml_parse(g_array_index(plan.detach, ChNicChange, 0).xml, NULL);
    const xmlNode *root = xmlDocGetRootElement(doc);
    g_autofree char *alias = ch_xml_dup_attribute(ch_xml_child(root, "alias"), "name");
    g_assert_cmpstr(alias, ==, "ua-blue");
    g_assert_nonnull(ch_xml_child(root, "mac"));
    g_assert_null(ch_xml_child(root, "address"));
}

static void
test_no_document(void)
{
    g_autoptr(ChJson) vmi = make_vmi("", "");
    g_autoptr(GError) error = NULL;
    g_auto(ChNicPlan) plan = {0};

    g_assert_false(ch_nic_plan("<domain", vmi, &plan, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ch_xml_init();
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/nic-plan/", cases[i].name, NULL);

        g_test_add_data_func(path, &cases[i], test_plan);
    }
    g_test_add_func("/nic-plan/what-libvirt-gets", test_what_libvirt_gets);
    g_test_add_func("/nic-plan/taken", test_taken);
    g_test_add_func("/nic-plan/no-document", test_no_document);
    return g_test_run();
}
