/* SPDX-License-Identifier: Apache-2.0 */

/*
 * virt-handler: flags, wiring, signals. The only file that knows every room. Spec 01 §1, 08 §2, §4.
 *
 * Order: what can fail for ever fails first (flags, configuration, files), then the hands are
 * started while there is one thread, then the loop runs on this thread: informers and the domain
 * list fill the caches; when all are there, the controller takes its first key.
 */

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "handler/config/flags.h"
#include "handler/controller-seam.h"
#include "handler/downward-metrics/launcher-metrics.h"
#include "handler/events.h"
#include "handler/hands/client.h"
#include "handler/launcher-seam.h"
#include "handler/node-facts.h"
#include "handler/node-label.h"
#include "handler/node/daemon-sockets.h"
#include "handler/node/device-labels.h"
#include "handler/node/seccomp-profile.h"
#include "handler/node/shared-mounts.h"
#include "handler/node/tdx.h"
#include "handler/pod/ghost-records.h"
#include "handler/reconcile/controller.h"
#include "handler/watch/cluster-watch.h"
#include "handler/watch/domain-watch.h"
#include "handler/watch/plugin-watch.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/kube/informer.h"
#include "lib/kube/names.h"
#include "lib/kube/recorder.h"
#include "lib/linux/capabilities.h"
#include "lib/linux/selinux.h"

#define HOST_ROOT      "/proc/1/root"
#define HOST_MOUNTS    "/proc/1/mountinfo"
#define PODS_DIR       "/pods"
#define NAMESPACE_FILE "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
#define VMI_INFORMER   "vmiInformer-sources"
#define EXIT_PANIC     2
#define HANDS_ENDED    "virt-handler-hands ended unexpectedly"
#define MIN_WORKERS    2
#define MAX_WORKERS    64
#define FLUSH_US       CH_SECOND_US

typedef struct {
    ChFlags *flags;
    char *node_name;
    char *own_namespace;
    ChNodeFacts facts;
    ChTdx tdx;
    ChLoop *loop;
    ChWorkerPool *pool;
    ChHands *hands;
    ChFdWatch *hands_death;
    ChGhostRecords *records;
    ChKubeClient *kube;
    ChDaemonSockets *daemon_sockets;
    ChRecorder *recorder;
    ChCounter *syncs;
    ChGuestPanics *panics;
    ChHotplug *hotplug;
    ChClusterWatch *cluster;
    ChInformer *vmis;
    ChPluginWatch *plugins;
    ChDomainStore *domains;
    ChDomainWatch *domain_watch;
    ChLauncherSeamData launcher_seam;
    ChControllerSeamData controller_seam;
    ChLauncherClients *clients;
    ChLauncherMetrics *metrics_source;
    ChDownwardMetrics *metrics;
    ChController *controller;
    ChSignal *signals[4];
    ChTimer *flush_timer;  /* when the agent ends */
    bool is_running;       /* the controller was started */
    atomic_bool is_ending; /* workers look at it */
    int exit_status;
} Agent;

static const ChLogContext vm_context = {.controller = "vm"};

/* Ends the process as an uncaught panic of the original does: the reason on stderr, status 2. */
static int
panic(const char *message)
{
    fprintf(stderr, "panic: %s\n", message);
    return EXIT_PANIC;
}

/* --- what the watches bring */

static void
start_when_synced(Agent *agent)
{
    if (agent->is_running || agent->is_ending || !ch_informer_has_synced(agent->vmis) ||
        !ch_cluster_watch_has_synced(agent->cluster) || !ch_plugin_watch_is_ready(agent->plugins))
        return;
    agent->is_running = true;
    CH_CRASH_POINT("main/synced");
    ch_daemon_sockets_start(agent->daemon_sockets);
    ch_log_info(&vm_context, "Starting virt-handler vms controller.");
    ch_controller_start(agent->controller);
}

static void
on_vmi_add(gpointer data, ChObject *vmi)
{
    ch_controller_vmi_changed(((Agent *)data)->controller, vmi);
}

static void
on_vmi_update(gpointer data, ChObject *old_vmi, ChObject *vmi)
{
    ch_controller_vmi_changed(((Agent *)data)->controller, vmi);
}

static void
on_vmi_delete(gpointer data, ChObject *last)
{
    ch_controller_vmi_deleted(((Agent *)data)->controller, last);
}

