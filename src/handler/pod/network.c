/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network.h"

#include <errno.h>
#include <string.h>

#include "handler/pod/network-cache.h"
#include "handler/pod/network-dhcp.h"
#include "handler/pod/network-nat.h"
#include "handler/pod/network-plan.h"
#include "handler/pod/pod-net.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define MAX_ROUNDS   16 /* plans until nothing is left to do; three are normal */
#define MAX_TOGETHER 32 /* steps in one message: the kernel has room for as many answers */
#define MAX_ATTEMPTS 10 /* to read a list of rules without a change in between */

typedef struct {
    ChPod *pod;
    const ChPodNetworkOptions *options;
    ChNetworkRun run;
    const char *uid;
    ChNetworkSpec *spec;    /* owned */
    GPtrArray *documents;   /* owned; ChJson: the cache's, by interface */
    GArray *states;         /* owned; int64_t: as found, by interface */
    ChNetlink *route;       /* owned; NULL: not opened yet */
    ChNetState *seen;       /* owned; the newest look */
    const char *dummy_kind; /* what stands in for a pod link */
    guint n_steps;
} Setup;

static void
setup_clear(Setup *setup)
{
    if (setup->route != NULL)
        ch_pod_net_close(setup->pod);
    ch_netlink_free(setup->route);
    ch_net_state_free(setup->seen);
    ch_network_spec_free(setup->spec);
    g_clear_pointer(&setup->documents, g_ptr_array_unref);
    g_clear_pointer(&setup->states, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

static int64_t
state_of(const Setup *setup, guint index)
{
    return g_array_index(setup->states, int64_t, index);
}

static bool
is_absent(const Setup *setup, guint index)
{
    return ch_network_spec_iface(setup->spec, index)->is_absent;
}

/* A state that is none of the three is left alone, as the Go agent does. */
static bool
is_unfinished(const Setup *setup, guint index)
{
    return !is_absent(setup, index) && (state_of(setup, index) == CH_NETWORK_PENDING ||
                                        state_of(setup, index) == CH_NETWORK_STARTED);
}

static bool
is_to_go(const Setup *setup, guint index)
{
    return is_absent(setup, index) && (state_of(setup, index) == CH_NETWORK_STARTED ||
                                       state_of(setup, index) == CH_NETWORK_FINISHED);
}

static bool
has_any(const Setup *setup, bool (*is_one)(const Setup *setup, guint index))
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++)
        if (is_one(setup, i))
            return true;
    return false;
}

static bool
look(Setup *setup, bool with_routes, GError **error)
{
    ChNetState *seen = ch_rtnl_read(setup->route, with_routes, error);

    if (seen == NULL)
        return false;
    ch_net_state_free(setup->seen);
    setup->seen = seen;
    return true;
}

/* The DHCP server of a bridge-bound network is told of the routes, before anything is changed. */
static bool
wants_routes(const Setup *setup)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++)
        if (ch_network_spec_iface(setup->spec, i)->binding == CH_NETWORK_BRIDGE &&
            is_unfinished(setup, i) && state_of(setup, i) == CH_NETWORK_PENDING)
            return true;
    return false;
}

/* --- what is kept on disk */

static bool
load_documents(Setup *setup, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        ChJson *document = ch_network_cache_load(setup->options->private_dir,
                                                 setup->uid,
                                                 ch_network_spec_iface(setup->spec, i)->name,
                                                 error);
        int64_t state;

        if (document == NULL) {
            g_prefix_error(error, "failed to read pod interface network state from cache: ");
            return false;
        }
        state = ch_network_cache_state(document);
        g_ptr_array_add(setup->documents, document);
        g_array_append_val(setup->states, state);
    }
    return true;
}

static bool
own_cache(gpointer pod, const char *uid, const char *network, GError **error)
{
    return ch_pod_net_own_cache(pod, uid, network, error);
}

