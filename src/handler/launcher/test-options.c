/* SPDX-License-Identifier: Apache-2.0 */

/* The options on the wire, against what the Go agent sent (golden traces), and field by field. */

#include "handler/launcher/options.h"
#include "lib/json/test-text.h"

#include <string.h>

typedef Kubevirt__Cmd__V1__VirtualMachineOptions Options;

/* --- against the golden traces --- */

static char *
load(const char *file)
{
    g_autofree char *path = g_build_filename(g_getenv("CH_SHARED"), "golden", file, NULL);
    char *text = NULL;
    g_autoptr(GError) error = NULL;

    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

static ChJson *
load_json(const char *file)
{
    g_autofree char *text = load(file);
    g_autoptr(GError) error = NULL;
    ChJson *json = ch_json_parse(text, -1, &error);

    g_assert_no_error(error);
    return json;
}

static ChClusterConfig *
load_config(void)
{
    g_autoptr(ChJson) cluster = load_json("cluster.json");
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < ch_json_length(cluster); i++) {
        const ChJson *object = ch_json_at(ch_json_item(cluster, i), "object");

        if (g_strcmp0(ch_json_string_at(object, "kind"), "KubeVirt") == 0) {
            ChClusterConfig *config = ch_cluster_config_parse(object, "node01", &error);

            g_assert_no_error(error);
            return config;
        }
    }
    g_assert_not_reached();
}

static char *
hex_of(const Options *options)
{
    gsize n = protobuf_c_message_get_packed_size(&options->base);
    g_autofree uint8_t *packed = g_malloc(n + 1);
    GString *hex = g_string_new(NULL);

    protobuf_c_message_pack(&options->base, packed);
    for (gsize i = 0; i < n; i++)
        g_string_append_printf(hex, "%02x", packed[i]);
    return g_string_free(hex, FALSE);
}

static const struct GoldenCase {
    const char *trace, *vmi;
} golden_cases[] = {
    {"start_plain", "vmi-plain.json"},
    {"start_masquerade", "vmi-masquerade.json"},
};

static void
test_golden(gconstpointer data)
{
    const struct GoldenCase *c = data;
    g_autofree char *directory = g_build_filename(
        g_getenv("CH_SHARED") != NULL ? g_getenv("CH_SHARED") : "", "golden", NULL);
    g_autofree char *trace_file = g_strconcat(c->trace, ".json", NULL);
    g_autoptr(ChJson) trace = NULL;
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChClusterConfig) config = NULL;
    g_autoptr(ChCapabilities) capabilities = NULL;
    g_autofree char *xml = NULL;
    g_autofree char *ours = NULL;
    const char *theirs;
    Options *options;

    if (!g_file_test(directory, G_FILE_TEST_IS_DIR)) {
        g_test_skip("the golden traces (CH_SHARED) are not here");
        return;
    }
    trace = load_json(trace_file);
    vmi = load_json(c->vmi);
    config = load_config();
    xml = load("node-labeller/capabilities.xml");
    capabilities = ch_capabilities_parse(xml, strlen(xml), NULL);
    options = ch_launcher_options_new(config, capabilities, NULL, vmi);
    ours = hex_of(options);
    theirs = ch_json_as_string(ch_json_item(ch_json_at(trace, "rpcs", "vm"), 0));
    g_assert_true(g_str_has_prefix(theirs, "SyncVirtualMachine:"));
    g_assert_cmpstr(ours, ==, strchr(theirs, ':') + 1);
    ch_launcher_options_free(options);
}

/* --- field by field --- */

static ChClusterConfig *
config_for(const char *configuration)
{
    g_autofree char *text = g_strdup_printf("{'spec':{'configuration':%s}}", configuration);
    g_autoptr(ChJson) kubevirt = parse_json(text);
    g_autoptr(GError) error = NULL;
    ChClusterConfig *config = ch_cluster_config_parse(kubevirt, "node01", &error);

    g_assert_no_error(error);
    return config;
}

static Options *
options_for(const char *configuration, const char *vmi_text)
{
    g_autoptr(ChClusterConfig) config = config_for(configuration);
    g_autoptr(ChJson) vmi = parse_json(vmi_text);

    return ch_launcher_options_new(config, NULL, NULL, vmi);
}

/* spec:01#55, and the SMBIOS of spec:01#18 */
static void
test_defaults(void)
{
    Options *options = options_for("{}", "{}");
    g_autofree char *hex = hex_of(options);

    g_assert_cmpstr(options->virtual_machine_smbios->manufacturer, ==, "KubeVirt");
    g_assert_cmpuint(options->mem_balloon_stats_period, ==, 10);
    g_assert_nonnull(options->topology); /* empty without capabilities, but there */
    g_assert_cmpuint(options->topology->n_numa_cells, ==, 0);
    g_assert_true(g_str_has_suffix(hex, "22003a021801")); /* of the config only field 3 */
    ch_launcher_options_free(options);
}

