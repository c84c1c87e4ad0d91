/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/domain-xml.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/json/test-text.h"
#include "local/launcher/test-golden.h"
#include "local/launcher/xml.h"

static const ChPaths paths = {
    .private_dir = "/var/run/kubevirt-private",
    .ephemeral_dir = "/var/run/kubevirt-ephemeral-disks",
    .container_disk_dir = "/var/run/kubevirt/container-disks",
    .empty_disk_dir = "/var/run/libvirt/empty-disks",
};

/* The options that the agent sends by default (spec 03 §4.7). */
static void
init_options(Kubevirt__Cmd__V1__VirtualMachineOptions *options,
             Kubevirt__Cmd__V1__SMBios *smbios,
             Kubevirt__Cmd__V1__ClusterConfig *cluster)
{
    static char kubevirt[] = "KubeVirt";
    static char none[] = "None";
    static Kubevirt__Cmd__V1__VirtualMachineOptions__InterfaceDomainAttachmentEntry entry;
    static Kubevirt__Cmd__V1__VirtualMachineOptions__InterfaceDomainAttachmentEntry *entries[] = {
        &entry};
    static char interface[] = "default";
    static char tap[] = "tap";

    kubevirt__cmd__v1__virtual_machine_options__init(options);
    kubevirt__cmd__v1__smbios__init(smbios);
    kubevirt__cmd__v1__cluster_config__init(cluster);
    smbios->manufacturer = kubevirt;
    smbios->family = kubevirt;
    smbios->product = none;
    kubevirt__cmd__v1__virtual_machine_options__interface_domain_attachment_entry__init(&entry);
    entry.key = interface;
    entry.value = tap;
    options->interface_domain_attachment = entries;
    options->n_interface_domain_attachment = 1;
    options->virtual_machine_smbios = smbios;
    options->mem_balloon_stats_period = 10;
    options->cluster_config = cluster;
}

/* @part: of one interface; NULL: all of it */
static char *
convert_part(const ChJson *vmi, const char *part, GError **error)
{
    static char cloudinit[] = "cloudinit";
    static char root[] = "root";
    static char interface[] = "default";
    static char tap[] = "tap0";
    static char mac[] = "12:21:44:bb:4a:cf";
    const ChDiskFacts disks[] = {{cloudinit, "none"}, {root, "writethrough"}};
    const ChNicFacts nics[] = {{interface, tap, mac, 1500}};
    Kubevirt__Cmd__V1__VirtualMachineOptions options;
    Kubevirt__Cmd__V1__SMBios smbios;
    Kubevirt__Cmd__V1__ClusterConfig cluster;
    const ChDomainInput input = {
        .vmi = vmi,
        .options = &options,
        .paths = paths,
        .is_emulated = true,
        .disks = disks,
        .n_disks = G_N_ELEMENTS(disks),
        .nics = nics,
        .n_nics = G_N_ELEMENTS(nics),
    };

    init_options(&options, &smbios, &cluster);
    return part != NULL ? ch_domain_interface_build(&input, part, error)
                        : ch_domain_xml_build(&input, error);
}

static char *
convert(const ChJson *vmi, GError **error)
{
    return convert_part(vmi, NULL, error);
}

static ChJson *
read_vmi(const char *file)
{
    g_autofree char *text = golden_read(file);
    g_autoptr(GError) error = NULL;
    ChJson *vmi = ch_json_parse(text, -1, &error);

    g_assert_no_error(error);
    return vmi;
}

static void
test_golden(gconstpointer data)
{
    g_autofree char *input = g_strconcat(data, ".json", NULL);
    g_autofree char *output = g_strconcat(data, ".xml", NULL);
    g_autoptr(ChJson) vmi = read_vmi(input);
    g_autoptr(GError) error = NULL;

    g_autofree char *xml = convert(vmi, &error);
    g_assert_no_error(error);
    golden_compare(output, xml);
}

