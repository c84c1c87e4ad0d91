/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain-interfaces: the guest's network interfaces. Spec 03 §13.5.
 *
 * Only interfaces that end in a tap which somebody made beforehand: masquerade, bridge and plugins
 * with tap attachment.
 */

#include <string.h>

#include "lib/base/errors.h"
#include "lib/vmi/nics.h"
#include "local/launcher/domain-internal.h"

#define MAX_QUEUES 256

static const char *
find_attachment(const Kubevirt__Cmd__V1__VirtualMachineOptions *options, const char *name)
{
    if (options == NULL)
        return NULL;
    for (size_t i = 0; i < options->n_interface_domain_attachment; i++)
        if (g_str_equal(options->interface_domain_attachment[i]->key, name))
            return options->interface_domain_attachment[i]->value;
    return NULL;
}

static const ChNicFacts *
find_facts(const ChDomainInput *input, const char *name)
{
    for (gsize i = 0; i < input->n_nics; i++)
        if (g_str_equal(input->nics[i].interface, name))
            return &input->nics[i];
    return NULL;
}

/* "0000:02:01.0", as the VMI writes it. */
static bool
add_pci_address(xmlNode *node, const char *text, GError **error)
{
    static const struct {
        const char *attribute;
        guint64 max;
    } parts[] = {{"domain", 0xffff}, {"bus", 0xff}, {"slot", 0x1f}, {"function", 7}};
    g_auto(GStrv) words = g_strsplit_set(text, ":.", -1);
    xmlNode *address = ch_xml_add(node, "address", "type", "pci", NULL);

    if (g_strv_length(words) != G_N_ELEMENTS(parts))
        return ch_fail(error, CH_ERROR_INVALID, "PCI address '%s' is not valid", text);
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        guint64 value = 0;

        if (!g_ascii_string_to_unsigned(words[i], 16, 0, parts[i].max, &value, NULL))
            return ch_fail(error, CH_ERROR_INVALID, "PCI address '%s' is not valid", text);
        g_autofree char *number = g_strdup_printf("0x%02" G_GINT64_MODIFIER "x", value);
        ch_xml_set(address, parts[i].attribute, number);
    }
    return true;
}

static void
add_model(const ChDomainBuild *build, xmlNode *node, const ChJson *interface)
{
    const char *model = ch_json_string_at(interface, "model");
    const bool is_virtio = model == NULL || *model == '\0' || g_str_equal(model, "virtio");

    ch_xml_add(node, "model", "type", is_virtio ? build->virtio : model, NULL);
    if (is_virtio && ch_json_bool_at(build->devices, false, "networkInterfaceMultiqueue")) {
        xmlNode *driver = ch_xml_add(node, "driver", "name", "vhost", NULL);

        ch_xml_set_uint(driver, "queues", MIN(build->n_vcpus, MAX_QUEUES));
    }
}

static bool
add_tap(const ChDomainBuild *build, xmlNode *devices, const ChJson *interface, GError **error)
{
    const char *name = ch_json_string_at(interface, "name");
    const char *mac = ch_json_string_at(interface, "macAddress");
    const char *pci = ch_json_string_at(interface, "pciAddress");
    const ChNicFacts *facts = find_facts(build->input, name);
    int64_t number = 0;

    if (facts == NULL)
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "preparing the pod network failed: interface %s has no tap",
                       name);
    xmlNode *node = ch_xml_add(devices, "interface", "type", "ethernet", NULL);
    ch_domain_add_alias(node, name);
    add_model(build, node, interface);
    if (mac == NULL || *mac == '\0')
        mac = facts->mac;
    if (mac != NULL)
        ch_xml_add(node, "mac", "address", mac, NULL);
    ch_xml_add(node, "target", "dev", facts->tap, "managed", "no", NULL);
    if (facts->mtu != 0)
        ch_xml_set_uint(ch_xml_add(node, "mtu", NULL), "size", facts->mtu);
    if (ch_json_int_at(interface, &number, "bootOrder") && number > 0)
        ch_xml_set_uint(ch_xml_add(node, "boot", NULL), "order", (guint64)number);
    else
        ch_xml_add(node, "rom", "enabled", "no", NULL);
    if (g_strcmp0(ch_json_string_at(interface, "state"), "down") == 0)
        ch_xml_add(node, "link", "state", "down", NULL);
    if (ch_json_int_at(interface, &number, "acpiIndex") && number > 0)
        ch_xml_set_uint(ch_xml_add(node, "acpi", NULL), "index", (guint64)number);
    return pci == NULL || *pci == '\0' || add_pci_address(node, pci, error);
}

bool
ch_domain_build_interface(const ChDomainBuild *build,
                          xmlNode *devices,
                          const ChJson *interface,
                          GError **error)
{
    const char *name = ch_json_string_at(interface, "name");

    if (ch_nic_is_absent(interface))
        return true;
    if (name == NULL ||
        ch_json_find(ch_json_at(build->input->vmi, "spec", "networks"), "name", name) == NULL)
        return ch_fail(
            error, CH_ERROR_NOT_FOUND, "failed to find network %s", name == NULL ? "" : name);
    /* libvirt drops an alias with others, and the NIC would not be known again. */
    if (name[strspn(name, CH_NIC_NAME_CHARACTERS)] != '\0')
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "interface %s: a name may have letters, digits, '-' and '_'",
                       name);
    if (g_strcmp0(find_attachment(build->input->options, name), "tap") != 0)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "interface %s: this launcher supports only interfaces with a tap",
                       name);
    return add_tap(build, devices, interface, error);
}

bool
ch_domain_build_interfaces(ChDomainBuild *build, xmlNode *devices, GError **error)
{
    const ChJson *interfaces = ch_json_at(build->devices, "interfaces");

    for (gsize i = 0; i < ch_json_length(interfaces); i++) {
        if (!ch_domain_build_interface(build, devices, ch_json_item(interfaces, i), error))
            return false;
    }
    return true;
}
