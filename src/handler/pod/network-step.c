/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-step.h"

#include <string.h>

#include "lib/linux/netlink.h"

/* --- for the log */

static void
append_link_text(GString *text, const ChNetworkStep *step)
{
    char mac[CH_MAC_TEXT_SIZE];

    if (step->link_kind != NULL)
        g_string_append_printf(text, "new %s", step->link_kind);
    else if (step->name[0] != '\0')
        g_string_append_printf(text, "rename %s", step->name);
    else
        g_string_append(text, "set");
    if (step->has_mac)
        g_string_append_printf(text, ", mac %s", ch_mac_print(step->mac, mac));
    if (step->mtu != 0)
        g_string_append_printf(text, ", mtu %u", step->mtu);
    if (step->master != 0)
        g_string_append_printf(text, ", master %d", step->master);
    if (step->sets_route_localnet)
        g_string_append(text, ", route_localnet");
    if (step->sets_down)
        g_string_append(text, ", down");
    if (step->sets_up)
        g_string_append(text, ", up");
}

char *
ch_network_step_text(const ChNetworkStep *step)
{
    GString *text = g_string_new(step->link);
    char address[CH_IP_TEXT_SIZE];

    g_string_append(text, ": ");
    switch (step->kind) {
    case CH_NETWORK_STEP_LINK:
        append_link_text(text, step);
        break;
    case CH_NETWORK_STEP_LEARNING_OFF:
        g_string_append(text, "learning off");
        break;
    case CH_NETWORK_STEP_ADD_ADDRESS:
    case CH_NETWORK_STEP_DELETE_ADDRESS:
        g_string_append_printf(text,
                               "%s %s/%u",
                               step->kind == CH_NETWORK_STEP_ADD_ADDRESS ? "add" : "delete",
                               ch_ip_print(&step->address.ip, address),
                               step->address.prefix);
        break;
    case CH_NETWORK_STEP_MAKE_TAP:
        g_string_append(text, step->is_multi_queue ? "new tap, queues" : "new tap");
        break;
    case CH_NETWORK_STEP_DELETE_LINK:
        g_string_append(text, "delete");
        break;
    case CH_NETWORK_STEP_INVALID:
    case CH_NETWORK_STEP_N:
        g_assert_not_reached();
    }
    return g_string_free(text, FALSE);
}

/* --- of failures: 04 §9 */

/* In the order in which the kernel takes them. */
static void
append_setters(GString *text, const ChNetworkStep *step)
{
    if (step->has_mac)
        g_string_append(text, "LinkSetHardwareAddr: ");
    if (step->mtu != 0)
        g_string_append(text, "LinkSetMTU: ");
    if (step->name[0] != '\0')
        g_string_append(text, "LinkSetName: ");
    if (step->master != 0)
        g_string_append(text, "LinkSetMaster: ");
    if (step->sets_route_localnet)
        g_string_append(text, "route_localnet: ");
    if (step->sets_down)
        g_string_append(text, "LinkSetDown: ");
    if (step->sets_up)
        g_string_append(text, "LinkSetUp: ");
}

static void
append_address(GString *text, const ChNetworkStep *step)
{
    const bool is_new = step->kind == CH_NETWORK_STEP_ADD_ADDRESS;
    char address[CH_IP_TEXT_SIZE];

    g_string_append_printf(text,
                           "failed to %s IP address %s%s/%u%s %s link %s: ",
                           is_new ? "add" : "delete",
                           is_new ? "[" : "",
                           ch_ip_print(&step->address.ip, address),
                           step->address.prefix,
                           is_new ? "]" : "",
                           is_new ? "on" : "from",
                           step->link);
}

/* What stands before the reason. */
static GString *
prefix_of(const ChNetworkStep *step)
{
    const bool is_new = step->kind == CH_NETWORK_STEP_LINK && step->link_kind != NULL;
    GString *text = g_string_new(NULL);

    if (step->kind == CH_NETWORK_STEP_MAKE_TAP)
        return text;
    if (step->kind == CH_NETWORK_STEP_DELETE_LINK || is_new) {
        if (!is_new)
            g_string_append_printf(text, "failed to delete link [%s]: ", step->link);
        return g_string_append(text, is_new ? "LinkAdd: " : "LinkDel: ");
    }
    /* By the name that it is to have. */
    g_string_append_printf(
        text, "failed to setup link [%s]: ", step->name[0] != '\0' ? step->name : step->link);
    if (step->kind == CH_NETWORK_STEP_LINK)
        append_setters(text, step);
    else if (step->kind == CH_NETWORK_STEP_LEARNING_OFF)
        g_string_append(text, "LinkSetLearningOff: ");
    else
        append_address(text, step);
    return text;
}

bool
ch_network_step_fail(const ChNetworkStep *step, GError *reason, GError **error)
{
    static const char refusal[] = CH_NETLINK_REFUSAL ": ";
    g_autoptr(GString) text = prefix_of(step);
    const bool is_refused = g_str_has_prefix(reason->message, refusal);

    g_string_append(text, reason->message + (is_refused ? strlen(refusal) : 0));
    if (step->kind == CH_NETWORK_STEP_LINK && step->link_kind != NULL)
        g_string_append_printf(text, ": %s %s", step->link_kind, step->link);
    g_set_error_literal(error, reason->domain, reason->code, text->str);
    g_error_free(reason);
    return false;
}
