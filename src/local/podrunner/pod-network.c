/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pod-network.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "local/podrunner/cni-call.h"
#include "local/podrunner/leases.h"
#include "local/podrunner/pod-attach.h"

#define POD_LINK "eth0"

/* --- both ways -------------------------------------------------------------------------------- */

static bool
set_network(const ChPodNetworkEnv *env, ChRecord *record, const char *network, GError **error)
{
    g_free(record->network);
    record->network = g_strdup(network);
    return ch_record_save(record, env->state_dir, error);
}

static void
set_result(ChRecord *record, const ChCniResult *result)
{
    g_free(record->ips);
    g_free(record->cni_result);
    record->ips = result->n_ips > 1 ? g_strjoin(",", result->ips[0], result->ips[1], NULL)
                                    : g_strdup(result->ips[0]);
    record->cni_result = g_strdup(result->text);
}

static bool
add_bridge(const ChPodNetworkEnv *env, ChRecord *record, GError **error)
{
    g_autofree char *config = ch_cni_bridge_config(env->network, NULL);
    g_autofree char *text = NULL;
    g_auto(ChCniResult) result = {0};

    if (!ch_cni_call(
            env->cni_path, record, &(ChCniCall){"ADD", "bridge", POD_LINK, config}, &text, error))
        return false;
    if (!ch_cni_result_parse(text, &result, error)) {
        g_prefix_error(error, "the CNI plugin 'bridge' failed: ");
        return false;
    }
    set_result(record, &result);
    return true;
}

static bool
add_pod_network(const ChPodNetworkEnv *env,
                ChRecord *record,
                const ChPodNetworkWish *wish,
                GError **error)
{
    g_autofree char *portmap = NULL;

    if (!add_bridge(env, record, error))
        return false;
    if (wish->n_ports == 0)
        return true;
    record->has_host_ports = true;
    if (!ch_record_save(record, env->state_dir, error))
        return false;
    portmap = ch_cni_portmap_config(env->network, wish->ports, wish->n_ports, record->cni_result);
    return ch_cni_call(
        env->cni_path, record, &(ChCniCall){"ADD", "portmap", POD_LINK, portmap}, NULL, error);
}

static bool
add_all(const ChPodNetworkEnv *env, ChRecord *record, const ChPodNetworkWish *wish, GError **error)
{
    g_autofree char *loopback = ch_cni_loopback_config();

    if (!ch_cni_call(
            env->cni_path, record, &(ChCniCall){"ADD", "loopback", "lo", loopback}, NULL, error) ||
        (wish->has_pod_network && !add_pod_network(env, record, wish, error)) ||
        !ch_pod_attach(env, record, wish->attachments, error))
        return false;
    ch_record_set_list(&record->attachments, wish->attachments); /* with results now */
    return true;
}

/* A rule for a port goes before who listens there: this machine would lose its sshd, or chandler
 * its API server. */
static bool
is_port_free(const ChHostPort *port, GError **error)
{
    const bool is_udp = g_str_equal(port->protocol, "udp");
    const int yes = 1;
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port->host)};
    ch_autofd int fd = socket(AF_INET, (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

    /* Connections that ended a moment ago do not count. */
    if (fd < 0 || (!is_udp && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0))
        return ch_fail_errno(error, errno, "look at port %u", port->host);
    if (bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0)
        return true;
    if (errno != EADDRINUSE)
        return ch_fail_errno(error, errno, "look at port %u", port->host);
    return ch_fail(
        error,
        CH_ERROR_EXISTS,
        "port %u/%s of this machine, which chandler.dev/host-ports names, is in use by a "
        "program",
        port->host,
        port->protocol);
}

static bool
are_ports_free(const ChPodNetworkWish *wish, GError **error)
{
    for (gsize i = 0; i < wish->n_ports; i++)
        if (!is_port_free(&wish->ports[i], error))
            return false;
    return true;
}

static bool
begin(const ChPodNetworkEnv *env, ChRecord *record, const ChPodNetworkWish *wish, GError **error)
{
    record->has_no_pod_network = !wish->has_pod_network;
    ch_record_set_list(&record->attachments, wish->attachments);
    return set_network(env, record, CH_RECORD_NETWORK_BEGUN, error);
}

bool
ch_pod_network_connect(const ChPodNetworkEnv *env,
                       ChRecord *record,
                       const ChPodNetworkWish *wish,
                       GError **error)
{
    if (wish->has_pod_network && env->network == NULL)
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "this machine offers its pods no network%s%s",
                       env->why_no_network != NULL ? ": " : "",
                       env->why_no_network != NULL ? env->why_no_network : "");
    return are_ports_free(wish, error) && begin(env, record, wish, error) &&
           add_all(env, record, wish, error) &&
           set_network(env, record, CH_RECORD_NETWORK_UP, error);
}

/* In reverse order; an earlier failure does not keep the others from being asked. */
static bool
delete_pod_network(const ChPodNetworkEnv *env, const ChRecord *record, GError **error)
{
    const ChHostPort some_port = {1, 1, "tcp"}; /* portmap does nothing without any */
    g_autofree char *portmap =
        ch_cni_portmap_config(env->network, &some_port, 1, record->cni_result);
    g_autofree char *bridge = ch_cni_bridge_config(env->network, record->cni_result);
    bool is_gone = true;

    if (record->has_host_ports)
        is_gone = ch_cni_call(
            env->cni_path, record, &(ChCniCall){"DEL", "portmap", POD_LINK, portmap}, NULL, error);
    return ch_cni_call(env->cni_path,
                       record,
                       &(ChCniCall){"DEL", "bridge", POD_LINK, bridge},
                       NULL,
                       is_gone ? error : NULL) &&
           is_gone;
}

static bool
delete_all(const ChPodNetworkEnv *env, const ChRecord *record, GError **error)
{
    const bool is_detached = ch_pod_detach(env, record, error);

    if (env->network == NULL || record->has_no_pod_network)
        return is_detached;
    return delete_pod_network(env, record, is_detached ? error : NULL) && is_detached;
}

bool
ch_pod_network_disconnect(const ChPodNetworkEnv *env, ChRecord *record, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (record->network == NULL)
        return true;
    if (!delete_all(env, record, &failure)) {
        if (++record->n_failed_dels < CH_POD_NETWORK_MAX_FAILED_DELS) {
            (void)ch_record_save(record, env->state_dir, NULL); /* only counts */
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        ch_log_warning(NULL,
                       failure,
                       "giving up to disconnect pod %s by its plugins; its addresses are freed",
                       record->name);
        ch_leases_free(env->lease_dir, record->uid, NULL);
    }
    record->n_failed_dels = 0;
    record->has_host_ports = false;
    g_clear_pointer(&record->ips, g_free);
    g_clear_pointer(&record->cni_result, g_free);
    g_clear_pointer(&record->attachments, g_free);
    return set_network(env, record, NULL, error);
}
