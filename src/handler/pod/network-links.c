/* SPDX-License-Identifier: Apache-2.0 */

/* network-links: takes the steps of a plan. */

#include "handler/pod/network-internal.h"

#include <errno.h>

#include "handler/pod/pod-net.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"

#define MAX_ROUNDS   16 /* plans until nothing is left to do; three are normal */
#define MAX_TOGETHER 32 /* steps in one message: the kernel has room for as many answers */

static void
compose_step(const ChNetworkStep *step, ChNetlinkMessage *message)
{
    const ChLinkChange change = {
        .index = step->index,
        .kind = step->link_kind,
        .name = step->name[0] != '\0' ? step->name : NULL,
        .mac = step->has_mac ? step->mac : NULL,
        .mtu = step->mtu,
        .master = step->master,
        .sets_up = step->sets_up,
        .sets_down = step->sets_down,
        .sets_route_localnet = step->sets_route_localnet,
    };

    switch (step->kind) {
    case CH_NETWORK_STEP_LINK:
        ch_rtnl_compose_link(message, &change);
        return;
    case CH_NETWORK_STEP_LEARNING_OFF:
        ch_rtnl_compose_learning_off(message, step->index);
        return;
    case CH_NETWORK_STEP_ADD_ADDRESS:
        ch_rtnl_compose_add_address(message, &step->address);
        return;
    case CH_NETWORK_STEP_DELETE_ADDRESS:
        ch_rtnl_compose_delete_address(message, &step->address);
        return;
    case CH_NETWORK_STEP_DELETE_LINK:
        ch_rtnl_compose_delete_link(message, step->index);
        return;
    case CH_NETWORK_STEP_MAKE_TAP: /* is no message */
    case CH_NETWORK_STEP_INVALID:
    case CH_NETWORK_STEP_N:
        break;
    }
    g_assert_not_reached();
}

/* Whether a step that failed has nevertheless what it wants. */
static bool
is_done_anyway(gpointer steps, guint index, const GError *reason)
{
    const ChNetworkStep *step = &((const ChNetworkStep *)steps)[index];

    return (step->kind == CH_NETWORK_STEP_ADD_ADDRESS &&
            g_error_matches(reason, CH_ERRNO, EEXIST)) ||
           (step->kind == CH_NETWORK_STEP_DELETE_ADDRESS &&
            g_error_matches(reason, CH_ERRNO, EADDRNOTAVAIL)) ||
           (step->kind == CH_NETWORK_STEP_DELETE_LINK && g_error_matches(reason, CH_ERRNO, ENODEV));
}

/* How many of @n_steps can go together. */
static guint
count_together(const ChNetworkStep *steps, guint n_steps)
{
    guint n = 1;

    if (steps[0].kind == CH_NETWORK_STEP_MAKE_TAP)
        return 1;
    while (n < MIN(n_steps, MAX_TOGETHER) && steps[n].kind != CH_NETWORK_STEP_MAKE_TAP &&
           !steps[n].waits)
        n++;
    return n;
}

/* *out_failed: which step, on failure. */
static bool
send_steps(ChNetworkSetup *setup,
           const ChNetworkStep *steps,
           guint n_steps,
           guint *out_failed,
           GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    *out_failed = 0;
    if (steps[0].kind == CH_NETWORK_STEP_MAKE_TAP)
        return ch_pod_net_make_tap(
            setup->pod, steps[0].link, setup->spec->is_non_root, steps[0].is_multi_queue, error);
    for (guint i = 0; i < n_steps; i++) {
        ChNetlinkMessage message;

        compose_step(&steps[i], &message);
        g_byte_array_append(bytes, (const guint8 *)message.bytes, message.header.nlmsg_len);
    }
    return ch_netlink_request_all(
        setup->route, bytes->data, bytes->len, is_done_anyway, (gpointer)steps, out_failed, error);
}

/* A small kernel may lack dummy links. A bridge without ports that stays down does for one: the
 * next plan has it. */
static bool
does_without_dummy(ChNetworkSetup *setup, const ChNetworkStep *step, const GError *reason)
{
    if (step->link_kind == NULL || step->link_kind != setup->dummy_kind ||
        g_str_equal(setup->dummy_kind, "bridge") || !g_error_matches(reason, CH_ERRNO, EOPNOTSUPP))
        return false;
    setup->dummy_kind = "bridge";
    return true;
}

/* *out_n_taken: how many of the steps were taken; 0: a new plan is needed. */
static bool
take_steps(ChNetworkSetup *setup,
           const ChNetworkStep *steps,
           guint n_steps,
           guint *out_n_taken,
           GError **error)
{
    const guint n = count_together(steps, n_steps);
    g_autoptr(GError) reason = NULL;
    guint failed;
    const bool ok = send_steps(setup, steps, n, &failed, &reason);

    setup->n_steps += n;
    CH_CRASH_POINT("network/step");
    for (guint i = 0; i < n && ch_log_wants(3); i++) {
        g_autofree char *line = ch_network_step_text(&steps[i]);

        ch_log_verbose(3, NULL, "pod %s: %s", ch_pod_peek_uid(setup->pod), line);
    }
    *out_n_taken = ok ? n : 0;
    if (ok || does_without_dummy(setup, &steps[failed], reason))
        return true;
    return ch_network_step_fail(&steps[failed], g_steal_pointer(&reason), error);
}

static GArray *
plan(const ChNetworkSetup *setup, const ChNetworkIface *iface, GError **error)
{
    return iface->is_absent ? ch_network_plan_removal(iface, setup->seen)
                            : ch_network_plan(iface, setup->seen, setup->dummy_kind, error);
}

static bool
take_plan(ChNetworkSetup *setup, const GArray *plan, GError **error)
{
    const ChNetworkStep *steps = (const ChNetworkStep *)(gpointer)plan->data;
    guint n = 1;

    for (guint i = 0; i < plan->len && n > 0; i += n)
        if (!take_steps(setup, &steps[i], plan->len - i, &n, error))
            return false;
    return true;
}

bool
ch_network_setup_links(ChNetworkSetup *setup, const ChNetworkIface *iface, GError **error)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        g_autoptr(GArray) steps = plan(setup, iface, error);

        if (steps == NULL)
            return false;
        if (steps->len == 0)
            return true;
        if (!take_plan(setup, steps, error) || !ch_network_setup_look(setup, false, error))
            return false;
    }
    return ch_fail(
        error, CH_ERROR_FAILED, "the links of network %s do not stay as they are set", iface->name);
}
