/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/sriov-plug.h"

#include "handler/reconcile/test-controller-node.h"
#include "lib/base/time.h"

#define SRIOV           "{'name':'a','sriov':{}},{'name':'b','sriov':{}},{'name':'c','bridge':{}}"
#define SEEN(name, by)  "{'name':'" name "','infoSource':'" by "'}"
#define IN_POD          SEEN("a", "multus-status")
#define ATTACHED        SEEN("a", "domain, guest-agent, multus-status")
#define VMI(interfaces) VMI_OF(SRIOV, interfaces)
#define VMI_OF(ifaces, interfaces)                                                                 \
    "{'metadata':{'namespace':'ns','name':'vm','uid':'u1','resourceVersion':'5','labels':"         \
    "{'kubevirt.io/nodeName':'node01'}},'spec':{'domain':{'devices':{'autoattachPodInterface':"    \
    "false,'interfaces':[" ifaces "]}}},'status':{'phase':'Running','activePods':{'" NODE_POD      \
    "':'node01'},'interfaces':[" interfaces "]}}"

static const struct DueCase {
    const char *path;
    const char *vmi;
    bool expect;
} cases[] = {
    /* clang-format off */
    {"/sriov-plug/due/no-status",            VMI(""),                                         false},
    {"/sriov-plug/due/in-the-pod",           VMI(IN_POD),                                     true},
    {"/sriov-plug/due/attached",             VMI(ATTACHED),                                   false},
    {"/sriov-plug/due/one-of-two",           VMI(ATTACHED "," SEEN("b", "multus-status")),    true},
    {"/sriov-plug/due/not-in-the-pod-yet",   VMI(ATTACHED "," SEEN("b", "domain")),           false},
    {"/sriov-plug/due/another-binding",      VMI(ATTACHED "," SEEN("c", "multus-status")),    false},
    {"/sriov-plug/due/not-in-the-spec",      VMI(SEEN("d", "multus-status")),                 false},
    {"/sriov-plug/due/source-of-a-like-name", VMI(SEEN("a", "multus-status, domain2")),       true},
    {"/sriov-plug/due/nameless",             VMI_OF("{'sriov':{}}", "{'infoSource':'multus-status'}"), false},
    /* clang-format on */
};

static void
test_due(gconstpointer data)
{
    const struct DueCase *c = data;
    g_autoptr(ChJson) vmi = parse_json(c->vmi);

    g_assert_true(ch_sriov_plug_is_due(vmi) == c->expect);
}

static void
test_waits_grow(void)
{
    static const int64_t waits_ms[] = {3000, 5400, 9720};
    g_autoptr(ChSriovPlugs) plugs = ch_sriov_plugs_new();
    int64_t now_us = CH_SECOND_US, longest_us = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(waits_ms); i++) {
        int64_t wait_us;

        g_assert_cmpint(ch_sriov_plugs_ask(plugs, "u", now_us), ==, 0);
        ch_sriov_plugs_tried(plugs, "u", now_us);
        g_assert_cmpint(ch_sriov_plugs_ask(plugs, "other", now_us), ==, 0);
        wait_us = ch_sriov_plugs_ask(plugs, "u", now_us);
        g_assert_cmpint(wait_us, ==, waits_ms[i] * CH_MS_US + 1);
        g_assert_cmpint(ch_sriov_plugs_ask(plugs, "u", now_us + wait_us - 1), ==, 1);
        now_us += wait_us;
    }
    for (int i = 0; i < 20; i++) {
        ch_sriov_plugs_tried(plugs, "u", now_us);
        longest_us = MAX(longest_us, ch_sriov_plugs_ask(plugs, "u", now_us));
    }
    g_assert_cmpint(longest_us, ==, 600 * CH_SECOND_US + 1);
}

