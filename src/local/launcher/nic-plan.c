/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/nic-plan.h"

#include <string.h>

#include "lib/linux/link-names.h"
#include "lib/vmi/nics.h"
#include "local/launcher/alias.h"
#include "local/launcher/xml.h"

#define MAX_NICS 256

/* One <interface>; owned but the node. */
typedef struct {
    xmlNode *node;
    char *name; /* NULL: not of the VMI */
    char *tap;
    bool is_down;
} Nic;

static void
nic_clear(gpointer data)
{
    Nic *nic = data;

    g_free(nic->name);
    g_free(nic->tap);
}

static void
change_clear(gpointer data)
{
    ChNicChange *change = data;

    g_free(change->xml);
    g_free(change->name);
}

static GArray *
new_changes(void)
{
    GArray *changes = g_array_new(FALSE, FALSE, sizeof(ChNicChange));

    g_array_set_clear_func(changes, change_clear);
    return changes;
}

void
ch_nic_plan_clear(ChNicPlan *plan)
{
    g_clear_pointer(&plan->attach, g_ptr_array_unref);
    g_clear_pointer(&plan->clash, g_ptr_array_unref);
    g_clear_pointer(&plan->detach, g_array_unref);
    g_clear_pointer(&plan->update, g_array_unref);
}

static GArray *
read_nics(const xmlNode *devices)
{
    GArray *nics = g_array_new(FALSE, FALSE, sizeof(Nic));

    g_array_set_clear_func(nics, nic_clear);
    for (xmlNode *node = ch_xml_child(devices, "interface"); node != NULL && nics->len < MAX_NICS;
         node = ch_xml_next(node)) {
        g_autofree char *alias = ch_xml_dup_attribute(ch_xml_child(node, "alias"), "name");
        g_autofree char *state = ch_xml_dup_attribute(ch_xml_child(node, "link"), "state");
        const Nic nic = {
            .node = node,
            .name = g_strdup(ch_alias_user_name(alias)),
            .tap = ch_xml_dup_attribute(ch_xml_child(node, "target"), "dev"),
            .is_down = g_strcmp0(state, "down") == 0,
        };

        g_array_append_val(nics, nic);
    }
    return nics;
}

/* Of any kind. */
static const xmlNode *
find_device(xmlDoc *doc, const char *name)
{
    const xmlNode *devices = ch_xml_child(xmlDocGetRootElement(doc), "devices");
    g_autofree char *wanted = g_strconcat(CH_ALIAS_PREFIX, name, NULL);

    for (const xmlNode *node = devices != NULL ? devices->children : NULL; node != NULL;
         node = node->next) {
        g_autofree char *alias = ch_xml_dup_attribute(ch_xml_child(node, "alias"), "name");

        if (g_strcmp0(alias, wanted) == 0)
            return node;
    }
    return NULL;
}

bool
ch_nic_plan_is_taken(const char *live, const char *name)
{
    g_autoptr(xmlDoc) doc = ch_xml_parse(live, NULL);

    return doc == NULL || find_device(doc, name) != NULL;
}

/* --- the VMI ---------------------------------------------------------------------------------- */

static const ChJson *
interfaces_of(const ChJson *vmi)
{
    return ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
}

static bool
is_to_be_down(const ChJson *interface)
{
    return g_strcmp0(ch_json_string_at(interface, "state"), "down") == 0;
}

/* Whether the pod has its link. */
static bool
is_in_pod(const ChJson *vmi, const char *name)
{
    return ch_nic_has_source(ch_json_find(ch_json_at(vmi, "status", "interfaces"), "name", name),
                             "multus-status");
}

/* One that left the spec goes too: nothing else would take it away. */
static bool
is_to_go(const ChJson *vmi, const Nic *nic)
{
    const ChJson *interface = ch_json_find(interfaces_of(vmi), "name", nic->name);
    ChLinkNames names = {0};

    if (interface != NULL && !ch_nic_is_absent(interface))
        return false;
    ch_link_name_hashed(nic->name, names.pod_link);
    ch_link_names_derive(&names, false);
    return g_strcmp0(nic->tap, names.tap) == 0;
}

/* --- the plan --------------------------------------------------------------------------------- */

/* Where it is plugged in is libvirt's business, and may differ from what is defined. */
static void
drop_address(xmlNode *node)
{
    xmlNode *address = ch_xml_child(node, "address");

    if (address == NULL)
        return;
    xmlUnlinkNode(address);
    xmlFreeNode(address);
}

static void
add_change(GArray *changes, const Nic *nic)
{
    ChNicChange change;

    drop_address(nic->node);
    change = (ChNicChange){ch_xml_print_node(nic->node), g_strdup(nic->name)};
    g_array_append_val(changes, change);
}

static void
add_link_change(GArray *changes, const Nic *nic)
{
    xmlNode *link = ch_xml_child(nic->node, "link");

    if (link == NULL)
        link = ch_xml_add(nic->node, "link", NULL);
    ch_xml_set(link, "state", nic->is_down ? "up" : "down");
    add_change(changes, nic);
}

static void
plan_nic(const ChJson *vmi, const Nic *nic, ChNicPlan *plan)
{
    const ChJson *interface;

    if (nic->name == NULL)
        return;
    interface = ch_json_find(interfaces_of(vmi), "name", nic->name);
    if (is_to_go(vmi, nic))
        add_change(plan->detach, nic);
    else if (interface != NULL && !ch_nic_is_absent(interface) &&
             is_to_be_down(interface) != nic->is_down)
        add_link_change(plan->update, nic);
}

static void
plan_attach(xmlDoc *live, const ChJson *vmi, const ChJson *interface, ChNicPlan *plan)
{
    const char *name = ch_json_string_at(interface, "name");
    const xmlNode *device;

    if (name == NULL || ch_nic_is_absent(interface) || !is_in_pod(vmi, name) ||
        ch_json_has(interface, "sriov"))
        return;
    device = find_device(live, name);
    if (device == NULL)
        g_ptr_array_add(plan->attach, g_strdup(name));
    else if (!g_str_equal((const char *)device->name, "interface"))
        g_ptr_array_add(plan->clash, g_strdup(name));
}

bool
ch_nic_plan(const char *live, const ChJson *vmi, ChNicPlan *out_plan, GError **error)
{
    const ChJson *interfaces = interfaces_of(vmi);
    g_autoptr(xmlDoc) doc = ch_xml_parse(live, error);
    g_autoptr(GArray) nics = NULL;

    if (doc == NULL)
        return false;
    nics = read_nics(ch_xml_child(xmlDocGetRootElement(doc), "devices"));
    *out_plan = (ChNicPlan){.attach = g_ptr_array_new_with_free_func(g_free),
                            .clash = g_ptr_array_new_with_free_func(g_free),
                            .detach = new_changes(),
                            .update = new_changes()};
    for (guint i = 0; i < nics->len; i++)
        plan_nic(vmi, &g_array_index(nics, Nic, i), out_plan);
    for (gsize i = 0; i < ch_json_length(interfaces); i++)
        plan_attach(doc, vmi, ch_json_item(interfaces, i), out_plan);
    return true;
}
