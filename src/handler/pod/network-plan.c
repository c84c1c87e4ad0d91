/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-plan.h"

#include <errno.h>
#include <string.h>

#include "lib/base/errors.h"

#define FAKE_IP_STEM   "169.254.75.1" /* the interface's index is appended as text */
#define FAKE_IP_PREFIX 32

static const uint8_t masquerade_mac[CH_MAC_BYTES] = {0x02};

typedef struct {
    const ChNetworkIface *iface;
    const ChNetState *seen;
    const char *dummy_kind;
    GArray *steps; /* ChNetworkStep */
} Plan;

/* --- what is seen */

static const ChLink *
find_link(const Plan *plan, const char *name)
{
    return ch_net_state_find_link(plan->seen, name);
}

static bool
has_address(const ChNetState *seen, int index, const ChAddress *wanted)
{
    for (guint i = 0; i < seen->addresses->len; i++) {
        const ChAddress *address = &g_array_index(seen->addresses, ChAddress, i);

        if (address->index == index && address->prefix == wanted->prefix &&
            ch_ip_equal(&address->ip, &wanted->ip))
            return true;
    }
    return false;
}

const ChAddress *
ch_network_first_address(const ChNetState *seen, const ChLink *link, uint8_t family)
{
    for (guint i = 0; i < seen->addresses->len; i++) {
        const ChAddress *address = &g_array_index(seen->addresses, ChAddress, i);

        if (address->index == link->index && address->ip.family == family &&
            ch_ip_is_global_unicast(&address->ip))
            return address;
    }
    return NULL;
}

const ChLink *
ch_network_address_link(const ChNetworkIface *iface, const ChNetState *seen)
{
    const ChLink *pod_link = ch_net_state_find_link(seen, iface->names.pod_link);

    /* Before the renaming the pod link still has them all; after it, whoever bears its name, or
     * will. */
    return pod_link != NULL ? pod_link : ch_net_state_find_link(seen, iface->names.spare);
}

/* --- steps */

static ChNetworkStep *
add_step(Plan *plan, ChNetworkStepKind kind, const char *name, int index)
{
    ChNetworkStep step = {.kind = kind, .index = index};

    g_strlcpy(step.link, name, sizeof(step.link));
    g_array_append_val(plan->steps, step);
    return &g_array_index(plan->steps, ChNetworkStep, plan->steps->len - 1);
}

static void
set_mac(ChNetworkStep *step, const uint8_t mac[CH_MAC_BYTES])
{
    step->has_mac = true;
    memcpy(step->mac, mac, CH_MAC_BYTES);
}

static ChNetworkStep *
add_new_link(Plan *plan, const char *name, const char *kind)
{
    ChNetworkStep *step = add_step(plan, CH_NETWORK_STEP_LINK, name, 0);

    g_strlcpy(step->name, name, sizeof(step->name));
    step->link_kind = kind;
    return step;
}

static void
add_address(Plan *plan, const ChLink *link, const ChIp *ip, uint8_t prefix)
{
    const ChAddress address = {.index = link->index, .ip = *ip, .prefix = prefix};

    if (!has_address(plan->seen, link->index, &address))
        add_step(plan, CH_NETWORK_STEP_ADD_ADDRESS, link->name, link->index)->address = address;
}

static bool
check_kind(const ChLink *link, const char *kind, GError **error)
{
    return g_str_equal(link->kind, kind) || ch_fail(error,
                                                    CH_ERROR_FAILED,
                                                    "type collision on link %s: actual %s, "
                                                    "requested %s",
                                                    link->name,
                                                    link->kind[0] != '\0' ? link->kind : "device",
                                                    kind);
}

static bool
check_names(const ChNetworkNames *names, GError **error)
{
    const char *const all[] = {
        names->pod_link, names->bridge, names->nic, names->tap, names->spare};

    for (gsize i = 0; i < G_N_ELEMENTS(all); i++)
        if (strlen(all[i]) >= IFNAMSIZ)
            return ch_fail(error,
                           CH_ERROR_FAILED,
                           "LinkAdd: numerical result out of range: a link cannot be named %s",
                           all[i]);
    return true;
}