static void
on_informer_synced(gpointer data)
{
    start_when_synced(data);
}

static const ChInformerHandlers vmi_handlers = {
    on_vmi_add, on_vmi_update, on_vmi_delete, on_informer_synced};

static void
install_profile(gpointer data)
{
    g_autofree char *kubelet_root = data;
    g_autoptr(GError) error = NULL;

    if (ch_seccomp_profile_install(kubelet_root, &error))
        ch_log_info(NULL, "Kubevirt Seccomp profile was installed at %s", kubelet_root);
    else
        ch_log_error(NULL, error, "Failed to install Kubevirt Seccomp profile");
}

/* By a worker, since it takes files. Spec 05 §12.1 */
static void
configure_profile(const Agent *agent, const ChClusterConfig *config)
{
    if (ch_cluster_config_has_gate(config, "KubevirtSeccompProfile"))
        ch_worker_pool_run(
            agent->pool, install_profile, g_strdup(agent->flags->kubelet_root), g_free);
    else
        ch_log_info(NULL, "Kubevirt Seccomp profile is not enabled");
}

/* Takes effect at once; what waits for the old bucket goes on waiting for it. */
static void
apply_config(gpointer data, ChClusterConfig *config)
{
    Agent *agent = data;

    ch_log_set_verbosity(config->verbosity);
    ch_log_info(NULL, "set verbosity to %d", config->verbosity);
    ch_plugin_watch_configure(agent->plugins, config);
    configure_profile(agent, config);
    ch_daemon_sockets_configure(agent->daemon_sockets,
                                ch_cluster_config_has_persistent_reservation(config));
    ch_tdx_configure(&agent->tdx, ch_cluster_config_has_gate(config, "WorkloadEncryptionTDX"));
    ch_kube_client_set_rate(agent->kube, config->qps, config->burst);
    ch_log_info(NULL, "setting rate limiter to %g QPS and %u Burst", config->qps, config->burst);
    start_when_synced(agent); /* nobody waits for plugins any more, perhaps */
}

static void
on_domain_change(gpointer data, const char *key)
{
    Agent *agent = data;
    const ChKnownDomain *domain = ch_domain_store_lookup(agent->domains, key);

    if (domain != NULL)
        ch_controller_domain_seen(agent->controller, key, domain->uid, domain->status);
    ch_controller_enqueue(agent->controller, key);
}

static const char *
on_launcher_event(gpointer data, const ChLauncherEvent *event)
{
    const Agent *agent = data;

    return ch_events_tell_for_launcher(agent->recorder, agent->vmis, event);
}

static void
on_notify_server_failure(gpointer data, const char *message)
{
    ch_events_tell_notify_failure(((Agent *)data)->recorder, message);
}

static void
agent_end(Agent *agent, int status)
{
    agent->is_ending = true;
    agent->exit_status = MAX(agent->exit_status, status);
    ch_loop_stop(agent->loop);
}

static void
on_fatal(gpointer data, const char *message)
{
    agent_end(data, panic(message));
}

static const ChDomainWatchHandlers domain_handlers = {
    .on_event = on_launcher_event,
    .on_server_failure = on_notify_server_failure,
    .on_fatal = on_fatal,
};

/* --- the node and the end */

static void
on_unschedulable(gpointer data, GBytes *body, const GError *error)
{
    if (error != NULL)
        ch_log_error(NULL, error, "Unable to mark node as unschedulable");
}

static void
end_well(gpointer data)
{
    agent_end(data, EXIT_SUCCESS);
}

/* What happened last shall not be untold; but nobody waits long for an API server. */
static void
flush_and_end(gpointer data)
{
    Agent *agent = data;

    agent->flush_timer = ch_timer_new(agent->loop, end_well, agent);
    ch_timer_arm(agent->flush_timer, FLUSH_US);
    ch_recorder_flush(agent->recorder, end_well, agent);
}

static void
leave_node(Agent *agent)
{
    ch_daemon_sockets_stop(agent->daemon_sockets, flush_and_end, agent);
}

static void
on_farewell(gpointer data, GBytes *body, const GError *error)
{
    on_unschedulable(data, body, error);
    CH_CRASH_POINT("main/farewell");
    leave_node(data);
}

static const struct {
    int signo;
    const char *name;
} end_signals[] = {
    {SIGTERM, "terminated"},
    {SIGINT, "interrupt"},
    {SIGHUP, "hangup"},
    {SIGQUIT, "quit"},
};