static void
test_cluster_config(void)
{
    Options *options =
        options_for("{'developerConfiguration':{'featureGates':['VGADisplayForEFIGuests','"
                    "PCINUMAAwareTopology','VGPULiveMigration',"
                    "'GraceIOVirtualization']},'virtualMachineOptions':{'disableFreePageReporting':"
                    "{},'disableSerialConsoleLog':{}}}",
                    "{}");
    const Kubevirt__Cmd__V1__ClusterConfig *bits = options->cluster_config;

    g_assert_false(bits->expand_disks_enabled);
    g_assert_true(bits->free_page_reporting_disabled);
    g_assert_false(bits->bochs_display_for_efi_guests);
    g_assert_true(bits->serial_console_log_disabled);
    g_assert_true(bits->pci_numa_aware_topology_enabled);
    g_assert_true(bits->vgpu_live_migration_enabled);
    g_assert_true(bits->grace_io_virtualization_enabled);
    ch_launcher_options_free(options);
}

/* spec:04-23.8#3a: also of absent ones; none of SR-IOV, nor where nobody says which. */
static void
test_attachments(void)
{
    Options *options = options_for("{'network':{'binding':{'managed':{'domainAttachmentType':'"
                                   "managedTap'},'tapped':{'domainAttachmentType':'tap'},"
                                   "'own':{'domainAttachmentType':'own'},'none':{}}}}",
                                   "{'spec':{'domain':{'devices':{'interfaces':[{'name':'m','"
                                   "masquerade':{}},{'name':'b','bridge':{},'state':'absent'},"
                                   "{'name':'s','sriov':{}},{'name':'p','binding':{'name':'managed'"
                                   "}},{'name':'t','binding':{'name':'tapped'}},"
                                   "{'name':'n','binding':{'name':'none'}},{'name':'u','binding':{'"
                                   "name':'unheard'}},{'name':'o','binding':{'name':'own'}},"
                                   "{'name':'passt','passtBinding':{}},{'masquerade':{}}]}}}}");
    static const char *const names[] = {"m", "b", "p", "t", "o"};
    static const char *const values[] = {"tap", "tap", "tap", "tap", "own"};

    g_assert_cmpuint(options->n_interface_domain_attachment, ==, G_N_ELEMENTS(names));
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_cmpstr(options->interface_domain_attachment[i]->key, ==, names[i]);
        g_assert_cmpstr(options->interface_domain_attachment[i]->value, ==, values[i]);
    }
    ch_launcher_options_free(options);
}

/* spec:04-23.8#3b: a plugin may say that it can without saying how. */
static void
test_finalize(void)
{
    g_autoptr(ChClusterConfig) config =
        config_for("{'network':{'binding':{'can':{'migration':{}},'refresh':{'migration':{'method':"
                   "'link-refresh'}},'cannot':{}}}}");
    g_autoptr(ChJson) vmi = parse_json(
        "{'spec':{'domain':{'devices':{'interfaces':[{'name':'m','masquerade':{}},{'name':'c'"
        ",'binding':{'name':'can'}},{'name':'r','binding':{'name':'refresh'}},{'name':'n',"
        "'binding':{'name':'cannot'}},{'name':'u','binding':{'name':'unheard'}}]}}}}");
    g_autoptr(ChJson) empty = parse_json("{}");
    Options *options = ch_launcher_options_new_finalize(config, vmi);
    Options *none = ch_launcher_options_new_finalize(config, empty);

    g_assert_cmpuint(options->n_interface_migration, ==, 2);
    g_assert_cmpstr(options->interface_migration[0]->key, ==, "c");
    g_assert_cmpstr(options->interface_migration[0]->value->method, ==, "");
    g_assert_cmpstr(options->interface_migration[1]->key, ==, "r");
    g_assert_cmpstr(options->interface_migration[1]->value->method, ==, "link-refresh");
    g_assert_cmpuint(options->n_interface_domain_attachment, ==, 0);
    g_assert_cmpuint(kubevirt__cmd__v1__virtual_machine_options__get_packed_size(none), ==, 0);
    ch_launcher_options_free(options);
    ch_launcher_options_free(none);
}