static void
test_gives_up(void)
{
    g_autoptr(ChSriovPlugs) plugs = ch_sriov_plugs_new();
    const int64_t end_us = 5 * 3600 * CH_SECOND_US;

    g_assert_cmpint(ch_sriov_plugs_ask(plugs, "u", 0), ==, 0);
    g_assert_cmpint(ch_sriov_plugs_ask(plugs, "u", end_us - 1), ==, 0);
    g_assert_cmpint(ch_sriov_plugs_ask(plugs, "u", end_us), ==, -1);
    ch_sriov_plugs_forget(plugs, "u");
    ch_sriov_plugs_tried(plugs, "u", end_us); /* it went while it was told */
    g_assert_cmpint(ch_sriov_plugs_ask(plugs, "u", end_us), ==, 0);
}

#define RUNNING                                                                                    \
    "{'ObjectMeta':{'namespace':'ns','name':'vm'},'Spec':{'Devices':{'Interfaces':null%s},"        \
    "'Metadata':{'KubeVirt':{'UID':'u1'}}},'Status':{'Status':'Running','Reason':'Unknown'}}"

static void
set_attached(Node *node, bool is_attached)
{
    g_autofree char *text = g_strdup_printf(
        RUNNING, is_attached ? ",'HostDevices':[{'Alias':{'Name':'sriov-a'}}]" : "");

    node_set_domain(node, text);
}

/* Spec 01 §22.1 row 1: the memory of QEMU, which this pod has not, cannot be locked; that is an
 * event, and the only one. */
static void
assert_told_of_no_qemu(Node *node)
{
    g_autofree char *events = node_take_events(node);

    g_assert_true(g_str_has_prefix(events, "no QEMU process found under process "));
    g_assert_null(strstr(events, "SyncFailed"));
}

/* Told before the sync, not again at once, and at once when it is lacking anew. */
static void
test_launcher_is_told(Node *node, gconstpointer data)
{
    node_set_vmi(node, VMI(IN_POD));
    set_attached(node, false);
    node_pass(node);
    node_assert_trace(node, " Info Ping HotplugHostDevices Sync PUT:Running");
    node_echo(node);
    node_run(node);
    node_assert_trace(node, " Sync");
    set_attached(node, true);
    node_pass(node);
    node_assert_trace(node, " Sync PUT:Running");
    node_echo(node); /* and now the status says so */
    node_run(node);
    node_assert_trace(node, " Sync");
    node_set_vmi(node, VMI(IN_POD));
    set_attached(node, false);
    node_pass(node);
    node_assert_trace(node, " Ping HotplugHostDevices Sync PUT:Running");
    assert_told_of_no_qemu(node);
}

/* It is only told in the log, and the pass goes on. */
static void
test_launcher_refuses(Node *node, gconstpointer data)
{
    node->fake.only = "HotplugHostDevices";
    fake_launcher_answer(&node->fake, CH_GRPC_OK, "no device");
    node_set_vmi(node, VMI(IN_POD));
    set_attached(node, false);
    node_pass(node);
    node_assert_trace(node, " Info Ping HotplugHostDevices Sync PUT:Running");
    assert_told_of_no_qemu(node);
}

/* Nobody need come by for the next time. */
static void
test_told_again(Node *node, gconstpointer data)
{
    node_set_vmi(node, VMI(IN_POD));
    set_attached(node, false);
    node_pass(node);
    g_free(node_take_trace(node));
    node_echo(node);
    node_run(node);
    node_assert_trace(node, " Sync");
    node_wait_for_pass(node);
    node_assert_trace(node, " Ping HotplugHostDevices Sync");
}

#define ADD(path, func)                                                                            \
    g_test_add("/sriov-plug/" path, Node, NULL, node_set_up, func, node_tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_due);
    g_test_add_func("/sriov-plug/waits-grow", test_waits_grow);
    g_test_add_func("/sriov-plug/gives-up", test_gives_up);
    ADD("launcher-is-told", test_launcher_is_told);
    ADD("launcher-refuses", test_launcher_refuses);
    ADD("told-again", test_told_again);
    return g_test_run();
}