static bool
mark(const Setup *setup, ChNetworkState state, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const char *name = ch_network_spec_iface(setup->spec, i)->name;
        ChJson *document = setup->documents->pdata[i];

        if (!is_unfinished(setup, i) || ch_network_cache_state(document) == state)
            continue;
        ch_network_cache_set_state(document, state);
        if (!ch_network_cache_store(setup->options->private_dir,
                                    setup->uid,
                                    name,
                                    document,
                                    own_cache,
                                    setup->pod,
                                    error)) {
            g_prefix_error(error,
                           "failed to mark configuration as %s for %s: ",
                           state == CH_NETWORK_STARTED ? "started" : "finished",
                           name);
            return false;
        }
    }
    return true;
}

/* --- discovery: 04 §7 */

/* The addresses that the status shows. None of them: the document stays as it is. */
static void
note_addresses(const Setup *setup,
               const ChNetworkIface *iface,
               const ChLink *link,
               ChJson *document)
{
    const ChAddress *v4 = ch_network_first_address(setup->seen, link, AF_INET);
    const ChAddress *v6 = iface->binding == CH_NETWORK_BRIDGE
                              ? NULL
                              : ch_network_first_address(setup->seen, link, AF_INET6);
    const char *own_ip = setup->options->own_ip;
    const bool is_v6_first = own_ip != NULL && strchr(own_ip, ':') != NULL;
    const ChAddress *const ordered[] = {is_v6_first ? v6 : v4, is_v6_first ? v4 : v6};
    ChJson *list;

    if (v4 == NULL && v6 == NULL)
        return;
    list = ch_json_new_array();
    ch_json_set(document, "iface", ch_json_dup(iface->json));
    for (gsize i = 0; i < G_N_ELEMENTS(ordered); i++) {
        char text[CH_IP_TEXT_SIZE];

        if (ordered[i] == NULL)
            continue;
        (void)ch_ip_print(&ordered[i]->ip, text);
        if (ch_json_length(list) == 0)
            ch_json_set_string(document, "podIP", text);
        ch_json_append(list, ch_json_new_string(text));
    }
    ch_json_set(document, "podIPs", list);
}

static bool
store_dhcp(const Setup *setup, const ChNetworkIface *iface, GError **error)
{
    g_autofree char *text = ch_network_dhcp_print(iface, setup->seen, error);

    return text != NULL && ch_pod_net_store_dhcp(setup->pod, iface->names.pod_link, text, error);
}

/* Only of networks that are pending: a started one is no longer as CNI left it, and this was done
 * before. */
static bool
discover(const Setup *setup, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const ChNetworkIface *iface = ch_network_spec_iface(setup->spec, i);
        const ChLink *link = ch_net_state_find_link(setup->seen, iface->names.pod_link);

        if (is_absent(setup, i) || state_of(setup, i) != CH_NETWORK_PENDING)
            continue;
        if (link == NULL && iface->binding == CH_NETWORK_PLUGIN)
            continue;
        if (link == NULL)
            return ch_network_fail_missing(iface, error);
        note_addresses(setup, iface, link, setup->documents->pdata[i]);
        if (iface->binding == CH_NETWORK_BRIDGE && !store_dhcp(setup, iface, error))
            return false;
    }
    return true;
}

/* --- links: 04 §9 */

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
send_steps(
    Setup *setup, const ChNetworkStep *steps, guint n_steps, guint *out_failed, GError **error)
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
does_without_dummy(Setup *setup, const ChNetworkStep *step, const GError *reason)
{
    if (step->link_kind == NULL || step->link_kind != setup->dummy_kind ||
        g_str_equal(setup->dummy_kind, "bridge") || !g_error_matches(reason, CH_ERRNO, EOPNOTSUPP))
        return false;
    setup->dummy_kind = "bridge";
    return true;
}

/* *out_n_taken: how many of the steps were taken; 0: a new plan is needed. */
static bool
take_steps(
    Setup *setup, const ChNetworkStep *steps, guint n_steps, guint *out_n_taken, GError **error)
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
plan(const Setup *setup, const ChNetworkIface *iface, GError **error)
{
    return iface->is_absent ? ch_network_plan_removal(iface, setup->seen)
                            : ch_network_plan(iface, setup->seen, setup->dummy_kind, error);
}

