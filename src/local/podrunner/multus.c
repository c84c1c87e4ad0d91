/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/multus.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/kube/names.h"
#include "lib/linux/link-names.h"
#include "lib/vmi/nics.h"

#define DEFAULT_VERSION "0.3.1"
#define MAX_WORD_BYTES  64

/* --- what the VMI asks for -------------------------------------------------------------------- */

bool
ch_multus_parse_name(const char *text,
                     const char *namespace_,
                     char **out_namespace,
                     char **out_name)
{
    const char *slash = text != NULL ? strchr(text, '/') : NULL;
    g_autofree char *space =
        slash != NULL ? g_strndup(text, (gsize)(slash - text)) : g_strdup(namespace_);
    const char *name = slash != NULL ? slash + 1 : text;

    if (space == NULL || name == NULL || !ch_name_is_dns_subdomain(space) ||
        !ch_name_is_dns_subdomain(name))
        return false;
    *out_namespace = g_steal_pointer(&space);
    *out_name = g_strdup(name);
    return true;
}

static ChJson *
new_attachment(const ChJson *vmi, const ChJson *network, const ChJson *interface)
{
    const char *name = ch_json_string_at(network, "name");
    const char *mac = ch_json_string_at(interface, "macAddress");
    g_autofree char *space = NULL;
    g_autofree char *definition = NULL;
    g_autofree char *full = NULL;
    char link[CH_LINK_NAME_SIZE];
    ChJson *attachment;

    if (!ch_multus_parse_name(ch_json_string_at(network, "multus", "networkName"),
                              ch_json_string_at(vmi, "metadata", "namespace"),
                              &space,
                              &definition))
        return NULL;
    attachment = ch_json_new_object();
    full = g_strconcat(space, "/", definition, NULL);
    ch_link_name_hashed(name, link);
    ch_json_set_string(attachment, "network", name);
    ch_json_set_string(attachment, "definition", full);
    ch_json_set_string(attachment, "link", link);
    ch_json_set_string(attachment, "mac", mac != NULL && *mac != '\0' ? mac : NULL);
    return attachment;
}

ChJson *
ch_multus_attachments(const ChJson *vmi)
{
    const ChJson *networks = ch_json_at(vmi, "spec", "networks");
    const ChJson *interfaces = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    ChJson *attachments = ch_json_new_array();

    for (gsize i = 0; i < ch_json_length(networks); i++) {
        const ChJson *network = ch_json_item(networks, i);
        const char *name = ch_json_string_at(network, "name");
        const ChJson *interface = ch_json_find(interfaces, "name", name);
        ChJson *attachment;

        if (name == NULL || !ch_json_is_object(ch_json_at(network, "multus")) ||
            interface == NULL || ch_nic_is_absent(interface))
            continue;
        attachment = new_attachment(vmi, network, interface);
        if (attachment != NULL)
            ch_json_append(attachments, attachment);
    }
    return attachments;
}

/* --- what a definition says ------------------------------------------------------------------- */

/* A plugin's or network's name, as the CNI specification has it; the one becomes a program's, the
 * other a directory's. */