/* SIGTERM tells the cluster first; the others only end. VMs are not touched. Spec 08 §4 */
static void
on_signal(int signo, gpointer data)
{
    Agent *agent = data;
    const char *name = "";

    if (agent->is_ending)
        return;
    agent->is_ending = true;
    for (gsize i = 0; i < G_N_ELEMENTS(end_signals); i++)
        name = end_signals[i].signo == signo ? end_signals[i].name : name;
    ch_log_info(NULL, "Received signal %s, initiating graceful shutdown", name);
    ch_log_info(NULL, "cleanly exiting with reason: migration proxy cleanly shutdown");
    ch_log_info(&vm_context, "Stopping virt-handler vms controller.");
    ch_controller_stop(agent->controller);
    CH_CRASH_POINT("main/signalled");
    if (signo == SIGTERM)
        ch_node_label_unschedulable(agent->kube, agent->node_name, on_farewell, agent);
    else
        leave_node(agent);
}

static void
on_hands_death(int fd, short what, gpointer data)
{
    agent_end(data, panic(HANDS_ENDED));
}

/* The same, seen first by a thread that asks them: its pass must not go on, and tell the world of
 * faults that the VM does not have. */
static void
on_hands_end(void)
{
    _exit(panic(HANDS_ENDED)); /* all that is on disk is whole */
}

/* --- set-up */

static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        ch_log_warning(NULL, NULL, "ignoring that the limit of open files could not be raised");
}

/* Spec 05 §4: in a container that is not told the node's processes, the node is what the parent
 * sees. */
static ChHands *
start_hands(const Agent *agent, GError **error)
{
    const ChHandsPlaces places = {
        .pods_dir = PODS_DIR,
        .private_dir = agent->flags->kubevirt_private_dir,
        .node_pods_dir = agent->flags->kubelet_pods_dir,
        .node_pid = g_strcmp0(g_getenv("VIRT_IN_CONTAINER"), "true") == 0 ? getppid() : 1,
    };

    return ch_hands_start(NULL, &places, error);
}

/* Files, records, the API client's configuration: what a restart will not mend. */
static bool
agent_load(Agent *agent, GError **error)
{
    const ChFlags *flags = agent->flags;
    g_autoptr(ChKubeConfig) kube_config = NULL;
    ChSelinuxMode selinux;
    int result;

    agent->node_name = g_strdup(flags->hostname_override[0] != '\0' ? flags->hostname_override
                                                                    : g_get_host_name());
    if (flags->pod_ip_address[0] == '\0')
        return ch_fail(error, CH_ERROR_INVALID, "no pod ip detected");
    if (flags->domain_resync_period_seconds <= 0)
        return ch_fail(error, CH_ERROR_INVALID, "--domain-resync-period-seconds must be positive");
    if (flags->watchdog_timeout_us < 0)
        return ch_fail(error, CH_ERROR_INVALID, "--watchdog-timeout must not be negative");
    if (agent->node_name[0] == '\0' || !ch_label_value_is_valid(agent->node_name))
        return ch_fail(
            error, CH_ERROR_INVALID, "node name '%s' cannot be a label's value", agent->node_name);
    ch_log_verbose(1, NULL, "hostname %s", agent->node_name);
    agent->own_namespace = ch_own_namespace_load(NAMESPACE_FILE, error);
    if (agent->own_namespace == NULL) {
        g_prefix_error(error, "Error searching for namespace: ");
        return false;
    }
    kube_config = ch_kube_config_load(flags->kubeconfig, flags->master, error);
    if (kube_config == NULL)
        return false;
    /* While there is one thread. From here on only the hands have privilege. */
    agent->hands = start_hands(agent, error);
    if (agent->hands == NULL)
        return false;
    selinux = ch_selinux_mode(HOST_ROOT, CH_SELINUX_OWN_LABEL); /* while it can be looked at */
    if (selinux == CH_SELINUX_UNKNOWN)
        return ch_fail(error, CH_ERROR_FAILED, "cannot tell whether the node has SELinux");
    if (!ch_device_labels_set(HOST_ROOT, ch_device_labels_paths, selinux, error))
        return false;
    ch_tdx_look(&agent->tdx, HOST_ROOT);
    (void)ch_shared_mounts_check(HOST_ROOT, HOST_MOUNTS, flags->kubelet_pods_dir);
    ch_hands_on_end(agent->hands, on_hands_end);
    result = ch_capabilities_keep(NULL, 0);
    if (result < 0)
        return ch_fail_errno(error, -result, "give up capabilities");
    CH_CRASH_POINT("main/hands");
    agent->records = ch_ghost_records_load(flags->kubevirt_private_dir, error);
    if (agent->records == NULL)
        return false;
    if (!ch_node_facts_load(&agent->facts, error))
        return false;
    agent->facts.has_selinux = selinux != CH_SELINUX_ABSENT;
    agent->loop = ch_loop_new();
    agent->kube = ch_kube_client_new(agent->loop, kube_config, error);
    return agent->kube != NULL;
}