static bool
take_plan(Setup *setup, const GArray *plan, GError **error)
{
    const ChNetworkStep *steps = (const ChNetworkStep *)(gpointer)plan->data;
    guint n = 1;

    for (guint i = 0; i < plan->len && n > 0; i += n)
        if (!take_steps(setup, &steps[i], plan->len - i, &n, error))
            return false;
    return true;
}

static bool
configure_links(Setup *setup, const ChNetworkIface *iface, GError **error)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        g_autoptr(GArray) steps = plan(setup, iface, error);

        if (steps == NULL)
            return false;
        if (steps->len == 0)
            return true;
        if (!take_plan(setup, steps, error) || !look(setup, false, error))
            return false;
    }
    return ch_fail(
        error, CH_ERROR_FAILED, "the links of network %s do not stay as they are set", iface->name);
}

/* --- sysctls and rules: 04 §11, §12 */

/* @iface's: set once and never taken back, as others may rely on them. */
static uint32_t
sysctls_of(const Setup *setup, const ChNetworkIface *iface)
{
    const ChLink *link = ch_network_address_link(iface, setup->seen);
    const bool has_v4 =
        link != NULL && ch_network_first_address(setup->seen, link, AF_INET) != NULL;
    const bool has_v6 =
        link != NULL && ch_network_first_address(setup->seen, link, AF_INET6) != NULL;

    switch (iface->binding) {
    case CH_NETWORK_MASQUERADE:
        return (has_v4 ? CH_HANDS_SYSCTL_IPV4_FORWARD : 0) |
               (has_v6 ? CH_HANDS_SYSCTL_IPV6_FORWARD : 0);
    case CH_NETWORK_BRIDGE:
    case CH_NETWORK_MANAGED_TAP:
        return has_v4 ? CH_HANDS_SYSCTL_ARP_IGNORE : 0;
    case CH_NETWORK_PASST:
        return CH_HANDS_SYSCTL_PING_GROUPS | CH_HANDS_SYSCTL_ALL_PORTS;
    case CH_NETWORK_PLUGIN:
    case CH_NETWORK_BINDING_INVALID:
        break;
    }
    return 0;
}

static uint32_t
wanted_sysctls(const Setup *setup)
{
    uint32_t sysctls = 0;

    for (guint i = 0; i < setup->spec->ifaces->len; i++)
        if (is_unfinished(setup, i))
            sysctls |= sysctls_of(setup, ch_network_spec_iface(setup->spec, i));
    return sysctls;
}

static bool
count_rules(ChNetlink *netfilter, uint8_t family, ChNftCounts *counts, GError **error)
{
    for (int attempt = 1;; attempt++) {
        g_autoptr(GError) reason = NULL;

        if (ch_nft_count(netfilter, family, counts, &reason))
            return true;
        if (!g_error_matches(reason, CH_ERRNO, EINTR) || attempt == MAX_ATTEMPTS) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return false;
        }
    }
}

static bool
add_rules(const ChNetworkNat *nat, bool is_resumed, ChNetlink *netfilter, GError **error)
{
    g_autoptr(GArray) rules = ch_network_nat_rules(nat);
    ChNftCounts counts = {.table = CH_NETWORK_NAT_TABLE};
    g_autoptr(GByteArray) batch = NULL;
    ChNetworkNatState state;

    counts.chains = ch_network_nat_chains(&counts.n_chains);
    if (!count_rules(netfilter, nat->family, &counts, error))
        return false;
    state = ch_network_nat_judge(rules, &counts, is_resumed);
    if (state == CH_NETWORK_NAT_DONE)
        return true;
    batch = ch_nft_compose(nat->family,
                           CH_NETWORK_NAT_TABLE,
                           counts.chains,
                           counts.n_chains,
                           (const ChNftRule *)(gpointer)rules->data,
                           rules->len,
                           state == CH_NETWORK_NAT_REDO,
                           CH_POD_NET_MAX_BYTES,
                           error);
    CH_CRASH_POINT("network/rules");
    return batch != NULL && ch_netlink_request(netfilter, batch->data, batch->len, error);
}