static const struct Case {
    const char *path;
    const char *domain; /* spec.domain, memory included */
    const char *expect; /* part of the document, or of the error's text */
    bool fails;
} cases[] = {
    {"/domain-xml/memory-guest-wins",
     "{'memory':{'guest':'64M'},'resources':{'requests':{'memory':'1Gi'}}}",
     "<memory unit=\"b\">64000000</memory>",
     false},
    {"/domain-xml/memory-request-before-limit",
     "{'resources':{'requests':{'memory':'3Gi'},'limits':{'memory':'4Gi'}}}",
     "<memory unit=\"b\">3221225472</memory>",
     false},
    {"/domain-xml/memory-fraction-of-a-byte-is-cut",
     "{'memory':{'guest':'2222222200m'}}",
     "<memory unit=\"b\">2222222</memory>",
     false},
    {"/domain-xml/memory-negative-is-refused",
     "{'memory':{'guest':'-1Mi'}}",
     "must be greater than or equal to 0",
     true},
    {"/domain-xml/memory-missing-is-refused", "{}", "no memory", true},
    {"/domain-xml/cpu-request-gives-sockets",
     "{'memory':{'guest':'64Mi'},'resources':{'requests':{'cpu':'3'}}}",
     "<vcpu placement=\"static\">3</vcpu>",
     false},
    {"/domain-xml/cpu-custom-model",
     "{'memory':{'guest':'64Mi'},'cpu':{'cores':2,'model':'Conroe'}}",
     "<cpu mode=\"custom\">\n    <model>Conroe</model>\n    <topology sockets=\"1\" "
     "cores=\"2\" threads=\"1\"/>\n    <feature policy=\"disable\" name=\"mpx\"/>",
     false},
    {"/domain-xml/cpu-too-many-is-refused",
     "{'memory':{'guest':'64Mi'},'cpu':{'cores':4294967296,'sockets':4294967296}}",
     "more than",
     true},
    {"/domain-xml/features-bring-acpi",
     "{'memory':{'guest':'64Mi'},'features':{}}",
     "<features>\n    <acpi/>",
     false},
    {"/domain-xml/acpi-can-be-disabled",
     "{'memory':{'guest':'64Mi'},'features':{'acpi':{'enabled':false}}}",
     "<features>\n    <vmport",
     false},
    {"/domain-xml/no-serial-console-no-virtio-serial-controller",
     "{'memory':{'guest':'64Mi'},'devices':{'autoattachSerialConsole':false,"
     "'autoattachGraphicsDevice':false,'autoattachMemBalloon':false}}",
     "<memballoon model=\"none\"/>",
     false},
    {"/domain-xml/efi-is-refused-by-name",
     "{'memory':{'guest':'64Mi'},'firmware':{'bootloader':{'efi':{}}}}",
     "spec.domain.firmware.bootloader.efi is not supported",
     true},
    {"/domain-xml/unsupported-thing-switched-off-is-fine",
     "{'memory':{'guest':'64Mi'},'devices':{'tpm':{'enabled':false},'gpus':[]},"
     "'cpu':{'dedicatedCpuPlacement':false}}",
     "<domain type=\"qemu\">",
     false},
    {"/domain-xml/disk-without-volume-is-refused",
     "{'memory':{'guest':'64Mi'},'devices':{'disks':[{'name':'nope'}]}}",
     "no matching volume with name nope found",
     true},
    {"/domain-xml/disk-name-cannot-leave-its-directory",
     "{'memory':{'guest':'64Mi'},'devices':{'disks':[{'name':'../../etc/passwd'}]}}",
     "is not valid",
     true},
    {"/domain-xml/claim-is-refused-by-name",
     "{'memory':{'guest':'64Mi'},'devices':{'disks':[{'name':'claim'}]}}",
     "does not support the source persistentVolumeClaim",
     true},
    {"/domain-xml/unknown-bus-is-refused",
     "{'memory':{'guest':'64Mi'},'devices':{'disks':[{'name':'root','disk':{'bus':'ide'}}]}}",
     "unknown bus ide",
     true},
    {"/domain-xml/unknown-error-policy-is-refused",
     "{'memory':{'guest':'64Mi'},'devices':{'disks':[{'name':'root','errorPolicy':'retry'}]}}",
     "error policy retry not recognized",
     true},
    {"/domain-xml/shareable-needs-no-cache",
     "{'memory':{'guest':'64Mi'},'devices':{'disks':[{'name':'root','shareable':true,"
     "'cache':'writeback'}]}}",
     "a sharable disk requires cache = none got: writeback",
     true},
    {"/domain-xml/recorded-target-is-kept-and-not-given-twice",
     "{'memory':{'guest':'64Mi'},'devices':{'disks':[{'name':'cloudinit','disk':{'bus':"
     "'virtio'}},{'name':'root','disk':{'bus':'virtio'}}]}}",
     "<target bus=\"virtio\" dev=\"vdb\"/>",
     false},
    {"/domain-xml/interface-without-network-is-refused",
     "{'memory':{'guest':'64Mi'},'devices':{'interfaces':[{'name':'other','masquerade':{}}]}}",
     "failed to find network other",
     true},
    {"/domain-xml/interface-without-tap-is-refused",
     "{'memory':{'guest':'64Mi'},'devices':{'interfaces':[{'name':'second','bridge':{}}]}}",
     "supports only interfaces with a tap",
     true},
    {"/domain-xml/interface-with-a-dot-is-refused",
     "{'memory':{'guest':'64Mi'},'devices':{'interfaces':[{'name':'a.b','bridge':{}}]}}",
     "interface a.b: a name may have",
     true},
    {"/domain-xml/interface-with-dash-and-underscore",
     "{'memory':{'guest':'64Mi'},'devices':{'interfaces':[{'name':'Other_net-2','bridge':{}}]}}",
     "interface Other_net-2: this launcher supports only interfaces with a tap",
     true},
    {"/domain-xml/pci-address-of-an-interface",
     "{'memory':{'guest':'64Mi'},'devices':{'interfaces':[{'name':'default','bridge':{},"
     "'pciAddress':'0000:02:1f.7','bootOrder':2,'model':'e1000e','acpiIndex':3,"
     "'macAddress':'02:00:00:00:00:05','state':'down'}]}}",
     "<model type=\"e1000e\"/>\n      <mac address=\"02:00:00:00:00:05\"/>\n      <target "
     "dev=\"tap0\" managed=\"no\"/>\n      <mtu size=\"1500\"/>\n      <boot order=\"2\"/>\n      "
     "<link state=\"down\"/>\n      <acpi index=\"3\"/>\n      <address type=\"pci\" "
     "domain=\"0x00\" bus=\"0x02\" slot=\"0x1f\" function=\"0x07\"/>",
     false},
    {"/domain-xml/bad-pci-address-is-refused",
     "{'memory':{'guest':'64Mi'},'devices':{'interfaces':[{'name':'default','bridge':{},"
     "'pciAddress':'0000:02:20.0'}]}}",
     "PCI address '0000:02:20.0' is not valid",
     true},
    {"/domain-xml/metrics-disk-is-read-only",
     "{'memory':{'guest':'64Mi'},'devices':{'disks':[{'name':'metrics','disk':{'bus':'virtio'}}]}}",
     "<source file=\"/var/run/kubevirt-private/downwardapi-disks/vhostmd0\"/>\n      <target "
     "bus=\"virtio\" dev=\"vda\"/>\n      <driver name=\"qemu\" type=\"raw\" "
     "error_policy=\"stop\" discard=\"unmap\"/>\n      <alias name=\"ua-metrics\"/>\n      "
     "<readonly/>",
     false},
    {"/domain-xml/metrics-channel",
     "{'memory':{'guest':'64Mi'},'devices':{'downwardMetrics':{}}}",
     "<channel type=\"unix\">\n      <source mode=\"bind\" "
     "path=\"/var/run/kubevirt-private/downwardmetrics-channel/downwardmetrics.sock\"/>\n      "
     "<target type=\"virtio\" name=\"org.github.vhostmd.1\"/>",
     false},
    {"/domain-xml/markup-in-text-is-escaped",
     "{'memory':{'guest':'64Mi'},'firmware':{'serial':'a<b>&\\\"c'}}",
     "<entry name=\"serial\">a&lt;b&gt;&amp;\"c</entry>",
     false},
};