/* The tap is made first and configured when its index is known. */
static bool
plan_tap(Plan *plan, const ChLink *bridge, uint32_t mtu, GError **error)
{
    const char *name = plan->iface->names.tap;
    const ChLink *tap = find_link(plan, name);
    ChNetworkStep wanted = {.mtu = mtu};
    ChNetworkStep *step;

    if (tap == NULL) {
        step = add_step(plan, CH_NETWORK_STEP_MAKE_TAP, name, 0);
        step->is_multi_queue = plan->iface->is_multi_queue;
        return true;
    }
    if (!check_kind(tap, "tap", error))
        return false;
    if (tap->is_transient) /* by the hands of an agent that ends just now: it may go with them */
        return ch_fail_errno(error, EAGAIN, "take tap %s, which somebody is making", name);
    if (tap->max_mtu != 0)
        wanted.mtu = MIN(mtu, tap->max_mtu); /* a pod link takes 65535, a tap less */
    if (wanted.mtu == tap->mtu)
        wanted.mtu = 0;
    if (bridge != NULL && tap->master != bridge->index)
        wanted.master = bridge->index;
    wanted.sets_up = !(tap->flags & IFF_UP);
    if (wanted.mtu == 0 && wanted.master == 0 && !wanted.sets_up)
        return true;
    step = add_step(plan, CH_NETWORK_STEP_LINK, name, tap->index);
    step->mtu = wanted.mtu;
    step->master = wanted.master;
    step->sets_up = wanted.sets_up;
    return true;
}

/* --- masquerade: 04 §8.1 */

bool
ch_network_gateway(
    const char *cidr, uint8_t family, ChIp *out_ip, uint8_t *out_prefix, GError **error)
{
    uint8_t prefix = 0;
    ChIp network;

    if (!ch_ip_parse_network(cidr, &network, &prefix))
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "failed to parse VM CIDR: %s, invalid CIDR address: %s",
                       cidr,
                       cidr);
    if (network.family != family)
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "failed to parse VM CIDR: %s, it is not of %s",
                       cidr,
                       family == AF_INET ? "IPv4" : "IPv6");
    if (prefix > ch_ip_n_bytes(&network) * 8 - 2)
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "VM CIDR subnet is too small, at least 2 host addresses are required: %s",
                       cidr);
    *out_ip = ch_ip_plus(&network, 1);
    *out_prefix = prefix;
    return true;
}

static bool
plan_gateway(
    Plan *plan, const ChLink *bridge, const ChLink *pod_link, uint8_t family, GError **error)
{
    const ChNetworkIface *iface = plan->iface;
    uint8_t prefix;
    ChIp gateway;

    if (ch_network_first_address(plan->seen, pod_link, family) == NULL)
        return true;
    if (!ch_network_gateway(
            family == AF_INET ? iface->cidr_v4 : iface->cidr_v6, family, &gateway, &prefix, error))
        return false;
    if (bridge != NULL)
        add_address(plan, bridge, &gateway, prefix);
    return true;
}

static void
plan_masquerade_bridge(Plan *plan, const ChLink *bridge, const ChLink *pod_link)
{
    const bool wants_mac =
        !bridge->has_mac || memcmp(bridge->mac, masquerade_mac, CH_MAC_BYTES) != 0;
    const bool wants_localnet =
        !bridge->route_localnet && ch_network_first_address(plan->seen, pod_link, AF_INET) != NULL;
    const bool wants_up = !(bridge->flags & IFF_UP);
    ChNetworkStep *step;

    if (!wants_mac && !wants_localnet && !wants_up && bridge->mtu == pod_link->mtu)
        return;
    step = add_step(plan, CH_NETWORK_STEP_LINK, bridge->name, bridge->index);
    if (wants_mac)
        set_mac(step, masquerade_mac);
    step->mtu = bridge->mtu != pod_link->mtu ? pod_link->mtu : 0;
    step->sets_up = wants_up;
    step->sets_route_localnet = wants_localnet;
}