static void
agent_build_watches(Agent *agent)
{
    const ChFlags *flags = agent->flags;
    g_autofree char *selector = g_strdup_printf("kubevirt.io/nodeName in (%s)", agent->node_name);
    int64_t resync_us = (int64_t)(12 * 3600 * (1 + g_random_double())) * CH_SECOND_US;

    agent->domains = ch_domain_store_new(on_domain_change, agent);
    agent->domain_watch = ch_domain_watch_new(
        agent->loop,
        agent->pool,
        agent->hands,
        agent->records,
        agent->domains,
        &(ChDomainWatchSpec){.share_dir = flags->kubevirt_share_dir,
                             .watchdog_us = flags->watchdog_timeout_us,
                             .resync_us = flags->domain_resync_period_seconds * CH_SECOND_US},
        &domain_handlers,
        agent);
    agent->vmis =
        ch_informer_new(agent->kube,
                        &(ChInformerSpec){.name = VMI_INFORMER,
                                          .path = "/apis/kubevirt.io/v1/virtualmachineinstances",
                                          .api_version = "kubevirt.io/v1",
                                          .kind = "VirtualMachineInstance",
                                          .label_selector = selector,
                                          .resync_us = resync_us},
                        &vmi_handlers,
                        agent);
    agent->plugins = ch_plugin_watch_new(agent->kube, resync_us, on_informer_synced, agent);
    agent->cluster = ch_cluster_watch_new(
        agent->kube, agent->own_namespace, agent->node_name, resync_us, on_informer_synced, agent);
    ch_cluster_watch_subscribe(agent->cluster, apply_config, agent);
}

static void
agent_build(Agent *agent)
{
    agent->pool = ch_worker_pool_new(MIN_WORKERS, MAX_WORKERS);
    agent->daemon_sockets = ch_daemon_sockets_new(agent->loop, agent->pool, agent->hands);
    agent->recorder = ch_recorder_new(agent->kube, "virt-handler", agent->node_name);
    agent->syncs = ch_controller_sync_counter_new();
    agent->panics = ch_guest_panics_new();
    agent->hotplug = ch_hotplug_new(agent->hands,
                                    agent->flags->kubevirt_private_dir,
                                    agent->flags->kubelet_pods_dir,
                                    agent->node_name);
    agent_build_watches(agent);
    agent->launcher_seam = (ChLauncherSeamData){
        agent->loop, agent->hands, agent->records, agent->domain_watch, &agent->is_ending};
    agent->clients = ch_launcher_clients_new(
        agent->loop, g_getenv("NODE_NAME"), &ch_launcher_seam, &agent->launcher_seam);
    agent->metrics_source =
        ch_launcher_metrics_new(agent->loop, agent->clients, agent->hands, agent->node_name);
    agent->metrics = ch_downward_metrics_new(
        agent->loop, agent->pool, &ch_launcher_metrics_seam, agent->metrics_source);
    agent->controller_seam =
        (ChControllerSeamData){agent->vmis, agent->domains, agent->cluster, agent->plugins};
    agent->controller = ch_controller_new(&(ChReconcileEnv){
        .loop = agent->loop,
        .pool = agent->pool,
        .kube = agent->kube,
        .recorder = agent->recorder,
        .clients = agent->clients,
        .hands = agent->hands,
        .records = agent->records,
        .panics = agent->panics,
        .hotplug = agent->hotplug,
        .metrics = agent->metrics,
        .syncs = agent->syncs,
        .capabilities = agent->facts.capabilities,
        .node_name = agent->node_name,
        .architecture = agent->facts.architecture,
        .cpu_model = agent->facts.cpu_model,
        .selinux_context = agent->facts.has_selinux ? NULL : "none",
        .private_dir = agent->flags->kubevirt_private_dir,
        .pods_dir = agent->flags->kubelet_pods_dir,
        .own_ip = g_getenv("MY_POD_IP"),
        .seam = ch_controller_seam,
        .seam_data = &agent->controller_seam,
    });
    agent->hands_death = ch_fd_watch_new(
        agent->loop, ch_hands_peek_death_fd(agent->hands), EV_READ, on_hands_death, agent);
    for (gsize i = 0; i < G_N_ELEMENTS(end_signals); i++)
        agent->signals[i] = ch_signal_new(agent->loop, end_signals[i].signo, on_signal, agent);
}