static void
test_preallocated_volumes(void)
{
    Options *options = options_for(
        "{}",
        "{'status':{'volumeStatus':[{'name':'a','persistentVolumeClaimInfo':{'preallocated':true}},"
        "{'name':'b','persistentVolumeClaimInfo':{'preallocated':false}},{'name':'c'},"
        "{'persistentVolumeClaimInfo':{'preallocated':true}}]}}");

    g_assert_cmpuint(options->n_preallocated_volumes, ==, 1);
    g_assert_cmpstr(options->preallocated_volumes[0], ==, "a");
    ch_launcher_options_free(options);
}

#define GRACE_DEVICES                                                                              \
    "{'spec':{'domain':{'devices':{'gpus':[{'name':'gpu1','deviceName':'nvidia.com/other'},"       \
    "{'name':'gpu0','deviceName':'nvidia.com/gh200'}],'hostDevices':[{'name':'hostdev0',"          \
    "'deviceName':'nvidia.com/gb200'},{'name':'x'},{'deviceName':'nvidia.com/gb200'}]}}}}"
#define GRACE_PERMITTED                                                                            \
    "'permittedHostDevices':{'pciHostDevices':[{'pciVendorSelector':'10DE:2342','resourceName':'"  \
    "nvidia.com/gh200'},{'pciVendorSelector':'10de:2941','resourceName':'nvidia.com/gb200'},"      \
    "{'pciVendorSelector':'10de:1eb8','resourceName':'nvidia.com/other'},"                         \
    "{'pciVendorSelector':'10de:*','resourceName':'nvidia.com/any'},"                              \
    "{'pciVendorSelector':'10de:2342','resourceName':''},{}]}"

/* spec:01#56 */
static void
test_grace_aliases(void)
{
    Options *options = options_for(
        "{'developerConfiguration':{'featureGates':['GraceIOVirtualization']}," GRACE_PERMITTED "}",
        GRACE_DEVICES);
    Options *without = options_for("{" GRACE_PERMITTED "}", GRACE_DEVICES);

    g_assert_true(options->cluster_config->grace_io_virtualization_enabled);
    g_assert_cmpuint(options->n_grace_host_device_aliases, ==, 2);
    g_assert_cmpstr(options->grace_host_device_aliases[0], ==, "gpu-gpu0");
    g_assert_cmpstr(options->grace_host_device_aliases[1], ==, "hostdevice-hostdev0");
    g_assert_cmpuint(without->n_grace_host_device_aliases, ==, 0); /* the gate is off */
    ch_launcher_options_free(options);
    ch_launcher_options_free(without);
}

/* 01 §24.2: absent, or the array */
static void
test_plugins(void)
{
    static const char json[] = "[{\"kind\":\"Plugin\"}]";
    g_autoptr(ChClusterConfig) config = ch_cluster_config_new_default();
    g_autoptr(ChJson) vmi = parse_json("{}");
    g_autoptr(GBytes) plugins = g_bytes_new_static(json, strlen(json));
    Options *options = ch_launcher_options_new(config, NULL, plugins, vmi);
    Options *without = ch_launcher_options_new(config, NULL, NULL, vmi);

    g_assert_cmpuint(options->plugins_json.len, ==, strlen(json));
    g_assert_cmpint(memcmp(options->plugins_json.data, json, strlen(json)), ==, 0);
    g_assert_cmpuint(without->plugins_json.len, ==, 0);
    ch_launcher_options_free(options);
    ch_launcher_options_free(without);
}

/* A VMI whose members have the wrong types is the API server's fault, not a crash. */
static void
test_odd_documents(void)
{
    static const char *const documents[] = {
        "[]",
        "{'spec':{'domain':{'devices':{'interfaces':{}}}},'status':{'volumeStatus':'x'}}",
        "{'spec':{'domain':{'devices':{'interfaces':[1,null,'x',[]]}}},'status':{'volumeStatus':[1,"
        "null]}}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(documents); i++) {
        Options *options = options_for("{}", documents[i]);

        g_assert_cmpuint(options->n_interface_domain_attachment, ==, 0);
        g_assert_cmpuint(options->n_preallocated_volumes, ==, 0);
        ch_launcher_options_free(options);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(golden_cases); i++) {
        g_autofree char *path = g_strconcat("/options/golden/", golden_cases[i].trace, NULL);

        g_test_add_data_func(path, &golden_cases[i], test_golden);
    }
    g_test_add_func("/options/defaults", test_defaults);
    g_test_add_func("/options/cluster-config", test_cluster_config);
    g_test_add_func("/options/attachments", test_attachments);
    g_test_add_func("/options/finalize", test_finalize);
    g_test_add_func("/options/preallocated-volumes", test_preallocated_volumes);
    g_test_add_func("/options/grace-aliases", test_grace_aliases);
    g_test_add_func("/options/plugins", test_plugins);
    g_test_add_func("/options/odd-documents", test_odd_documents);
    return g_test_run();
}