static bool
plan_masquerade(Plan *plan, GError **error)
{
    const ChNetworkNames *names = &plan->iface->names;
    const ChLink *pod_link = find_link(plan, names->pod_link);
    const ChLink *bridge = find_link(plan, names->bridge);

    if (pod_link == NULL)
        return ch_network_fail_missing(plan->iface, error);
    if (bridge == NULL) {
        ChNetworkStep *step = add_new_link(plan, names->bridge, "bridge");

        set_mac(step, masquerade_mac);
        step->mtu = pod_link->mtu;
    } else if (!check_kind(bridge, "bridge", error)) {
        return false;
    }
    if (!plan_gateway(plan, bridge, pod_link, AF_INET, error) ||
        !plan_gateway(plan, bridge, pod_link, AF_INET6, error))
        return false;
    if (bridge != NULL)
        plan_masquerade_bridge(plan, bridge, pod_link);
    return plan_tap(plan, bridge, pod_link->mtu, error);
}

/* --- bridge: 04 §8.2 */

static bool
plan_bridge_bridge(Plan *plan, const ChLink *bridge, GError **error)
{
    const ChNetworkIface *iface = plan->iface;
    const ChLink *holder = ch_network_address_link(iface, plan->seen);
    g_autofree char *text = g_strdup_printf(FAKE_IP_STEM "%u", iface->index);
    ChIp fake;

    if (bridge == NULL) {
        (void)add_new_link(plan, iface->names.bridge, "bridge");
        return true;
    }
    if (!check_kind(bridge, "bridge", error))
        return false;
    if (iface->binding == CH_NETWORK_BRIDGE && holder != NULL &&
        ch_network_first_address(plan->seen, holder, AF_INET) != NULL) {
        if (!ch_ip_parse(text, &fake))
            return ch_fail(error, CH_ERROR_FAILED, "interface %u has no address", iface->index);
        add_address(plan, bridge, &fake, FAKE_IP_PREFIX);
    }
    if (!(bridge->flags & IFF_UP))
        add_step(plan, CH_NETWORK_STEP_LINK, bridge->name, bridge->index)->sets_up = true;
    return true;
}

/* The stand-in gets all that the pod link has, as long as that has it. */
static void
plan_spare(Plan *plan, const ChLink *spare, const ChLink *pod_link)
{
    if (spare == NULL) {
        ChNetworkStep *step = add_new_link(plan, plan->iface->names.spare, plan->dummy_kind);

        if (pod_link->has_mac)
            set_mac(step, pod_link->mac);
        step->mtu = pod_link->mtu;
        return;
    }
    for (guint i = 0; i < plan->seen->addresses->len; i++) {
        const ChAddress *address = &g_array_index(plan->seen->addresses, ChAddress, i);

        if (address->index == pod_link->index)
            add_address(plan, spare, &address->ip, address->prefix);
    }
}

/* Down first: names and MACs are changed then, and the kernel drops the IPv6 addresses. Up last: it
 * marks that the old addresses are gone, so that the link-local ones of the kernel may stay. */
static void
plan_nic(Plan *plan, const ChLink *nic, const ChLink *bridge)
{
    const char *name = plan->iface->names.nic;
    const bool is_renamed = g_str_equal(nic->name, name);
    const bool is_raw = !is_renamed || !(nic->flags & IFF_UP);
    const bool is_port = nic->master == bridge->index;

    if (!is_renamed) {
        if (nic->flags & IFF_UP)
            add_step(plan, CH_NETWORK_STEP_LINK, name, nic->index)->sets_down = true;
        g_strlcpy(
            add_step(plan, CH_NETWORK_STEP_LINK, nic->name, nic->index)->name, name, IFNAMSIZ);
    }
    if (!is_port) {
        ChNetworkStep *step = add_step(plan, CH_NETWORK_STEP_LINK, name, nic->index);

        if (bridge->has_mac)
            set_mac(step, bridge->mac);
        step->master = bridge->index;
    }
    for (guint i = 0; is_raw && i < plan->seen->addresses->len; i++) {
        const ChAddress *address = &g_array_index(plan->seen->addresses, ChAddress, i);

        if (address->index == nic->index)
            add_step(plan, CH_NETWORK_STEP_DELETE_ADDRESS, name, nic->index)->address = *address;
    }
    if (!is_port || nic->is_learning)
        (void)add_step(plan, CH_NETWORK_STEP_LEARNING_OFF, name, nic->index);
    if (is_raw)
        add_step(plan, CH_NETWORK_STEP_LINK, name, nic->index)->sets_up = true;
}

