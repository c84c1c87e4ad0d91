/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/network-edit.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/kube/names.h"
#include "lib/linux/mac.h"
#include "lib/vmi/nics.h"

/* --- what is asked for ------------------------------------------------------------------------ */

char *
ch_network_name_of_definition(const char *definition)
{
    const char *slash = strchr(definition, '/');
    char *name = g_strndup(slash != NULL ? slash + 1 : definition, CH_NIC_MAX_NAME_BYTES);

    return g_strdelimit(name, ".", '-');
}

static bool
is_definition(const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, "/", 3);
    const guint n = g_strv_length(words);

    return (n == 1 || n == 2) && ch_name_is_dns_subdomain(words[0]) &&
           (n == 1 || ch_name_is_dns_subdomain(words[1]));
}

/* One of a single NIC: a group's, or none, no guest can have. */
static bool
is_usable_mac(const char *text)
{
    static const uint8_t none[CH_MAC_BYTES] = {0};
    uint8_t mac[CH_MAC_BYTES];

    return ch_mac_parse(text, mac) && (mac[0] & 1) == 0 && memcmp(mac, none, sizeof(mac)) != 0;
}

bool
ch_network_edit_check(const ChNetworkEdit *edit, GError **error)
{
    if (!is_definition(edit->definition))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "--network is a NetworkAttachmentDefinition's NAME or NAMESPACE/NAME, not "
                       "'%s'",
                       edit->definition);
    if (!ch_nic_name_is_valid(edit->name))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "a network cannot be called '%s': choose letters, digits, '-' and '_' by "
                       "--name",
                       edit->name);
    return edit->mac == NULL || is_usable_mac(edit->mac) ||
           ch_fail(error,
                   CH_ERROR_INVALID,
                   "--mac is the MAC address of a NIC, such as 02:00:00:00:00:01, not '%s'",
                   edit->mac);
}

/* --- the VMI ---------------------------------------------------------------------------------- */

static ChJson *
find_interface(const ChJson *vmi, const char *name)
{
    return ch_json_find(ch_json_at(vmi, "spec", "domain", "devices", "interfaces"), "name", name);
}

static const ChJson *
find_network(const ChJson *vmi, const char *name)
{
    return ch_json_find(ch_json_at(vmi, "spec", "networks"), "name", name);
}

bool
ch_vmi_has_network(const ChJson *vmi, const char *name)
{
    return find_interface(vmi, name) != NULL || find_network(vmi, name) != NULL;
}

static bool
has_mac(const ChJson *list, const char *member, const char *mac)
{
    for (gsize i = 0; i < ch_json_length(list); i++) {
        const char *text = ch_json_string_at(ch_json_item(list, i), member);

        if (text != NULL && g_ascii_strcasecmp(text, mac) == 0)
            return true;
    }
    return false;
}

static bool
check_free(const ChJson *vmi, const ChNetworkEdit *edit, GError **error)
{
    if (ch_nic_is_absent(find_interface(vmi, edit->name)))
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "the VM's network '%s' is just being detached: try again when it is gone, "
                       "or choose another name by --name",
                       edit->name);
    if (ch_vmi_has_network(vmi, edit->name))
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "the VM has a network '%s' already: choose another name by --name",
                       edit->name);
    if (ch_vmi_has_disk(vmi, edit->name))
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "the VM has a volume '%s', and its devices' names are of one set: choose "
                       "another name by --name",
                       edit->name);
    if (edit->mac != NULL &&
        (has_mac(ch_json_at(vmi, "status", "interfaces"), "mac", edit->mac) ||
         has_mac(
             ch_json_at(vmi, "spec", "domain", "devices", "interfaces"), "macAddress", edit->mac)))
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "another NIC of the VM has the MAC address %s already",
                       edit->mac);
    return true;
}

bool
ch_vmi_add_network(ChJson *vmi, const ChNetworkEdit *edit, GError **error)
{
    ChJson *spec = ch_json_ensure_object(vmi, "spec");
    ChJson *devices = ch_json_ensure_object(ch_json_ensure_object(spec, "domain"), "devices");
    ChJson *interface;
    ChJson *network;

    if (!check_free(vmi, edit, error))
        return false;
    interface = ch_json_new_object();
    ch_json_set_string(interface, "name", edit->name);
    (void)ch_json_ensure_object(interface, "bridge");
    ch_json_set_string(interface, "macAddress", edit->mac);
    ch_json_append(ch_json_ensure_array(devices, "interfaces"), interface);
    network = ch_json_new_object();
    ch_json_set_string(network, "name", edit->name);
    ch_json_set_string(ch_json_ensure_object(network, "multus"), "networkName", edit->definition);
    ch_json_append(ch_json_ensure_array(spec, "networks"), network);
    return true;
}

bool
ch_vmi_remove_network(ChJson *vmi, const char *name, GError **error)
{
    ChJson *interface = find_interface(vmi, name);
    const ChJson *network = find_network(vmi, name);

    if (interface == NULL)
        return ch_fail(error, CH_ERROR_NOT_FOUND, "the VM has no network '%s'", name);
    if (ch_json_has(network, "pod"))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "the network '%s' is the pod's own: only secondary ones can be detached",
                       name);
    ch_json_set_string(interface, "state", CH_NIC_ABSENT);
    return true;
}

const ChJson *
ch_vmi_plugged_network(const ChJson *vmi, const char *name)
{
    const ChJson *status = ch_json_find(ch_json_at(vmi, "status", "interfaces"), "name", name);

    return ch_nic_has_source(status, "domain") ? status : NULL;
}

/* --- trouble ---------------------------------------------------------------------------------- */

/* (nullable): what the pod runner says of the network; the API's recorder may put words before the
 * network's name, when there were many such events. */
static const char *
words_of(const ChJson *event, const char *uid, const char *reason, const char *prefix)
{
    const char *message = ch_json_string_at(event, "message");
    const char *words = message != NULL ? strstr(message, prefix) : NULL;

    return words != NULL && g_strcmp0(ch_json_string_at(event, "reason"), reason) == 0 &&
                   g_strcmp0(ch_json_string_at(event, "involvedObject", "uid"), uid) == 0
               ? words + strlen(prefix)
               : NULL;
}

static int64_t
revision_of(const ChJson *object)
{
    const char *text = ch_json_string_at(object, "metadata", "resourceVersion");
    gint64 revision = 0;

    if (text != NULL)
        (void)g_ascii_string_to_signed(text, 10, 0, G_MAXINT64, &revision, NULL);
    return revision;
}

int64_t
ch_events_revision(const ChJson *events)
{
    return revision_of(events);
}

const char *
ch_network_trouble(const ChJson *vmi, const ChJson *events, const ChNetworkQuestion *question)
{
    const ChJson *items = ch_json_at(events, "items");
    const char *uid = ch_json_string_at(vmi, "metadata", "uid");
    const char *reason = question->attaches ? CH_NIC_ATTACH_FAILED : CH_NIC_DETACH_FAILED;
    g_autofree char *prefix = g_strdup_printf("network '%s': ", question->name);
    int64_t newest = question->since;
    const char *message = NULL;

    for (gsize i = 0; i < ch_json_length(items); i++) {
        const ChJson *event = ch_json_item(items, i);
        const char *words = words_of(event, uid, reason, prefix);
        const int64_t revision = revision_of(event);

        if (words == NULL || revision <= newest)
            continue;
        newest = revision;
        message = words;
    }
    return message;
}