static bool
is_word(const char *text)
{
    if (text == NULL || !g_ascii_isalnum(*text) || strlen(text) > MAX_WORD_BYTES)
        return false;
    return text[strspn(text, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_.-")] == '\0';
}

static bool
fail(GError **error, const ChJson *attachment, const char *what)
{
    return ch_fail(error,
                   CH_ERROR_INVALID,
                   "NetworkAttachmentDefinition %s: %s",
                   ch_json_string_at(attachment, "definition"),
                   what);
}

/* What plugins leave on this machine must be found again when chandler ends. */
static bool
tame_plugin(ChJson *plugin, const char *lease_dir, const char **out_fault)
{
    const char *type = ch_json_string_at(plugin, "type");
    ChJson *ipam = ch_json_at(plugin, "ipam");

    if (!is_word(type))
        *out_fault = "a plugin's type is missing or not valid";
    else if (ch_json_bool_at(plugin, false, "ipMasq"))
        *out_fault = "ipMasq is not possible on one machine: its rules would stay when the pod is "
                     "gone";
    else if (ch_json_is_object(ipam) && ch_json_has(ipam, "type") &&
             !is_word(ch_json_string_at(ipam, "type")))
        *out_fault = "ipam.type is not valid";
    else if (g_strcmp0(ch_json_string_at(ipam, "type"), "host-local") == 0)
        ch_json_set_string(ipam, "dataDir", lease_dir);
    return *out_fault == NULL;
}

/* One plugin's configuration, or a list of them. (transfer full) */
static ChJson *
list_plugins(const ChJson *config, const char *name)
{
    const ChJson *list = ch_json_at(config, "plugins");
    const char *version = ch_json_string_at(config, "cniVersion");
    const gsize n = list != NULL ? ch_json_length(list) : 1;
    ChJson *plugins = ch_json_new_array();

    for (gsize i = 0; i < n; i++) {
        const ChJson *source = list != NULL ? ch_json_item(list, i) : config;
        ChJson *plugin = ch_json_is_object(source) ? ch_json_dup(source) : ch_json_new_object();

        ch_json_set_string(plugin, "cniVersion", version != NULL ? version : DEFAULT_VERSION);
        ch_json_set_string(plugin, "name", name);
        ch_json_append(plugins, plugin);
    }
    return plugins;
}

bool
ch_multus_set_plugins(ChJson *attachment,
                      const ChJson *definition,
                      const char *lease_dir,
                      GError **error)
{
    const char *text = ch_json_string_at(definition, "spec", "config");
    g_autoptr(ChJson) config = NULL;
    g_autoptr(ChJson) plugins = NULL;
    const char *name;
    const char *fault = NULL;

    if (text == NULL || *text == '\0')
        return fail(error, attachment, "spec.config is empty: there are no other sources here");
    if (strlen(text) > CH_MULTUS_MAX_CONFIG_BYTES)
        return fail(error, attachment, "spec.config is too large");
    config = ch_json_parse(text, -1, NULL);
    if (!ch_json_is_object(config))
        return fail(error, attachment, "spec.config is not a JSON object");
    name = ch_json_string_at(config, "name");
    if (name == NULL || *name == '\0')
        name = ch_json_string_at(definition, "metadata", "name");
    if (!is_word(name))
        return fail(error, attachment, "the network's name is not valid");
    plugins = list_plugins(config, name);
    if (ch_json_length(plugins) == 0 || ch_json_length(plugins) > CH_MULTUS_MAX_PLUGINS)
        return fail(error, attachment, "it has no plugins, or too many");
    for (gsize i = 0; i < ch_json_length(plugins); i++) {
        if (!tame_plugin(ch_json_item(plugins, i), lease_dir, &fault))
            return fail(error, attachment, fault);
    }
    ch_json_set(attachment, "plugins", g_steal_pointer(&plugins));
    return true;
}

char *
ch_multus_config(const ChJson *attachment, gsize i, const ChJson *previous)
{
    g_autoptr(ChJson) config = ch_json_dup(ch_json_item(ch_json_at(attachment, "plugins"), i));

    if (previous != NULL)
        ch_json_set(config, "prevResult", ch_json_dup(previous));
    return ch_json_print(config, NULL);
}

/* --- annotations ------------------------------------------------------------------------------ */

char *
ch_multus_networks_text(const ChJson *attachments)
{
    g_autoptr(ChJson) list = ch_json_new_array();

    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        const ChJson *attachment = ch_json_item(attachments, i);
        g_auto(GStrv) names = g_strsplit(ch_json_string_at(attachment, "definition"), "/", 2);
        ChJson *item = ch_json_new_object();

        ch_json_set_string(item, "name", names[1]);
        ch_json_set_string(item, "namespace", names[0]);
        ch_json_set_string(item, "mac", ch_json_string_at(attachment, "mac"));
        ch_json_set_string(item, "interface", ch_json_string_at(attachment, "link"));
        ch_json_append(list, item);
    }
    return ch_json_length(list) > 0 ? ch_json_print(list, NULL) : NULL;
}

/* Of the link that a result says was made in the pod; (nullable). */
static const char *
mac_of(const ChJson *result, const char *link)
{
    const ChJson *interfaces = ch_json_at(result, "interfaces");

    for (gsize i = 0; i < ch_json_length(interfaces); i++) {
        const ChJson *interface = ch_json_item(interfaces, i);
        const char *sandbox = ch_json_string_at(interface, "sandbox");

        if (g_strcmp0(ch_json_string_at(interface, "name"), link) == 0 && sandbox != NULL &&
            *sandbox != '\0')
            return ch_json_string_at(interface, "mac");
    }
    return NULL;
}

static ChJson *
new_status(const char *name, const char *link, const ChJson *result)
{
    const ChJson *ips = ch_json_at(result, "ips");
    ChJson *status = ch_json_new_object();
    ChJson *list = NULL;

    ch_json_set_string(status, "name", name);
    ch_json_set_string(status, "interface", link);
    for (gsize i = 0; ch_json_is_array(ips) && i < ch_json_length(ips); i++) {
        const char *address = ch_json_string_at(ch_json_item(ips, i), "address");
        g_autofree char *ip =
            address != NULL ? g_strndup(address, strcspn(address, "/")) : g_strdup("");

        if (list == NULL) {
            list = ch_json_new_array();
            ch_json_set(status, "ips", list);
        }
        ch_json_append(list, ch_json_new_string(ip));
    }
    ch_json_set_string(status, "mac", mac_of(result, link));
    return status;
}

char *
ch_multus_status_text(const ChMultusPodNetwork *pod, const ChJson *attachments)
{
    g_autoptr(ChJson) list = ch_json_new_array();

    if (pod->name != NULL) {
        ChJson *status = new_status(pod->name, CH_LINK_NAME_PRIMARY, pod->result);

        ch_json_set_bool(status, "default", true);
        (void)ch_json_ensure_object(status, "dns");
        ch_json_append(list, status);
    }
    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        const ChJson *attachment = ch_json_item(attachments, i);
        ChJson *status = new_status(ch_json_string_at(attachment, "definition"),
                                    ch_json_string_at(attachment, "link"),
                                    ch_json_at(attachment, "result"));

        (void)ch_json_ensure_object(status, "dns");
        ch_json_append(list, status);
    }
    return ch_json_print(list, NULL);
}

