/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network.h"

#include <string.h>

#include "handler/pod/network-cache.h"
#include "handler/pod/network-dhcp.h"
#include "handler/pod/network-internal.h"
#include "handler/pod/pod-net.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

static void
setup_clear(ChNetworkSetup *setup)
{
    if (setup->route != NULL)
        ch_pod_net_close(setup->pod);
    ch_netlink_free(setup->route);
    ch_net_state_free(setup->seen);
    ch_network_spec_free(setup->spec);
    g_clear_pointer(&setup->documents, g_ptr_array_unref);
    g_clear_pointer(&setup->states, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChNetworkSetup, setup_clear)

int64_t
ch_network_setup_state(const ChNetworkSetup *setup, guint index)
{
    return g_array_index(setup->states, int64_t, index);
}

bool
ch_network_setup_is_absent(const ChNetworkSetup *setup, guint index)
{
    return ch_network_spec_iface(setup->spec, index)->is_absent;
}

bool
ch_network_setup_is_unfinished(const ChNetworkSetup *setup, guint index)
{
    return !ch_network_setup_is_absent(setup, index) &&
           (ch_network_setup_state(setup, index) == CH_NETWORK_PENDING ||
            ch_network_setup_state(setup, index) == CH_NETWORK_STARTED);
}

static bool
is_to_go(const ChNetworkSetup *setup, guint index)
{
    return ch_network_setup_is_absent(setup, index) &&
           (ch_network_setup_state(setup, index) == CH_NETWORK_STARTED ||
            ch_network_setup_state(setup, index) == CH_NETWORK_FINISHED);
}

/* It goes, and an agent that ended had prepared it and not begun. */
static bool
is_left_over(const ChNetworkSetup *setup, guint index)
{
    return setup->run == CH_NETWORK_RUN_UPDATE && ch_network_setup_is_absent(setup, index) &&
           ch_network_setup_state(setup, index) == CH_NETWORK_PENDING;
}

/* It is not in the guest yet: is it in the pod? An agent that ended between the two last steps of
 * an unplug (04 §13.2) leaves the state of a network that may come back under its name. */
static bool
is_doubtful(const ChNetworkSetup *setup, guint index)
{
    return setup->run == CH_NETWORK_RUN_UPDATE && !ch_network_setup_is_absent(setup, index) &&
           ch_network_setup_state(setup, index) == CH_NETWORK_FINISHED &&
           ch_network_iface_bridges(ch_network_spec_iface(setup->spec, index));
}

static bool
has_any(const ChNetworkSetup *setup, bool (*is_one)(const ChNetworkSetup *setup, guint index))
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++)
        if (is_one(setup, i))
            return true;
    return false;
}

bool
ch_network_setup_look(ChNetworkSetup *setup, bool with_routes, GError **error)
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
wants_routes(const ChNetworkSetup *setup)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++)
        if (ch_network_spec_iface(setup->spec, i)->binding == CH_NETWORK_BRIDGE &&
            (ch_network_setup_state(setup, i) == CH_NETWORK_PENDING || is_doubtful(setup, i)) &&
            !ch_network_setup_is_absent(setup, i))
            return true;
    return false;
}

/* Finished networks of which the pod has nothing begin anew. */
static void
doubt(ChNetworkSetup *setup)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const ChNetworkNames *names = &ch_network_spec_iface(setup->spec, i)->names;

        if (is_doubtful(setup, i) && ch_net_state_find_link(setup->seen, names->bridge) == NULL &&
            ch_net_state_find_link(setup->seen, names->tap) == NULL)
            g_array_index(setup->states, int64_t, i) = CH_NETWORK_PENDING;
    }
}

/* --- what is kept on disk */

