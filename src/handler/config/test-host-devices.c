/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/host-devices.h"

#include "lib/base/errors.h"
#include "lib/json/test-text.h"

static void
test_permitted(void)
{
    g_autoptr(ChJson) json = parse_json(
        "{'pciHostDevices':[{'pciVendorSelector':'10DE:1EB8','resourceName':'nvidia.com/T4',"
        "'externalResourceProvider':true},{}],"
        "'mediatedDevices':[{'mdevNameSelector':'GRID T4-1Q','resourceName':'nvidia.com/Q'}],"
        "'usb':[{'resourceName':'kubevirt.io/"
        "stick','selectors':[{'vendor':'46f4','product':'0001'},"
        "{'vendor':'0951'}]},{'resourceName':'x','externalResourceProvider':true}]}");
    ChPermittedDevices devices = {0};
    const ChPermittedDevice *device;
    const ChPermittedUsb *usb;

    g_assert_true(ch_permitted_devices_read(&devices, json, NULL));
    g_assert_cmpuint(devices.pci->len, ==, 2);
    device = &g_array_index(devices.pci, ChPermittedDevice, 0);
    g_assert_cmpstr(device->selector, ==, "10DE:1EB8");
    g_assert_cmpstr(device->resource_name, ==, "nvidia.com/T4");
    g_assert_true(device->is_external);
    g_assert_cmpstr(g_array_index(devices.pci, ChPermittedDevice, 1).selector, ==, "");
    g_assert_false(g_array_index(devices.pci, ChPermittedDevice, 1).is_external);
    device = &g_array_index(devices.mediated, ChPermittedDevice, 0);
    g_assert_cmpstr(device->selector, ==, "GRID T4-1Q");
    g_assert_cmpstr(device->resource_name, ==, "nvidia.com/Q");
    usb = &g_array_index(devices.usb, ChPermittedUsb, 0);
    g_assert_cmpstr(usb->resource_name, ==, "kubevirt.io/stick");
    g_assert_cmpuint(usb->selectors->len, ==, 2);
    g_assert_cmpstr(g_array_index(usb->selectors, ChUsbSelector, 0).product, ==, "0001");
    g_assert_cmpstr(g_array_index(usb->selectors, ChUsbSelector, 1).vendor, ==, "0951");
    g_assert_true(g_array_index(devices.usb, ChPermittedUsb, 1).is_external);
    g_assert_cmpuint(g_array_index(devices.usb, ChPermittedUsb, 1).selectors->len, ==, 0);
    g_assert_true(ch_permitted_devices_read(&devices, NULL, NULL));
    g_assert_cmpuint(devices.pci->len + devices.mediated->len + devices.usb->len, ==, 0);
    ch_permitted_devices_clear(&devices);
}

static void
test_wrong_permitted(void)
{
    static const char *const bad[] = {
        "[]",
        "{'pciHostDevices':{}}",
        "{'pciHostDevices':['x']}",
        "{'pciHostDevices':[{'resourceName':1}]}",
        "{'mediatedDevices':[{'externalResourceProvider':'yes'}]}",
        "{'usb':[{'selectors':{}}]}",
        "{'usb':[{'selectors':[{'vendor':1}]}]}",
        "{'usb':[{'resourceName':'a'},{'resourceName':[]}]}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(ChJson) json = parse_json(bad[i]);
        ChPermittedDevices devices = {0};
        g_autoptr(GError) error = NULL;

        g_assert_false(ch_permitted_devices_read(&devices, json, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        ch_permitted_devices_clear(&devices);
    }
}

#define NODES(entries)         "{'mediatedDeviceTypes':['cluster'],'nodeMediatedDeviceTypes':[" entries "]}"
#define ENTRY(selector, types) "{'nodeSelector':{" selector "},'mediatedDeviceTypes':[" types "]}"

/* spec:08-13.1#28 */
static const struct TypesCase {
    const char *path;
    const char *configuration;
    const char *labels;
    const char *types; /* parted by blanks */
} types_cases[] = {
    {"no-configuration", "{}", "{'a':'1'}", ""},
    {"cluster", "{'mediatedDeviceTypes':['x','y']}", "{}", "x y"},
    {"cluster-deprecated", "{'mediatedDevicesTypes':['old']}", "{}", "old"},
    {"new-spelling-wins",
     "{'mediatedDevicesTypes':['old'],'mediatedDeviceTypes':['new']}",
     "{}",
     "new"},
    {"no-match", NODES(ENTRY("'a':'1'", "'x'")), "{'a':'2'}", "cluster"},
    {"one-label", NODES(ENTRY("'a':'1'", "'x'")), "{'a':'1','b':'2'}", "x"},
    {"all-of-an-entry", NODES(ENTRY("'a':'1','b':'2'", "'x'")), "{'a':'1','b':'2'}", "x"},
    {"one-of-two", NODES(ENTRY("'a':'1','b':'2'", "'x'")), "{'a':'1'}", "cluster"},
    {"several-entries",
     NODES(ENTRY("'a':'1'", "'x','y'") "," ENTRY("'b':'2'", "'y','z'")),
     "{'a':'1','b':'2'}",
     "x y z"},
    {"empty-selector", NODES(ENTRY("", "'x'")), "{}", "x"},
    {"empty-entry", NODES(ENTRY("", "")), "{}", "cluster"},
    {"deprecated-entry",
     "{'nodeMediatedDeviceTypes':[{'nodeSelector':{},'mediatedDevicesTypes':['old']}]}",
     "{}",
     "old"},
};

static void
test_types(gconstpointer data)
{
    const struct TypesCase *c = data;
    g_autoptr(ChJson) json = parse_json(c->configuration);
    g_autoptr(ChJson) labels = parse_json(c->labels);
    g_autoptr(ChMediatedDevices) devices = ch_mediated_devices_parse(json, NULL);
    g_auto(GStrv) types = ch_mediated_devices_types(devices, labels);
    g_autofree char *text = g_strjoinv(" ", types);

    g_assert_cmpstr(text, ==, c->types);
    g_assert_cmpint(ch_mediated_devices_is_enabled(devices), ==, CH_TRISTATE_UNSET);
}

static void
test_wrong_mediated(void)
{
    static const char *const bad[] = {
        "[]",
        "{'mediatedDeviceTypes':'x'}",
        "{'enabled':1}",
        "{'nodeMediatedDeviceTypes':{}}",
        "{'nodeMediatedDeviceTypes':[1]}",
        "{'nodeMediatedDeviceTypes':[{'nodeSelector':[]}]}",
        "{'nodeMediatedDeviceTypes':[{'nodeSelector':{'a':1}}]}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(ChJson) json = parse_json(bad[i]);
        g_autoptr(GError) error = NULL;

        g_assert_null(ch_mediated_devices_parse(json, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-devices/permitted", test_permitted);
    g_test_add_func("/host-devices/wrong-permitted", test_wrong_permitted);
    for (gsize i = 0; i < G_N_ELEMENTS(types_cases); i++) {
        g_autofree char *path = g_strconcat("/host-devices/types/", types_cases[i].path, NULL);

        g_test_add_data_func(path, &types_cases[i], test_types);
    }
    g_test_add_func("/host-devices/wrong-mediated", test_wrong_mediated);
    return g_test_run();
}