static ChJson *
vmi_with_domain(const char *domain)
{
    g_autofree char *quoted = g_strdup_printf(
        "{'metadata':{'name':'vm','namespace':'default','uid':'u'},"
        "'spec':{'domain':%s,'networks':[{'name':'default','pod':{}},{'name':'second','pod':{}},"
        "{'name':'a.b','pod':{}},{'name':'Other_net-2','pod':{}}],"
        "'volumes':[{'name':'root','containerDisk':{'image':'x'}},{'name':'cloudinit',"
        "'cloudInitNoCloud':{'userData':'x'}},{'name':'claim','persistentVolumeClaim':{}},"
        "{'name':'metrics','downwardMetrics':{}}]},"
        "'status':{'volumeStatus':[{'name':'root','target':'vda'}]}}",
        domain);
    g_autoptr(GError) error = NULL;

    g_strdelimit(quoted, "'", '"');
    ChJson *vmi = ch_json_parse(quoted, -1, &error);
    g_assert_no_error(error);
    return vmi;
}

static void
test_case(gconstpointer data)
{
    const struct Case *c = data;
    g_autoptr(ChJson) vmi = vmi_with_domain(c->domain);
    g_autoptr(GError) error = NULL;

    g_autofree char *xml = convert(vmi, &error);
    const char *text = c->fails ? (error == NULL ? "no error" : error->message) : xml;

    if (!c->fails)
        g_assert_no_error(error);
    if (text == NULL || strstr(text, c->expect) == NULL)
        g_error("expected '%s' in:\n%s", c->expect, text == NULL ? "(null)" : text);
}