/* --- the VMI's status ------------------------------------------------------------------------- */

static void
append_interface(ChJson *interfaces, const char *name, const char *link, const char *source)
{
    ChJson *interface = ch_json_new_object();

    ch_json_set_string(interface, "name", name);
    ch_json_set_string(interface, "podInterfaceName", link);
    ch_json_set_string(interface, "infoSource", source);
    ch_json_append(interfaces, interface);
}

void
ch_multus_set_interfaces(ChJson *vmi, const ChJson *attachments)
{
    const ChJson *networks = ch_json_at(vmi, "spec", "networks");
    ChJson *interfaces;

    if (ch_json_length(attachments) == 0)
        return;
    interfaces = ch_json_new_array();
    for (gsize i = 0; i < ch_json_length(networks); i++) {
        const ChJson *network = ch_json_item(networks, i);

        if (ch_json_is_object(ch_json_at(network, "pod")))
            append_interface(
                interfaces, ch_json_string_at(network, "name"), CH_LINK_NAME_PRIMARY, NULL);
    }
    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        const ChJson *attachment = ch_json_item(attachments, i);

        append_interface(interfaces,
                         ch_json_string_at(attachment, "network"),
                         ch_json_string_at(attachment, "link"),
                         "multus-status");
    }
    ch_json_set(ch_json_ensure_object(vmi, "status"), "interfaces", interfaces);
}
