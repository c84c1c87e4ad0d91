/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/secondary-plan.h"

#include <string.h>

#include "lib/linux/link-names.h"
#include "lib/vmi/nics.h"

#define FAILED_DELS      "failedDels"
#define SOURCE_MULTUS    "multus-status"
#define SOURCE_DOMAIN    "domain"
#define SOURCE_SEPARATOR ", "

/* --- attachments ------------------------------------------------------------------------------ */

bool
ch_secondary_is_made(const ChJson *attachment)
{
    return attachment != NULL && !ch_json_bool_at(attachment, false, CH_SECONDARY_PENDING);
}

ChJson *
ch_secondary_made(const ChJson *attachments)
{
    ChJson *made = ch_json_new_array();

    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        const ChJson *attachment = ch_json_item(attachments, i);

        if (ch_secondary_is_made(attachment))
            ch_json_append(made, ch_json_dup(attachment));
    }
    return made;
}

int64_t
ch_secondary_count_failure(ChJson *attachment)
{
    int64_t n = 0;

    (void)ch_json_int_at(attachment, &n, FAILED_DELS);
    ch_json_set_int(attachment, FAILED_DELS, ++n);
    return n;
}

/* --- the VMI ---------------------------------------------------------------------------------- */

static ChJson *
find_interface(const ChJson *vmi, const char *network)
{
    return ch_json_find(
        ch_json_at(vmi, "spec", "domain", "devices", "interfaces"), "name", network);
}

static ChJson *
find_network(const ChJson *vmi, const char *network)
{
    return ch_json_find(ch_json_at(vmi, "spec", "networks"), "name", network);
}

bool
ch_secondary_is_wanted(const ChJson *vmi, const char *network)
{
    const ChJson *interface = find_interface(vmi, network);

    return interface != NULL && !ch_nic_is_absent(interface) &&
           ch_json_is_object(ch_json_at(find_network(vmi, network), "multus"));
}

bool
ch_secondary_is_in_guest(const ChJson *vmi, const char *network)
{
    return ch_nic_has_source(ch_json_find(ch_json_at(vmi, "status", "interfaces"), "name", network),
                             SOURCE_DOMAIN);
}

/* --- the pod's links -------------------------------------------------------------------------- */

/* "  eth0: 1 2 3": names are before the colon. */
static bool
has_device(const char *devices, const char *name)
{
    g_auto(GStrv) lines = g_strsplit(devices, "\n", -1);

    for (gsize i = 0; lines[i] != NULL; i++) {
        char *colon = strchr(lines[i], ':');

        if (colon == NULL)
            continue;
        *colon = '\0';
        if (g_str_equal(g_strchug(lines[i]), name))
            return true;
    }
    return false;
}

ChSecondaryLinks
ch_secondary_look(const ChJson *attachment, const char *devices)
{
    const char *link = ch_json_string_at(attachment, "link");
    ChLinkNames names = {0};

    g_strlcpy(names.pod_link, link != NULL ? link : "", sizeof(names.pod_link));
    ch_link_names_derive(&names, false);
    return (ChSecondaryLinks){
        .has_pod_link = has_device(devices, names.pod_link),
        .has_links = has_device(devices, names.bridge) || has_device(devices, names.tap),
        .has_renamed = has_device(devices, names.nic),
    };
}

/* --- the spec --------------------------------------------------------------------------------- */

/* What the launcher and the agent need to take it away. */
static bool
put_back(ChJson *vmi, const ChJson *attachment)
{
    const char *name = ch_json_string_at(attachment, "network");
    ChJson *spec = ch_json_ensure_object(vmi, "spec");
    ChJson *devices = ch_json_ensure_object(ch_json_ensure_object(spec, "domain"), "devices");
    ChJson *interface = find_interface(vmi, name);
    ChJson *network = find_network(vmi, name);

    if (interface != NULL && network != NULL)
        return false;
    if (interface == NULL) {
        interface = ch_json_new_object();
        ch_json_set_string(interface, "name", name);
        (void)ch_json_ensure_object(interface, "bridge");
        ch_json_append(ch_json_ensure_array(devices, "interfaces"), interface);
    }
    ch_json_set_string(interface, "state", CH_NIC_ABSENT);
    if (network == NULL) {
        network = ch_json_new_object();
        ch_json_set_string(network, "name", name);
        ch_json_set_string(ch_json_ensure_object(network, "multus"),
                           "networkName",
                           ch_json_string_at(attachment, "definition"));
        ch_json_append(ch_json_ensure_array(spec, "networks"), network);
    }
    return true;
}