static bool
add_family(const Setup *setup,
           const ChNetworkIface *iface,
           uint8_t family,
           bool is_resumed,
           ChNetlink *netfilter,
           GError **error)
{
    const ChLink *link = ch_net_state_find_link(setup->seen, iface->names.pod_link);
    const ChAddress *address =
        link != NULL ? ch_network_first_address(setup->seen, link, family) : NULL;
    ChNetworkNat nat = {
        .family = family,
        .pod_link = iface->names.pod_link,
        .bridge = iface->names.bridge,
        .is_istio = setup->spec->is_istio,
        .reserves_migration_ports = setup->spec->reserves_migration_ports,
        .ports = (const ChNetworkPort *)(gpointer)iface->ports->data,
        .n_ports = iface->ports->len,
    };
    uint8_t prefix;

    if (address == NULL)
        return true;
    if (!ch_network_gateway(family == AF_INET ? iface->cidr_v4 : iface->cidr_v6,
                            family,
                            &nat.gateway,
                            &prefix,
                            error))
        return false;
    nat.guest = ch_ip_plus(&nat.gateway, 1);
    nat.pod_ip = address->ip;
    if (add_rules(&nat, is_resumed, netfilter, error))
        return true;
    g_prefix_error(error,
                   "setup-nat: rules of table %s nat, which need a kernel with nf_tables and its "
                   "NAT: ",
                   family == AF_INET ? "ip" : "ip6");
    return false;
}

/* The first masquerade interface; there cannot well be another. NULL: none, or it is finished. */
static const ChNetworkIface *
find_masquerade(const Setup *setup, bool *out_is_resumed)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const ChNetworkIface *iface = ch_network_spec_iface(setup->spec, i);

        if (iface->binding != CH_NETWORK_MASQUERADE)
            continue;
        *out_is_resumed = state_of(setup, i) == CH_NETWORK_STARTED;
        return is_unfinished(setup, i) ? iface : NULL;
    }
    return NULL;
}

/* The sysctls first. */
static bool
configure_nat(const Setup *setup, uint32_t sysctls, GError **error)
{
    bool is_resumed = false;
    const ChNetworkIface *iface = find_masquerade(setup, &is_resumed);
    g_autoptr(ChNetlink) netfilter = NULL;

    if (iface == NULL)
        return sysctls == 0 || ch_pod_net_set_sysctls(setup->pod, sysctls, error);
    netfilter = ch_pod_net_open_netfilter(setup->pod, sysctls, error);
    return netfilter != NULL && add_family(setup, iface, AF_INET, is_resumed, netfilter, error) &&
           add_family(setup, iface, AF_INET6, is_resumed, netfilter, error);
}

static bool
configure(Setup *setup, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++)
        if (is_unfinished(setup, i) &&
            !configure_links(setup, ch_network_spec_iface(setup->spec, i), error))
            return false;
    CH_CRASH_POINT("network/links");
    return configure_nat(setup, wanted_sysctls(setup), error);
}

/* --- plugging: 04 §3 */

/* What failed in the pod, after it was begun to be changed. */
static ChPodNetworkOutcome
judge(const Setup *setup, GError **error)
{
    const ChLogField pod = {.key = "pod", .text = ch_pod_peek_uid(setup->pod)};

    ch_log_error(&(ChLogContext){.fields = &pod, .n_fields = 1},
                 error != NULL ? *error : NULL,
                 "failed to configure pod network");
    if (error != NULL && ch_hands_is_passing(*error))
        return CH_POD_NETWORK_RETRY;
    g_prefix_error(error, "Critical network error: ");
    return CH_POD_NETWORK_CRITICAL;
}

static ChPodNetworkOutcome
plug(Setup *setup, GError **error)
{
    if (!discover(setup, error) || !mark(setup, CH_NETWORK_STARTED, error))
        return CH_POD_NETWORK_RETRY;
    CH_CRASH_POINT("network/started");
    if (!configure(setup, error))
        return judge(setup, error);
    CH_CRASH_POINT("network/configured");
    return mark(setup, CH_NETWORK_FINISHED, error) ? CH_POD_NETWORK_OK : CH_POD_NETWORK_RETRY;
}