static bool
plan_bridge(Plan *plan, GError **error)
{
    const ChNetworkNames *names = &plan->iface->names;
    const ChLink *bridge = find_link(plan, names->bridge);
    const ChLink *spare = find_link(plan, names->spare);
    const ChLink *bearer = find_link(plan, names->pod_link); /* of the name */
    const ChLink *renamed = find_link(plan, names->nic);
    const ChLink *nic = renamed != NULL ? renamed : bearer; /* what CNI made */
    const bool is_prepared = bridge != NULL && (spare != NULL || renamed != NULL);
    guint first_to_wait;

    if (nic == NULL)
        return ch_network_fail_missing(plan->iface, error);
    if (renamed != NULL && bearer == NULL && spare == NULL)
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "preparation for network %s cannot be restarted: %s was renamed and nothing "
                       "has its addresses",
                       plan->iface->name,
                       names->pod_link);
    if (!plan_bridge_bridge(plan, bridge, error))
        return false;
    if (renamed == NULL)
        plan_spare(plan, spare, bearer);
    first_to_wait = plan->steps->len;
    if (is_prepared)
        plan_nic(plan, nic, bridge);
    /* Not before the nic: the bridge takes over the lowest MAC of its ports. */
    if (!plan_tap(plan, is_prepared ? bridge : NULL, nic->mtu, error))
        return false;
    if (bridge != NULL && spare != NULL && (renamed == NULL || bearer == NULL))
        g_strlcpy(add_step(plan, CH_NETWORK_STEP_LINK, spare->name, spare->index)->name,
                  names->pod_link,
                  IFNAMSIZ);
    for (guint i = first_to_wait; i < plan->steps->len; i++)
        g_array_index(plan->steps, ChNetworkStep, i).waits = true;
    return true;
}

GArray *
ch_network_plan(const ChNetworkIface *iface,
                const ChNetState *seen,
                const char *dummy_kind,
                GError **error)
{
    g_autoptr(GArray) steps = g_array_new(FALSE, TRUE, sizeof(ChNetworkStep));
    Plan plan = {.iface = iface, .seen = seen, .dummy_kind = dummy_kind, .steps = steps};
    bool ok = true;

    if (iface->binding == CH_NETWORK_MASQUERADE)
        ok = check_names(&iface->names, error) && plan_masquerade(&plan, error);
    else if (ch_network_iface_bridges(iface))
        ok = check_names(&iface->names, error) && plan_bridge(&plan, error);
    return ok ? g_steal_pointer(&steps) : NULL;
}

/* --- removal: 04 §13.2 */

/* Not by name alone: before its renaming the name is the pod link's own. */
static void
plan_deletion(Plan *plan, const char *name, const char *kind, const char *other_kind)
{
    const ChLink *link = find_link(plan, name);

    if (link != NULL && (g_str_equal(link->kind, kind) || g_str_equal(link->kind, other_kind)))
        add_step(plan, CH_NETWORK_STEP_DELETE_LINK, link->name, link->index)->waits = true;
}

GArray *
ch_network_plan_removal(const ChNetworkIface *iface, const ChNetState *seen)
{
    GArray *steps = g_array_new(FALSE, TRUE, sizeof(ChNetworkStep));
    Plan plan = {.iface = iface, .seen = seen, .steps = steps};

    if (iface->binding != CH_NETWORK_BRIDGE)
        return steps;
    plan_deletion(&plan, iface->names.bridge, "bridge", "bridge");
    plan_deletion(&plan, iface->names.tap, "tap", "tap");
    plan_deletion(&plan, iface->names.pod_link, "dummy", "bridge");
    plan_deletion(&plan, iface->names.spare, "dummy", "bridge");
    return steps;
}