/* With nothing left of it anywhere. */
static bool
is_over(const ChJson *vmi, const ChJson *interface, const ChJson *attachments)
{
    const char *name = ch_json_string_at(interface, "name");

    return name != NULL && ch_nic_is_absent(interface) &&
           ch_json_is_object(ch_json_at(find_network(vmi, name), "multus")) &&
           ch_json_find(attachments, "network", name) == NULL &&
           !ch_secondary_is_in_guest(vmi, name);
}

bool
ch_secondary_set_spec(ChJson *vmi, const ChJson *attachments)
{
    ChJson *interfaces = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    ChJson *networks = ch_json_at(vmi, "spec", "networks");
    bool is_changed = false;

    for (gsize i = ch_json_length(interfaces); i > 0; i--) {
        const ChJson *interface = ch_json_item(interfaces, i - 1);
        gsize index = 0;

        if (!is_over(vmi, interface, attachments))
            continue;
        if (ch_json_find_index(networks, "name", ch_json_string_at(interface, "name"), &index) !=
            NULL)
            ch_json_remove_item(networks, index);
        ch_json_remove_item(interfaces, i - 1);
        is_changed = true;
    }
    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        const ChJson *attachment = ch_json_item(attachments, i);

        if (ch_secondary_is_made(attachment) && put_back(vmi, attachment))
            is_changed = true;
    }
    return is_changed;
}

/* --- the status ------------------------------------------------------------------------------- */

/* (transfer full): without it; NULL: nothing is left */
static char *
drop_source(const char *text, const char *source)
{
    g_auto(GStrv) sources = g_strsplit(text, SOURCE_SEPARATOR, -1);
    GString *rest = g_string_new(NULL);

    for (gsize i = 0; sources[i] != NULL; i++) {
        if (g_str_equal(sources[i], source))
            continue;
        g_string_append_printf(rest, "%s%s", rest->len > 0 ? SOURCE_SEPARATOR : "", sources[i]);
    }
    return g_string_free(rest, rest->len == 0);
}

static bool
forget_gone(ChJson *interfaces, const ChJson *attachments)
{
    bool is_changed = false;

    for (gsize i = ch_json_length(interfaces); i > 0; i--) {
        ChJson *status = ch_json_item(interfaces, i - 1);
        g_autofree char *rest = NULL;

        if (!ch_nic_has_source(status, SOURCE_MULTUS) ||
            ch_secondary_is_made(
                ch_json_find(attachments, "network", ch_json_string_at(status, "name"))))
            continue;
        rest = drop_source(ch_json_string_at(status, "infoSource"), SOURCE_MULTUS);
        if (rest != NULL)
            ch_json_set_string(status, "infoSource", rest);
        else
            ch_json_remove_item(interfaces, i - 1);
        is_changed = true;
    }
    return is_changed;
}

static bool
tell_made(ChJson *interfaces, const ChJson *attachment)
{
    const char *name = ch_json_string_at(attachment, "network");
    ChJson *status = ch_json_find(interfaces, "name", name);
    const char *sources = ch_json_string_at(status, "infoSource");
    g_autofree char *more = NULL;

    if (ch_nic_has_source(status, SOURCE_MULTUS))
        return false;
    if (status == NULL) {
        status = ch_json_new_object();
        ch_json_set_string(status, "name", name);
        ch_json_append(interfaces, status);
    }
    more = sources != NULL && *sources != '\0'
               ? g_strconcat(sources, SOURCE_SEPARATOR SOURCE_MULTUS, NULL)
               : g_strdup(SOURCE_MULTUS);
    ch_json_set_string(status, "podInterfaceName", ch_json_string_at(attachment, "link"));
    ch_json_set_string(status, "infoSource", more);
    return true;
}

bool
ch_secondary_set_status(ChJson *vmi, const ChJson *attachments)
{
    bool is_changed = forget_gone(ch_json_at(vmi, "status", "interfaces"), attachments);

    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        const ChJson *attachment = ch_json_item(attachments, i);

        if (ch_secondary_is_made(attachment) &&
            tell_made(ch_json_ensure_array(ch_json_ensure_object(vmi, "status"), "interfaces"),
                      attachment))
            is_changed = true;
    }
    return is_changed;
}