/* --- unplugging: 04 §13.2 */

/* The state last: it tells that there is something left to do. */
static bool
forget(const Setup *setup, const ChNetworkIface *iface, GError **error)
{
    if (ch_network_iface_bridges(iface) &&
        !ch_pod_net_remove_dhcp(setup->pod, iface->names.pod_link, error))
        return false;
    CH_CRASH_POINT("network/unplugged");
    if (!ch_network_cache_forget(setup->options->private_dir, setup->uid, iface->name, error)) {
        g_prefix_error(error, "failed to clear state cache for %s: ", iface->name);
        return false;
    }
    ch_log_info(NULL, "pod %s: network %s unplugged", ch_pod_peek_uid(setup->pod), iface->name);
    return true;
}

static ChPodNetworkOutcome
unplug(Setup *setup, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const ChNetworkIface *iface = ch_network_spec_iface(setup->spec, i);

        if (!is_to_go(setup, i))
            continue;
        if (!configure_links(setup, iface, error))
            return judge(setup, error);
        if (!forget(setup, iface, error))
            return CH_POD_NETWORK_RETRY;
    }
    return CH_POD_NETWORK_OK;
}

/* --- the set-up */

/* What goes does not wait for what comes. */
static ChPodNetworkOutcome
change_pod(Setup *setup, GError **error)
{
    g_autoptr(GError) reason = NULL;
    const ChPodNetworkOutcome come =
        has_any(setup, is_unfinished) ? plug(setup, &reason) : CH_POD_NETWORK_OK;
    const ChPodNetworkOutcome gone = unplug(setup, error);

    if (come == CH_POD_NETWORK_OK)
        return gone;
    if (gone == CH_POD_NETWORK_OK)
        g_propagate_error(error, g_steal_pointer(&reason));
    else
        g_prefix_error(error, "%s; ", reason->message);
    return MAX(come, gone);
}

static ChPodNetworkOutcome
set_up(Setup *setup, const ChJson *vmi, GError **error)
{
    const int64_t start_us = ch_time_now_us();
    ChPodNetworkOutcome outcome;

    setup->spec = ch_network_spec_new(vmi, setup->run, setup->options->config, error);
    if (setup->spec == NULL || !load_documents(setup, error))
        return CH_POD_NETWORK_RETRY;
    if (!has_any(setup, is_unfinished) && !has_any(setup, is_to_go))
        return CH_POD_NETWORK_OK;
    setup->route = ch_pod_net_open_route(setup->pod, error);
    if (setup->route == NULL || !look(setup, wants_routes(setup), error))
        return CH_POD_NETWORK_RETRY;
    ch_network_spec_name(setup->spec, setup->seen);
    outcome = change_pod(setup, error);
    if (outcome == CH_POD_NETWORK_OK)
        ch_log_info(NULL,
                    "pod %s: network set up in %u steps and %" G_GINT64_FORMAT " us",
                    ch_pod_peek_uid(setup->pod),
                    setup->n_steps,
                    ch_time_now_us() - start_us);
    return outcome;
}

ChPodNetworkOutcome
ch_pod_network_set_up(ChPod *pod,
                      const ChJson *vmi,
                      ChNetworkRun run,
                      const ChPodNetworkOptions *options,
                      GError **error)
{
    const char *uid = ch_json_string_at(vmi, "metadata", "uid");
    g_autoptr(GError) reason = NULL;
    g_auto(Setup) setup = {
        .pod = pod,
        .options = options,
        .run = run,
        .uid = uid != NULL ? uid : "",
        .documents = g_ptr_array_new_with_free_func((GDestroyNotify)ch_json_unref),
        .states = g_array_new(FALSE, FALSE, sizeof(int64_t)),
        .dummy_kind = "dummy",
    };
    const ChPodNetworkOutcome outcome = set_up(&setup, vmi, &reason);

    if (outcome != CH_POD_NETWORK_OK)
        g_propagate_prefixed_error(error, g_steal_pointer(&reason), "setup failed, err: ");
    return outcome;
}
