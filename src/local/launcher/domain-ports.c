/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/domain-ports.h"

#include <stdbool.h>
#include <stdint.h>

#include "local/launcher/xml.h"

#define PORT_MODEL  "pcie-root-port"
#define ROOT_MODEL  "pcie-root"
#define MAX_INDEX   31
#define SMALL_KIB   (UINT64_C(2) << 20) /* up to here a guest is small */
#define SMALL_TOTAL 8
#define SMALL_MIN   3
#define LARGE_TOTAL 16
#define LARGE_MIN   6

typedef struct {
    guint n_ports;
    guint last_index;
    bool has_root; /* without, it has no PCIe */
} Ports;

static Ports
count_ports(const xmlNode *devices)
{
    Ports ports = {0};

    for (const xmlNode *node = ch_xml_child(devices, "controller"); node != NULL;
         node = ch_xml_next(node)) {
        g_autofree char *type = ch_xml_dup_attribute(node, "type");
        g_autofree char *model = ch_xml_dup_attribute(node, "model");
        g_autofree char *index = ch_xml_dup_attribute(node, "index");
        guint64 number = 0;

        if (g_strcmp0(type, "pci") != 0)
            continue;
        if (index != NULL && g_ascii_string_to_unsigned(index, 10, 0, 255, &number, NULL))
            ports.last_index = MAX(ports.last_index, (guint)number);
        ports.n_ports += g_strcmp0(model, PORT_MODEL) == 0;
        ports.has_root |= g_strcmp0(model, ROOT_MODEL) == 0;
    }
    return ports;
}

/* libvirt writes KiB. */
static bool
is_large(const xmlNode *domain)
{
    g_autofree char *text = ch_xml_dup_text(ch_xml_child(domain, "memory"));
    guint64 kib = 0;

    return text != NULL && g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, &kib, NULL) &&
           kib > SMALL_KIB;
}

char *
ch_domain_add_ports(const char *defined, GError **error)
{
    g_autoptr(xmlDoc) doc = ch_xml_parse(defined, error);
    xmlNode *devices;
    Ports ports;
    guint total, least, n;

    if (doc == NULL)
        return NULL;
    devices = ch_xml_child(xmlDocGetRootElement(doc), "devices");
    ports = count_ports(devices);
    if (!ports.has_root)
        return NULL;
    total = is_large(xmlDocGetRootElement(doc)) ? LARGE_TOTAL : SMALL_TOTAL;
    least = is_large(xmlDocGetRootElement(doc)) ? LARGE_MIN : SMALL_MIN;
    n = MAX(total > ports.n_ports ? total - ports.n_ports : 0, least);
    n = MIN(n, ports.last_index < MAX_INDEX ? MAX_INDEX - ports.last_index : 0);
    for (guint i = 1; i <= n; i++) {
        xmlNode *node = ch_xml_add(devices, "controller", "type", "pci", "model", PORT_MODEL, NULL);

        ch_xml_set_uint(node, "index", ports.last_index + i);
    }
    return n > 0 ? ch_xml_print(doc) : NULL;
}