/* In the reverse order; the pool first, since its jobs use all the rest. */
static void
agent_clear(Agent *agent)
{
    for (gsize i = 0; i < G_N_ELEMENTS(agent->signals); i++)
        ch_signal_free(agent->signals[i]);
    ch_timer_free(agent->flush_timer);
    ch_fd_watch_free(agent->hands_death);
    ch_worker_pool_free(agent->pool);
    ch_informer_free(agent->vmis);
    ch_cluster_watch_free(agent->cluster);
    ch_plugin_watch_free(agent->plugins);
    ch_controller_free(agent->controller);
    ch_downward_metrics_free(agent->metrics);
    ch_launcher_metrics_free(agent->metrics_source);
    ch_guest_panics_free(agent->panics);
    ch_hotplug_free(agent->hotplug);
    ch_counter_free(agent->syncs);
    ch_launcher_clients_free(agent->clients);
    ch_domain_watch_free(agent->domain_watch);
    ch_domain_store_free(agent->domains);
    ch_daemon_sockets_free(agent->daemon_sockets);
    ch_recorder_free(agent->recorder);
    ch_kube_client_free(agent->kube);
    ch_loop_free(agent->loop);
    ch_node_facts_clear(&agent->facts);
    ch_tdx_clear(&agent->tdx);
    ch_ghost_records_free(agent->records);
    ch_hands_stop(agent->hands);
    g_free(agent->node_name);
    g_free(agent->own_namespace);
    ch_flags_free(agent->flags);
}

static void
name_flags_not_built(const ChFlags *flags)
{
    for (guint i = 0; i < flags->not_built->len; i++)
        ch_log_warning(NULL,
                       NULL,
                       "ignoring flag --%s: what it configures is not part of this agent yet",
                       (const char *)flags->not_built->pdata[i]);
}

static void
agent_run(Agent *agent)
{
    agent_build(agent);
    name_flags_not_built(agent->flags);
    if (geteuid() != 0)
        ch_log_warning(
            NULL, NULL, "ignoring that this is not root: most pods will be out of reach");
    ch_node_label_unschedulable(agent->kube, agent->node_name, on_unschedulable, agent);
    ch_domain_watch_start(agent->domain_watch);
    ch_cluster_watch_start(agent->cluster);
    ch_log_info(NULL, "STARTING informer %s", VMI_INFORMER);
    ch_informer_start(agent->vmis);
    ch_loop_run(agent->loop);
    if (ch_worker_pool_n_busy(agent->pool) > 0)
        _exit(agent->exit_status); /* a worker waits for somebody; all that is on disk is whole */
}

/* Returns: the exit status */
static int
explain_flags(const char *program, ChFlagsOutcome outcome, const GError *error)
{
    g_autofree char *usage = ch_flags_usage(program);

    fputs(usage, stderr);
    if (outcome == CH_FLAGS_HELP)
        return EXIT_SUCCESS;
    fprintf(stderr, "%s\n", error->message);
    return EXIT_PANIC;
}

int
main(int argc, char **argv)
{
    Agent agent = {0};
    g_autoptr(GError) error = NULL;
    ChFlagsOutcome outcome;

    mallopt(M_ARENA_MAX, 2); /* each further arena keeps memory of threads that are idle */
    ch_log_init("virt-handler");
    outcome = ch_flags_parse((const char *const *)argv, &agent.flags, &error);
    if (outcome != CH_FLAGS_OK)
        return explain_flags(argv[0], outcome, error);
    ch_log_set_verbosity(agent.flags->verbosity);
    raise_descriptor_limit();
    if (agent_load(&agent, &error))
        agent_run(&agent);
    else
        agent.exit_status = panic(error->message);
    agent_clear(&agent);
    return agent.exit_status;
}
