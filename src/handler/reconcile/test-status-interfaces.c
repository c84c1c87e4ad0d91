/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/test-support.h"

#define PRIMARY        "{'name':'prim','bridge':{}}"
#define SECONDARY      "{'name':'sec','bridge':{}}"
#define NIC(name, mac) "{'Alias':{'Name':'" name "'},'MAC':{'MAC':'" mac "'}}"
#define GUEST(mac, name, ip, ips)                                                                  \
    "{'Mac':'" mac "','InterfaceName':'" name "','Ip':'" ip "','IPs':" ips "}"

#define SHOWN(name, mac, source, more)                                                             \
    "{'name':'" name "','mac':'" mac "','infoSource':'" source                                     \
    "','queueCount':1,'linkState':'up'" more "}"

/* The pod has 10.244.0.3 on "prim", nothing on "sec". */
static const struct InterfaceCase {
    const char *path;
    const char *spec;     /* spec.domain.devices.interfaces, without brackets */
    const char *devices;  /* of the domain */
    const char *guest;    /* what the agent says */
    const char *previous; /* status.interfaces */
    const char *expect;   /* NULL: no list */
} cases[] =
    {
        /* clang-format off */
    /* spec:02-14.10#34: the pod's address alone shows nothing. */
    {"/interfaces/none", "", "", "", "[]", NULL},
    /* spec:04-23.7#2a */
    {"/interfaces/03-two-nics", PRIMARY "," SECONDARY, NIC("prim", "m1") "," NIC("sec", "m2"), "", "[]",
     "[" SHOWN("prim", "m1", "domain", ",'ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "," SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:04-23.7#2b spec:02-14.10#4 */
    {"/interfaces/04-queues", SECONDARY, "{'Alias':{'Name':'sec'},'MAC':{'MAC':'m'},'Driver':{'Queues':8}}", "", "[]",
     "[{'name':'sec','mac':'m','infoSource':'domain','queueCount':8,'linkState':'up'}]"},
    {"/interfaces/05-silent-guest-clears", PRIMARY, NIC("prim", "m1"), GUEST("m1", "eth0", "", "null"), "[]",
     "[" SHOWN("prim", "m1", "domain, guest-agent", ",'interfaceName':'eth0'") "]"},
    /* field:FR-H08 */
    {"/interfaces/05-silent-guest-behind-masquerade", "{'name':'prim','masquerade':{}}", NIC("prim", "m1"), GUEST("m1", "eth0", "", "null"), "[]",
     "[" SHOWN("prim", "m1", "domain, guest-agent", ",'interfaceName':'eth0','ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "]"},
    /* spec:02-14.10#8 */
    {"/interfaces/05-guest-of-masquerade-with-other-addresses", "{'name':'prim','masquerade':{}}", NIC("prim", "m1"), GUEST("m1", "eth0", "10.0.2.2", "['10.0.2.2','fe80::1']"), "[]",
     "[" SHOWN("prim", "m1", "domain, guest-agent", ",'interfaceName':'eth0','ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "]"},
    /* spec:04-23.7#3b spec:02-14.10#6 spec:02-14.8#1 */
    {"/interfaces/06-guest-addresses-without-pods", SECONDARY, NIC("sec", "m2"), GUEST("m2", "eth1", "1.2.3.4", "['1.2.3.4','fd00::9']"), "[]",
     "[" SHOWN("sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1','ipAddress':'1.2.3.4','ipAddresses':['1.2.3.4','fd00::9']") "]"},
    /* spec:04-23.7#4 spec:02-14.10#7 spec:02-14.11#7 */
    {"/interfaces/07-three-sources", PRIMARY "," SECONDARY, NIC("prim", "m1") "," NIC("sec", "m2"), GUEST("m1", "eth0", "9.9.9.9", "['9.9.9.9']"),
     "[{'name':'prim','infoSource':'domain, multus-status'},{'name':'foo','infoSource':'multus-status'}]",
     "[" SHOWN("prim", "m1", "domain, guest-agent, multus-status", ",'interfaceName':'eth0','ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "," SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:04-23.7#3d spec:02-14.10#9 */
    {"/interfaces/09-other-family-only", PRIMARY, NIC("prim", "m1"), GUEST("m1", "eth0", "fd00::9", "['fd00::9']"), "[]",
     "[" SHOWN("prim", "m1", "domain, guest-agent", ",'interfaceName':'eth0','ipAddress':'fd00::9','ipAddresses':['fd00::9']") "]"},
    {"/interfaces/13-sriov", "{'name':'sec','sriov':{},'macAddress':'m9'}", "", "", "[]", NULL},
    /* spec:04-23.7#7a spec:02-14.10#16 */
    {"/interfaces/16-masquerade-hides-link-local", "{'name':'sec','masquerade':{}}", NIC("sec", "m2"),
     GUEST("m2", "eth1", "", "['fe80::1','169.254.1.1','::ffff:169.254.0.1','fd10::2','10.0.2.2/24']"), "[]",
     "[" SHOWN("sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1','ipAddress':'fd10::2','ipAddresses':['fd10::2']") "]"},
    /* spec:04-23.7#7b spec:02-14.10#17 */
    {"/interfaces/17-bridge-keeps-link-local", SECONDARY, NIC("sec", "m2"), GUEST("m2", "eth1", "", "['fe80::1','169.254.1.1']"), "[]",
     "[" SHOWN("sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1','ipAddress':'169.254.1.1','ipAddresses':['169.254.1.1','fe80::1']") "]"},
    {"/interfaces/18-guest-changed-its-mac", SECONDARY, NIC("sec", "m2"), GUEST("m3", "eth1", "1.1.1.1", "['1.1.1.1']"), "[]",
     "[" SHOWN("sec", "m2", "domain", "") ",{'mac':'m3','ipAddress':'1.1.1.1','ipAddresses':['1.1.1.1'],'interfaceName':'eth1','infoSource':'guest-agent'}]"},
    /* spec:02-14.10#22 */
    {"/interfaces/22-old-launcher", SECONDARY, NIC("sec", "m2"), GUEST("m2", "", "1.1.1.1", "['1.1.1.1']"), "[]",
     "[" SHOWN("sec", "m2", "domain", ",'ipAddress':'1.1.1.1','ipAddresses':['1.1.1.1']") "]"},
    {"/interfaces/a-second-guest-nic-of-the-mac", "", "", GUEST("m", "eth0", "1.1.1.1", "['1.1.1.1']") "," GUEST("m", "eth0.5", "2.2.2.2", "['2.2.2.2']"), "[]",
     "[{'mac':'m','ipAddress':'1.1.1.1','ipAddresses':['1.1.1.1'],'interfaceName':'eth0.5','infoSource':'domain, guest-agent'}]"},
    {"/interfaces/primary-defined-last", SECONDARY "," PRIMARY, NIC("sec", "m2") "," NIC("prim", "m1"), "", "[]",
     "[" SHOWN("prim", "m1", "domain", ",'ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "," SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:04-23.7#11a spec:02-14.10#25 spec:02-14.10#29 */
    {"/interfaces/25-known-to-multus-only", PRIMARY "," SECONDARY, NIC("prim", "m1"), "", "[{'name':'sec','infoSource':'multus-status','podInterfaceName':'net1'}]",
     "[" SHOWN("prim", "m1", "domain", ",'ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") ",{'name':'sec','infoSource':'multus-status','podInterfaceName':'net1'}]"},
    /* spec:04-23.7#11b spec:02-14.10#26 */
    {"/interfaces/26-multus-without-spec", "", "", "", "[{'name':'sec','infoSource':'multus-status'}]", NULL},
    /* spec:04-23.7#12b spec:02-14.10#27 */
    {"/interfaces/27-pod-name-is-kept", SECONDARY, NIC("sec", "m2"), "", "[{'name':'sec','podInterfaceName':'net1','ipAddress':'old'}]",
     "[" SHOWN("sec", "m2", "domain", ",'podInterfaceName':'net1'") "]"},
    /* spec:04-23.7#12c spec:02-14.10#28 */
    {"/interfaces/28-vanished-primary", PRIMARY "," SECONDARY, NIC("sec", "m2"), "", "[{'name':'prim','mac':'m1','podInterfaceName':'eth0','infoSource':'domain'}]",
     "[{'name':'prim','podInterfaceName':'eth0'}," SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:04-23.7#3c */
    {"/interfaces/06-guest-addresses-of-bridge-lose-to-the-pods", PRIMARY, NIC("prim", "m1"), GUEST("m1", "eth0", "9.9.9.9", "['9.9.9.9']"), "[]",
     "[" SHOWN("prim", "m1", "domain, guest-agent", ",'interfaceName':'eth0','ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "]"},
    /* field:FR-H05: an address more than in the last report */
    {"/interfaces/later-addresses-are-shown", SECONDARY, NIC("sec", "m2"), GUEST("m2", "eth1", "1.2.3.4", "['1.2.3.4','1.2.3.5']"),
     "[" SHOWN("sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1','ipAddress':'1.2.3.4','ipAddresses':['1.2.3.4']") "]",
     "[" SHOWN("sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1','ipAddress':'1.2.3.4','ipAddresses':['1.2.3.4','1.2.3.5']") "]"},
    /* field:FR-H06 */
    {"/interfaces/private-address-is-not-shown", "{'name':'sec','masquerade':{}}", NIC("sec", "m2"), GUEST("m2", "eth1", "10.0.2.2", "['10.0.2.2','fd10:0:2::2','172.17.0.1']"), "[]",
     "[" SHOWN("sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1','ipAddress':'172.17.0.1','ipAddresses':['172.17.0.1']") "]"},
    {"/interfaces/upper-case-mac", SECONDARY, NIC("sec", "AA:bb"), GUEST("aa:BB", "eth1", "1.1.1.1", "['1.1.1.1']"), "[]",
     "[" SHOWN("sec", "AA:bb", "domain, guest-agent", ",'interfaceName':'eth1','ipAddress':'1.1.1.1','ipAddresses':['1.1.1.1']") "]"},
    /* spec:04-23.7#5 spec:02-14.10#10 */
    {"/interfaces/10-mac-follows-the-domain", PRIMARY, NIC("prim", "m9"), "", "[{'name':'prim','mac':'m1','infoSource':'domain'}]",
     "[" SHOWN("prim", "m9", "domain", ",'ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "]"},
    /* spec:04-23.7#3a spec:02-14.10#12 */
    {"/interfaces/12-silent-guest-clears-previous-addresses", SECONDARY, NIC("sec", "m2"), GUEST("m2", "eth1", "", "null"),
     "[{'name':'sec','mac':'m2','ipAddress':'1.2.3.4','ipAddresses':['1.2.3.4','fd00::9'],'infoSource':'domain, guest-agent'}]",
     "[" SHOWN("sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1'") "]"},
    /* spec:04-23.7#8a spec:02-14.10#18 */
    {"/interfaces/18-guest-changed-both-macs", PRIMARY "," SECONDARY, NIC("prim", "m1") "," NIC("sec", "m2"), GUEST("x1", "eth0", "1.1.1.1", "['1.1.1.1']") "," GUEST("x2", "eth1", "2.2.2.2", "['2.2.2.2']"), "[]",
     "[" SHOWN("prim", "m1", "domain", ",'ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "," SHOWN("sec", "m2", "domain", "") ","
     "{'mac':'x1','ipAddress':'1.1.1.1','ipAddresses':['1.1.1.1'],'interfaceName':'eth0','infoSource':'guest-agent'},"
     "{'mac':'x2','ipAddress':'2.2.2.2','ipAddresses':['2.2.2.2'],'interfaceName':'eth1','infoSource':'guest-agent'}]"},
    /* spec:04-23.7#7c spec:04-23.7#8b spec:04-23.8#6 spec:02-14.10#19 */
    {"/interfaces/19-guest-made-an-interface", SECONDARY, NIC("sec", "m2"), GUEST("g", "br0", "fe80::1", "['fe80::1','169.254.1.1','10.0.0.1/8']"), "[]",
     "[" SHOWN("sec", "m2", "domain", "") ",{'mac':'g','ipAddress':'fe80::1','ipAddresses':['fe80::1','169.254.1.1','10.0.0.1/8'],'interfaceName':'br0','infoSource':'guest-agent'}]"},
    /* spec:04-23.7#8c spec:02-14.10#20 */
    {"/interfaces/20-guest-says-nothing", PRIMARY "," SECONDARY, NIC("prim", "m1") "," NIC("sec", "m2"), "",
     "[{'name':'prim','mac':'m1','infoSource':'domain, guest-agent','interfaceName':'eth0'},{'mac':'g','infoSource':'guest-agent'}]",
     "[" SHOWN("prim", "m1", "domain", ",'ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "," SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:04-23.7#9a spec:02-14.10#22 */
    {"/interfaces/22-old-launcher-without-addresses", PRIMARY, NIC("prim", "m1"), GUEST("m1", "", "", "null"), "[]",
     "[" SHOWN("prim", "m1", "domain", "") "]"},
    /* spec:04-23.7#9b spec:02-14.10#23 */
    {"/interfaces/23-old-launcher-with-name", SECONDARY, NIC("sec", "m2"), GUEST("m2", "eth1", "1.1.1.1", "['1.1.1.1']"), "[]",
     "[" SHOWN("sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1','ipAddress':'1.1.1.1','ipAddresses':['1.1.1.1']") "]"},
    /* spec:04-23.7#12a */
    {"/interfaces/27-default-pod-name-of-the-primary-is-kept", PRIMARY, NIC("prim", "m1"), "", "[{'name':'prim','podInterfaceName':'eth0'}]",
     "[" SHOWN("prim", "m1", "domain", ",'podInterfaceName':'eth0','ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "]"},
    /* spec:04-23.7#12a */
    {"/interfaces/27-no-pod-name-of-the-primary-stays-none", PRIMARY, NIC("prim", "m1"), "", "[{'name':'prim'}]",
     "[" SHOWN("prim", "m1", "domain", ",'ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "]"},
    /* plugged by multus, not by the launcher yet; then the other way round */
    {"/interfaces/unplugged-but-attached", "{'name':'sec','bridge':{},'state':'absent'}", NIC("sec", "m2"), GUEST("m2", "eth1", "1.1.1.1", "['1.1.1.1']"), "[{'name':'sec','infoSource':'domain, guest-agent, multus-status'}]",
     "[" SHOWN("sec", "m2", "domain, guest-agent, multus-status", ",'interfaceName':'eth1','ipAddress':'1.1.1.1','ipAddresses':['1.1.1.1']") "]"},
    {"/interfaces/unplugged-and-detached", "{'name':'sec','bridge':{},'state':'absent'}", "", "", "[{'name':'sec','mac':'m2','interfaceName':'eth1','ipAddress':'1.1.1.1','ipAddresses':['1.1.1.1'],'queueCount':1,'linkState':'up','podInterfaceName':'podx','infoSource':'domain, guest-agent, multus-status'}]",
     "[{'name':'sec','infoSource':'multus-status','podInterfaceName':'podx'}]"},
    {"/interfaces/unplugged-and-gone-from-the-pod", "{'name':'sec','bridge':{},'state':'absent'}", "", "", "[{'name':'sec','mac':'m2','infoSource':'domain'}]", NULL},
    /* spec:04-23.7#12a */
    {"/interfaces/27-pod-name-of-the-primary-is-kept", PRIMARY, NIC("prim", "m1"), "", "[{'name':'prim','podInterfaceName':'eth7'}]",
     "[" SHOWN("prim", "m1", "domain", ",'podInterfaceName':'eth7','ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']") "]"},
    /* spec:02-14.10#28 */
    {"/interfaces/28-vanished-primary-without-pod-name", PRIMARY "," SECONDARY, NIC("sec", "m2"), "", "[{'name':'prim','mac':'m1'}]",
     "[{'name':'prim'}," SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:04-23.7#12c spec:02-14.10#28 */
    {"/interfaces/28-vanished-primary-with-custom-pod-name", PRIMARY "," SECONDARY, NIC("sec", "m2"), "", "[{'name':'prim','mac':'m1','podInterfaceName':'own0','queueCount':3}]",
     "[{'name':'prim','podInterfaceName':'own0'}," SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:04-23.7#13a spec:02-14.10#30 */
    {"/interfaces/30-link-up", SECONDARY, "{'Alias':{'Name':'sec'},'MAC':{'MAC':'m'},'LinkState':{'State':'up'}}", "", "[]",
     "[{'name':'sec','mac':'m','infoSource':'domain','queueCount':1,'linkState':'up'}]"},
    /* spec:04-23.7#13d spec:02-14.10#33 */
    {"/interfaces/33-without-cache-file", SECONDARY, NIC("sec", "m2"), "", "[]", "[" SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:02-14.11#7 */
    {"/interfaces/07-multus-joins-the-domain", SECONDARY, NIC("sec", "m2"), "", "[{'name':'sec','infoSource':'multus-status'}]",
     "[" SHOWN("sec", "m2", "domain, multus-status", "") "]"},
    /* spec:02-14.11#7 */
    {"/interfaces/07-multus-joins-nobody", PRIMARY, "", "", "[{'name':'prim','infoSource':'domain, multus-status'}]",
     "[{'name':'prim','infoSource':'multus-status'}]"},
    /* spec:02-14.11#8 */
    {"/interfaces/08-multus-is-named-once", SECONDARY, NIC("sec", "m2"), "", "[{'name':'sec','infoSource':'domain, multus-status, multus-status'}]",
     "[" SHOWN("sec", "m2", "domain, multus-status", "") "]"},
    /* spec:02-14.11#9 */
    {"/interfaces/09-agent-leaves-the-sources", SECONDARY, NIC("sec", "m2"), "", "[{'name':'sec','infoSource':'domain, guest-agent, multus-status'}]",
     "[" SHOWN("sec", "m2", "domain, multus-status", "") "]"},
    /* spec:02-14.11#9 */
    {"/interfaces/09-agent-leaves-the-domain", SECONDARY, NIC("sec", "m2"), "", "[{'name':'sec','infoSource':'domain, guest-agent'}]",
     "[" SHOWN("sec", "m2", "domain", "") "]"},
    /* spec:04-23.7#13a spec:02-14.10#30 */
    {"/interfaces/30-link-down", SECONDARY, "{'Alias':{'Name':'sec'},'MAC':{'MAC':'m'},'LinkState':{'State':'down'}}", "", "[]",
     "[{'name':'sec','mac':'m','infoSource':'domain','queueCount':1,'linkState':'down'}]"},
    /* spec:04-23.7#13b spec:02-14.10#31 */
    {"/interfaces/31-not-in-the-spec", "", NIC("x", "m"), "", "[]", "[" SHOWN("x", "m", "domain", "") "]"},
    /* spec:04-23.7#13c spec:04-23.7#13e spec:02-14.10#32 spec:02-14.10#34 */
    {"/interfaces/32-in-the-spec-only", SECONDARY, "", "", "[]", NULL},
        /* clang-format on */
};

/* With the pod's addresses of the comment above. */
static ChStatusResult *
run(const char *spec,
    const char *devices,
    const char *host_devices,
    const char *guest,
    const char *previous)
{
    static const char *const ips[] = {"10.244.0.3", NULL};
    static const ChPodAddresses addresses = {"prim", "10.244.0.3", ips};
    g_autofree char *vmi_text =
        g_strdup_printf("{'spec':{'networks':[{'name':'sec','multus':{}},{'name':'prim','pod':{}}],"
                        "'domain':{'devices':{'interfaces':[%s]}}},"
                        "'status':{'phase':'Running','interfaces':%s}}",
                        spec,
                        previous);
    g_autofree char *domain_text =
        g_strdup_printf("{'Spec':{'Devices':{'Interfaces':[%s],'HostDevices':%s}},"
                        "'Status':{'Status':'Running','Interfaces':[%s]}}",
                        devices,
                        host_devices,
                        guest);
    g_autoptr(ChJson) vmi = parse_json(vmi_text);
    g_autoptr(ChDomain) domain = parse_domain(domain_text);

    return ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .pod_addresses = &addresses,
            .n_pod_addresses = 1,
            .now_us = TEST_NOW_US,
        },
        &test_node);
}

static void
test_interfaces(gconstpointer data)
{
    const struct InterfaceCase *c = data;
    g_autoptr(ChStatusResult) result = run(c->spec, c->devices, "null", c->guest, c->previous);
    const ChJson *list = ch_json_at(result->vmi, "status", "interfaces");

    if (c->expect == NULL)
        g_assert_null(list);
    else
        assert_json(list, c->expect);
}

static const char *const both_addresses[] = {"prim", "10.244.0.3", "sec", "10.9.0.3"};

/* Both interfaces have an address in the pod. */
static ChStatusResult *
run_with_both(const char *order, const char *guest)
{
    ChPodAddresses addresses[2];
    const char *ips[2][2] = {{both_addresses[1], NULL}, {both_addresses[3], NULL}};
    g_autofree char *vmi_text = g_strdup_printf(
        "{'spec':{'networks':[{'name':'prim','pod':{}},{'name':'sec','multus':{}},"
        "{'name':'third','multus':{}}],'domain':{'devices':{'interfaces':[" PRIMARY "," SECONDARY
        ",{'name':'third','bridge':{}}]}}},'status':{'phase':'Running'}}");
    g_autofree char *domain_text =
        g_strdup_printf("{'Spec':{'Devices':{'Interfaces':[%s]}},'Status':{'Status':'Running',"
                        "'Interfaces':[%s]}}",
                        order,
                        guest);
    g_autoptr(ChJson) vmi = parse_json(vmi_text);
    g_autoptr(ChDomain) domain = parse_domain(domain_text);

    for (int i = 0; i < 2; i++)
        addresses[i] = (ChPodAddresses){both_addresses[2 * i], both_addresses[2 * i + 1], ips[i]};
    return ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .pod_addresses = addresses,
            .n_pod_addresses = 2,
            .now_us = TEST_NOW_US,
        },
        &test_node);
}

static const char *
run_families(const char *pod_ips, const char *guest_ips, char **out_text)
{
    g_auto(GStrv) ips = g_strsplit(pod_ips, " ", -1);
    const ChPodAddresses addresses = {"prim", ips[0], (const char *const *)ips};
    g_autofree char *domain_text = g_strdup_printf(
        "{'Spec':{'Devices':{'Interfaces':[" NIC(
            "prim", "m1") "]}},'Status':{'Status':'Running','Interfaces':[" GUEST("m1",
                                                                                  "eth0",
                                                                                  "",
                                                                                  "%s") "]}}",
        guest_ips);
    g_autoptr(ChJson) vmi =
        parse_json("{'spec':{'networks':[{'name':'prim','pod':{}}],'domain':{'devices':"
                   "{'interfaces':[" PRIMARY "]}}},'status':{'phase':'Running'}}");
    g_autoptr(ChDomain) domain = parse_domain(domain_text);
    g_autoptr(ChStatusResult) result = ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .pod_addresses = &addresses,
            .n_pod_addresses = 1,
            .now_us = TEST_NOW_US,
        },
        &test_node);
    const ChJson *entry = ch_json_item(ch_json_at(result->vmi, "status", "interfaces"), 0);

    *out_text = ch_json_print(ch_json_at(entry, "ipAddresses"), NULL);
    return *out_text;
}

/* spec:04-23.7#3c: each family for itself. */
static void
test_families(void)
{
    static const char *const rows[][3] = {
        {"10.244.0.3 fd10::3", "['9.9.9.9','fd00::9']", "[\"10.244.0.3\",\"fd10::3\"]"},
        {"10.244.0.3 fd10::3", "['9.9.9.9']", "[\"10.244.0.3\"]"},
        {"10.244.0.3 fd10::3", "['fd00::9']", "[\"fd10::3\"]"},
        {"10.244.0.3", "['fd00::9','9.9.9.9']", "[\"10.244.0.3\",\"fd00::9\"]"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *text = NULL;

        g_assert_cmpstr(run_families(rows[i][0], rows[i][1], &text), ==, rows[i][2]);
    }
}

#define POD_1 ",'ipAddress':'10.244.0.3','ipAddresses':['10.244.0.3']"
#define POD_2 ",'ipAddress':'10.9.0.3','ipAddresses':['10.9.0.3']"

/* spec:02-14.10#3 spec:02-14.10#5 spec:04-23.7#2a spec:04-23.7#3a: the guest of the second reports
 * no address. */
static void
test_two_nics(void)
{
    g_autoptr(ChStatusResult) silent = run_with_both(NIC("prim", "m1") "," NIC("sec", "m2"), "");
    g_autoptr(ChStatusResult) reported = run_with_both(
        NIC("prim", "m1") "," NIC("sec", "m2"),
        GUEST("m1", "eth0", "10.244.0.3", "['10.244.0.3']") "," GUEST("m2", "eth1", "", "[]"));

    assert_json(
        ch_json_at(silent->vmi, "status", "interfaces"),
        "[" SHOWN("prim", "m1", "domain", POD_1) "," SHOWN("sec", "m2", "domain", POD_2) "]");
    assert_json(
        ch_json_at(reported->vmi, "status", "interfaces"),
        "[" SHOWN("prim", "m1", "domain, guest-agent", ",'interfaceName':'eth0'" POD_1) "," SHOWN(
            "sec", "m2", "domain, guest-agent", ",'interfaceName':'eth1'") "]");
}

/* spec:02-14.10#24 spec:04-23.7#10: first, in the middle, last; the others keep their order. */
static void
test_primary_comes_first(void)
{
    static const char *const orders[] = {
        NIC("prim", "m1") "," NIC("sec", "m2") "," NIC("third", "m3"),
        NIC("sec", "m2") "," NIC("prim", "m1") "," NIC("third", "m3"),
        NIC("sec", "m2") "," NIC("third", "m3") "," NIC("prim", "m1"),
    };

    for (gsize i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(ChStatusResult) result = run_with_both(orders[i], "");

        assert_json(ch_json_at(result->vmi, "status", "interfaces"),
                    "[" SHOWN("prim", "m1", "domain", POD_1) "," SHOWN(
                        "sec", "m2", "domain", POD_2) "," SHOWN("third", "m3", "domain", "") "]");
    }
}

/* spec:02-14.10#13 spec:02-14.10#14 spec:04-23.7#6a spec:04-23.7#6b: with and without an interface
 * beside it. */
static void
test_sriov_without_agent(void)
{
    static const char sriov[] = "{'name':'sec','sriov':{},'macAddress':'m9'}";
    static const char devices[] = "[{'Alias':{'Name':'sriov-sec'}}]";
    g_autofree char *both = g_strconcat(PRIMARY ",", sriov, NULL);
    g_autoptr(ChStatusResult) alone = run(sriov, "", devices, "", "[]");
    g_autoptr(ChStatusResult) beside = run(both, NIC("prim", "m1"), devices, "", "[]");

    assert_json(ch_json_at(alone->vmi, "status", "interfaces"),
                "[{'name':'sec','mac':'m9','infoSource':'domain'}]");
    assert_json(
        ch_json_at(beside->vmi, "status", "interfaces"),
        "[" SHOWN(
            "prim", "m1", "domain", POD_1) ",{'name':'sec','mac':'m9','infoSource':'domain'}]");
}

/* spec:02-14.10#15 spec:04-23.7#6c field:FR-H07: the MAC is the spec's, in its letters; the guest's
 * name is found by it. */
static void
test_sriov(void)
{
    g_autoptr(ChStatusResult) result =
        run("{'name':'sec','sriov':{},'macAddress':'M9'}",
            "",
            "[{'Alias':{'Name':'sriov-sec'}},{'Alias':{'Name':'gpu'}}]",
            GUEST("m9", "eth5", "", "[]"),
            "[]");

    assert_json(ch_json_at(result->vmi, "status", "interfaces"),
                "[{'name':'sec','mac':'M9','interfaceName':'eth5',"
                "'infoSource':'domain, guest-agent'}]");
}

/* spec:02-14.10#21 spec:04-23.7#8d field:FR-H09: two interfaces of the VMI, and ten of all those of
 * the guest; the same ones each time. */
static void
test_guest_cannot_flood(void)
{
    g_autoptr(GString) guest =
        g_string_new(GUEST("m1", "eth0", "", "null") "," GUEST("m2", "eth1", "", "null"));
    g_autofree char *first = NULL;

    for (int i = 0; i < 2000; i++)
        g_string_append_printf(guest, ",{'Mac':'g%d','InterfaceName':'e'}", i);
    for (int n = 0; n < 2; n++) {
        g_autoptr(ChStatusResult) result = run(PRIMARY "," SECONDARY,
                                               NIC("prim", "m1") "," NIC("sec", "m2"),
                                               "null",
                                               guest->str,
                                               "[]");
        const ChJson *list = ch_json_at(result->vmi, "status", "interfaces");
        g_autofree char *text = ch_json_print(list, NULL);

        g_assert_cmpuint(ch_json_length(list), ==, 12);
        g_assert_cmpstr(ch_json_string_at(ch_json_item(list, 2), "mac"), ==, "g0");
        g_assert_cmpstr(ch_json_string_at(ch_json_item(list, 11), "mac"), ==, "g9");
        if (first != NULL)
            g_assert_cmpstr(text, ==, first);
        g_free(first);
        first = g_steal_pointer(&text);
    }
}

/* field:FR-J04: whoever else writes the list may leave it in another order; only what is said is
 * news, and multus keeps its word. */
static void
test_order_is_no_news(void)
{
    static const char *const others[] = {
        SHOWN("a", "m2", "domain, multus-status", ""),
        SHOWN("b", "m3", "domain", ""),
        "{'name':'sec','infoSource':'multus-status'}",
    };
    static const guint8 orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};

    for (gsize i = 0; i < G_N_ELEMENTS(orders); i++) {
        const guint8 *order = orders[i];
        g_autofree char *previous =
            g_strdup_printf("[" SHOWN("prim", "m1", "domain", POD_1) ",%s,%s,%s]",
                            others[order[0]],
                            others[order[1]],
                            others[order[2]]);
        g_autoptr(ChStatusResult) same =
            run(PRIMARY "," SECONDARY,
                NIC("prim", "m1") "," NIC("a", "m2") "," NIC("b", "m3"),
                "null",
                "",
                previous);
        g_autoptr(ChStatusResult) other =
            run(PRIMARY "," SECONDARY,
                NIC("prim", "m1") "," NIC("a", "m9") "," NIC("b", "m3"),
                "null",
                "",
                previous);

        assert_json(ch_json_at(same->vmi, "status", "interfaces"), previous);
        assert_json(ch_json_at(other->vmi, "status", "interfaces"),
                    "[" SHOWN("prim", "m1", "domain", POD_1) "," SHOWN(
                        "a",
                        "m9",
                        "domain, multus-status",
                        "") "," SHOWN("b",
                                      "m3",
                                      "domain",
                                      "") ",{'name':'sec','infoSource':'multus-status'}]");
    }
}

/* spec:02-14.10#1 spec:04-23.7#1a: without a domain the list stays. */
static void
test_without_domain(void)
{
    g_autoptr(ChStatusResult) result =
        run_status("", "'phase':'Scheduled','interfaces':[{'name':'x'}]", NULL, NULL);

    assert_json(ch_json_at(result->vmi, "status", "interfaces"), "[{'name':'x'}]");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_interfaces);
    g_test_add_func("/interfaces/03-05-two-nics", test_two_nics);
    g_test_add_func("/interfaces/families", test_families);
    g_test_add_func("/interfaces/24-primary-comes-first", test_primary_comes_first);
    g_test_add_func("/interfaces/13-14-sriov-without-agent", test_sriov_without_agent);
    g_test_add_func("/interfaces/15-sriov", test_sriov);
    g_test_add_func("/interfaces/21-guest-cannot-flood", test_guest_cannot_flood);
    g_test_add_func("/interfaces/order-is-no-news", test_order_is_no_news);
    g_test_add_func("/interfaces/01-without-domain", test_without_domain);
    return g_test_run();
}