/* As it is plugged in: the same element as in the whole. */
static void
test_one_interface(void)
{
    g_autoptr(ChJson) vmi =
        parse_json("{'metadata':{'name':'a','namespace':'b','uid':'c'},'spec':{'domain':{'memory':{"
                   "'guest':'64Mi'},"
                   "'cpu':{'cores':2},'devices':{'networkInterfaceMultiqueue':true,'interfaces':["
                   "{'name':'default','bridge':{},'state':'down'}]}},"
                   "'networks':[{'name':'default','pod':{}}]}}");
    g_autoptr(GError) error = NULL;
    g_autofree char *whole = convert(vmi, &error);
    g_assert_no_error(error);
    g_autofree char *part = convert_part(vmi, "default", &error);
    g_assert_no_error(error);
    g_autoptr(xmlDoc) whole_doc = ch_xml_parse(whole, NULL);
    g_autoptr(xmlDoc) part_doc = ch_xml_parse(part, NULL);
    xmlNode *devices = ch_xml_child(xmlDocGetRootElement(whole_doc), "devices");
    g_autofree char *expected = ch_xml_print_node(ch_xml_child(devices, "interface"));
    g_autofree char *actual = ch_xml_print_node(xmlDocGetRootElement(part_doc));

    g_assert_cmpstr(actual, ==, expected);
    g_assert_nonnull(strstr(actual, "queues=\"2\""));
    g_assert_nonnull(strstr(actual, "state=\"down\""));
}

static void
test_absent_interface(void)
{
    g_autoptr(ChJson) vmi =
        parse_json("{'metadata':{'name':'a','namespace':'b','uid':'c'},'spec':{'domain':{'memory':{"
                   "'guest':'64Mi'},"
                   "'devices':{'interfaces':[{'name':'default','bridge':{},'state':'absent'}]}},"
                   "'networks':[{'name':'default','pod':{}}]}}");
    g_autoptr(GError) error = NULL;
    g_autofree char *whole = convert(vmi, &error);

    g_assert_no_error(error);
    g_assert_null(strstr(whole, "<interface"));
    g_assert_null(convert_part(vmi, "default", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_null(convert_part(vmi, "other", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_NOT_FOUND);
}

int
main(int argc, char **argv)
{
    ch_xml_init();
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/domain-xml/golden/plain", "vmi-plain", test_golden);
    g_test_add_data_func("/domain-xml/golden/masquerade", "vmi-masquerade", test_golden);
    g_test_add_data_func("/domain-xml/golden/disks", "vmi-disks", test_golden);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_case);
    g_test_add_func("/domain-xml/one-interface", test_one_interface);
    g_test_add_func("/domain-xml/absent-interface", test_absent_interface);
    return g_test_run();
}