static bool
load_documents(ChNetworkSetup *setup, GError **error)
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
mark(const ChNetworkSetup *setup, ChNetworkState state, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const char *name = ch_network_spec_iface(setup->spec, i)->name;
        ChJson *document = setup->documents->pdata[i];

        if (!ch_network_setup_is_unfinished(setup, i) || ch_network_cache_state(document) == state)
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
note_addresses(const ChNetworkSetup *setup,
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
store_dhcp(const ChNetworkSetup *setup, const ChNetworkIface *iface, GError **error)
{
    g_autofree char *text = ch_network_dhcp_print(iface, setup->seen, error);

    return text != NULL && ch_pod_net_store_dhcp(setup->pod, iface->names.pod_link, text, error);
}

/* Only of networks that are pending: a started one is no longer as CNI left it, and this was done
 * before. */
static bool
discover(const ChNetworkSetup *setup, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const ChNetworkIface *iface = ch_network_spec_iface(setup->spec, i);
        const ChLink *link = ch_net_state_find_link(setup->seen, iface->names.pod_link);

        if (ch_network_setup_is_absent(setup, i) ||
            ch_network_setup_state(setup, i) != CH_NETWORK_PENDING)
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

static bool
configure(ChNetworkSetup *setup, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++)
        if (ch_network_setup_is_unfinished(setup, i) &&
            !ch_network_setup_links(setup, ch_network_spec_iface(setup->spec, i), error))
            return false;
    CH_CRASH_POINT("network/links");
    return ch_network_setup_rules(setup, error);
}

/* --- plugging: 04 §3 */

/* What failed in the pod, after it was begun to be changed. */
static ChPodNetworkOutcome
judge(const ChNetworkSetup *setup, GError **error)
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
plug(ChNetworkSetup *setup, GError **error)
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

static bool
remove_dhcp(const ChNetworkSetup *setup, const ChNetworkIface *iface, GError **error)
{
    return !ch_network_iface_bridges(iface) ||
           ch_pod_net_remove_dhcp(setup->pod, iface->names.pod_link, error);
}

/* The state last: it tells that there is something left to do. */
static bool
forget(const ChNetworkSetup *setup, const ChNetworkIface *iface, GError **error)
{
    if (!remove_dhcp(setup, iface, error))
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
unplug(ChNetworkSetup *setup, GError **error)
{
    for (guint i = 0; i < setup->spec->ifaces->len; i++) {
        const ChNetworkIface *iface = ch_network_spec_iface(setup->spec, i);

        if (is_left_over(setup, i) && !remove_dhcp(setup, iface, error))
            return CH_POD_NETWORK_RETRY;
        if (!is_to_go(setup, i))
            continue;
        if (!ch_network_setup_links(setup, iface, error))
            return judge(setup, error);
        if (!forget(setup, iface, error))
            return CH_POD_NETWORK_RETRY;
    }
    return CH_POD_NETWORK_OK;
}

/* --- the set-up */

/* What goes does not wait for what comes. */
static ChPodNetworkOutcome
change_pod(ChNetworkSetup *setup, GError **error)
{
    g_autoptr(GError) reason = NULL;
    const ChPodNetworkOutcome come =
        has_any(setup, ch_network_setup_is_unfinished) ? plug(setup, &reason) : CH_POD_NETWORK_OK;
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
set_up(ChNetworkSetup *setup, const ChJson *vmi, GError **error)
{
    const int64_t start_us = ch_time_now_us();
    ChPodNetworkOutcome outcome;

    setup->spec = ch_network_spec_new(vmi, setup->run, setup->options->config, error);
    if (setup->spec == NULL || !load_documents(setup, error))
        return CH_POD_NETWORK_RETRY;
    if (!has_any(setup, ch_network_setup_is_unfinished) && !has_any(setup, is_to_go) &&
        !has_any(setup, is_left_over) && !has_any(setup, is_doubtful))
        return CH_POD_NETWORK_OK;
    setup->route = ch_pod_net_open_route(setup->pod, error);
    if (setup->route == NULL || !ch_network_setup_look(setup, wants_routes(setup), error))
        return CH_POD_NETWORK_RETRY;
    ch_network_spec_name(setup->spec, setup->seen);
    doubt(setup);
    outcome = change_pod(setup, error);
    if (outcome == CH_POD_NETWORK_OK && setup->n_steps > 0)
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
    g_auto(ChNetworkSetup) setup = {
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
