/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/launcher.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "local/launcher/cmd-server.h"
#include "local/launcher/dhcp-server.h"
#include "local/launcher/libvirtd.h"
#include "local/launcher/life.h"
#include "local/launcher/notifier.h"
#include "local/launcher/qemu-watch.h"
#include "local/launcher/xml.h"

#define CONNECT_LIMIT_US (15 * CH_SECOND_US)
#define CONNECT_RETRY_US (50 * CH_MS_US)
#define CHECK_US         (10 * CH_SECOND_US)
#define CHECK_LIMIT_US   (30 * CH_SECOND_US)
#define TICK_US          CH_SECOND_US

#define STATUS_FAILED 2

typedef struct {
    const ChLauncherOptions *options;
    ChPaths paths;
    char *empty_disk_dir;
    char *domain_name;
    char *init_socket;
    char *socket;

    ChLoop *loop;
    ChLibvirtd *libvirtd;
    ChMetadata *metadata;
    ChGuestStore *guest;
    ChReporter reporter;
    ChDhcpServer *dhcp;
    ChVirt *virt;
    ChNotifier *notifier;
    ChManager *manager;
    ChCmdServer *server;
    ChAgentPoller *poller;
    ChWorker *checker; /* opens a lost connection anew */
    ChWorker *killer;  /* ends the guest, past every call of the agent */
    ChQemuWatch *qemu;
    ChTimer *tick;
    ChTimer *check;
    ChSignal *signals[4];

    /* Loop thread only. */
    ChLife life;
    ChLifeFacts facts;
    int64_t connect_deadline_us;
    bool is_checking;
    bool is_killing; /* libvirt was asked before */
    bool is_ready;
    bool is_failed;
} Launcher;

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

static void
on_notifier_ended(gpointer data)
{
    Launcher *launcher = data;

    ch_loop_stop(launcher->loop);
}

static void
on_stopped(gpointer data)
{
    Launcher *launcher = data;

    ch_notifier_end(launcher->notifier, on_notifier_ended, launcher);
}

static void
kill_domain(gpointer data)
{
    const Launcher *launcher = data;
    const ChManagerRequest request = {.name = launcher->domain_name};
    g_autoptr(GError) error = NULL;

    if (!ch_manager_kill(launcher->manager, &request, &error))
        ch_log_warning(NULL, error, "Could not destroy the domain.");
}

/* Once a second while QEMU lives. From the second time on libvirt has failed or takes long. */
static void
kill_guest(Launcher *launcher)
{
    if (launcher->is_killing)
        ch_qemu_watch_terminate(launcher->qemu);
    launcher->is_killing = true;
    ch_worker_push(launcher->killer, kill_domain, launcher, NULL); /* one that hangs suffices */
}

/* Looks at the facts and does what they ask for. */
static void
step(Launcher *launcher)
{
    ChLifeFacts *facts = &launcher->facts;

    facts->has_pid = facts->has_domain && ch_qemu_watch_look(launcher->qemu);
    facts->is_running = ch_qemu_watch_is_running(launcher->qemu);
    switch (ch_life_step(&launcher->life, facts, ch_time_now_us())) {
    case CH_LIFE_NOTHING:
        break;
    case CH_LIFE_MARK:
        ch_log_info(NULL, "A signal came: the agent is asked to shut the guest down.");
        ch_metadata_mark_graceful(launcher->metadata);
        break;
    case CH_LIFE_KILL:
        ch_log_info(NULL, "Grace period expired, killing the guest.");
        kill_guest(launcher);
        break;
    case CH_LIFE_EXIT:
        if (launcher->life.exit_status != 0)
            ch_log_error(NULL, NULL, "timed out waiting for domain to be defined");
        ch_log_info(NULL, "Exiting...");
        ch_timer_disarm(launcher->tick);
        ch_cmd_server_stop(launcher->server, on_stopped, launcher);
        return;
    }
    if (launcher->life.phase != CH_LIFE_ENDED)
        ch_timer_arm(launcher->tick, TICK_US);
}

static void
on_tick(gpointer data)
{
    step(data);
}

static void
on_signal(int signo, gpointer data)
{
    Launcher *launcher = data;

    if (launcher->facts.is_stop_requested)
        return;
    ch_log_info(NULL, "Received signal %s.", g_strsignal(signo));
    launcher->facts.is_stop_requested = true;
    step(launcher);
}

static void
on_progress(gpointer data, ChNotifierProgress progress)
{
    Launcher *launcher = data;

    launcher->facts.n_events = progress.n_events;
    launcher->facts.is_deletion_sent = progress.is_deletion_sent;
    step(launcher);
}

typedef struct {
    Launcher *launcher;
    ChVirtEvent event;
} Passed;

static void
on_virt_event_on_loop(gpointer data)
{
    const Passed *passed = data;
    Launcher *launcher = passed->launcher;

    ch_agent_poller_note(launcher->poller, passed->event);
    if (passed->event != CH_VIRT_RECONNECTED)
        launcher->facts.has_domain = true;
    step(launcher);
}

/* On libvirt's thread: to the agent, and to the loop. */
static void
on_virt_event(gpointer data, ChVirtEvent event)
{
    Launcher *launcher = data;
    Passed *passed = g_new(Passed, 1);

    if (event == CH_VIRT_RECONNECTED)
        ch_notifier_tell_change(launcher->notifier);
    else
        ch_notifier_tell_domain(launcher->notifier, event == CH_VIRT_DEFINED);
    *passed = (Passed){launcher, event};
    ch_loop_post(launcher->loop, on_virt_event_on_loop, passed, g_free);
}

static void
on_change(gpointer data)
{
    Launcher *launcher = data;

    ch_notifier_tell_change(launcher->notifier);
}

/* The agent connects as soon as the socket has its final name. */
static bool
become_ready(Launcher *launcher, GError **error)
{
    if (!ch_cmd_server_listen(launcher->server, launcher->init_socket, error))
        return false;
    if (g_rename(launcher->init_socket, launcher->socket) < 0)
        return ch_fail_errno(error, errno, "rename '%s'", launcher->init_socket);
    ch_log_info(NULL, "Marked as ready");
    launcher->is_ready = true;
    return true;
}

static void
give_up(Launcher *launcher, const GError *error)
{
    ch_log_error(NULL, error, "The launcher does not start.");
    launcher->is_failed = true;
    ch_loop_stop(launcher->loop);
}

/* The outcome of a look at the connection, on its way to the loop. */
typedef struct {
    Launcher *launcher;
    GError *error; /* (nullable): owned */
} Check;

static void
check_free(gpointer data)
{
    Check *check = data;

    g_clear_error(&check->error);
    g_free(check);
}

static void
on_checked(gpointer data)
{
    const Check *check = data;
    Launcher *launcher = check->launcher;
    g_autoptr(GError) error = NULL;

    launcher->is_checking = false;
    if (check->error == NULL && !launcher->is_ready && !become_ready(launcher, &error))
        give_up(launcher, error);
    else if (launcher->is_ready)
        ch_timer_arm(launcher->check, CHECK_US);
    else if (ch_time_now_us() < launcher->connect_deadline_us)
        ch_timer_arm(launcher->check, CONNECT_RETRY_US);
    else
        give_up(launcher, check->error);
}

static void
check_connection(gpointer data)
{
    Launcher *launcher = data;
    Check *check = g_new0(Check, 1);

    check->launcher = launcher;
    ch_virt_check(launcher->virt, &check->error);
    ch_loop_post(launcher->loop, on_checked, check, check_free);
}

/* Until the launcher is ready every 50 ms, then every 10 s: an idle launcher hears no errors. A
 * daemon that takes a connection and never answers would hold every worker for ever. */
static void
on_check(gpointer data)
{
    Launcher *launcher = data;

    ch_timer_arm(launcher->check, CHECK_LIMIT_US);
    if (launcher->is_checking) {
        ch_log_warning(NULL, NULL, "libvirtd does not answer, killing it.");
        ch_libvirtd_kill(launcher->libvirtd);
        return;
    }
    launcher->is_checking = ch_worker_push(launcher->checker, check_connection, launcher, NULL);
}

static bool
make_directories(const Launcher *launcher, GError **error)
{
    const ChLauncherOptions *options = launcher->options;
    const struct {
        const char *parent;
        const char *name;
        int mode;
    } dirs[] = {
        {options->private_dir, options->uid, 0755},
        {options->private_dir, "downwardapi-disks", 0750},
        {options->private_dir, "downwardmetrics-channel", 0750},
        {options->ephemeral_dir, "cloud-init-data", 0755},
        {options->ephemeral_dir, "disk-data", 0755},
        {options->container_disk_dir, "", 0750},
        {launcher->empty_disk_dir, "", 0755},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *path = g_build_filename(dirs[i].parent, dirs[i].name, NULL);

        if (g_mkdir_with_parents(path, dirs[i].mode) < 0)
            return ch_fail_errno(error, errno, "create directory '%s'", path);
    }
    return true;
}

static void
init_names(Launcher *launcher)
{
    const ChLauncherOptions *options = launcher->options;

    launcher->domain_name = ch_domain_name(options->namespace_, options->name);
    launcher->init_socket =
        g_build_filename(options->share_dir, "sockets", "launcher-init-sock", NULL);
    launcher->socket = g_build_filename(options->share_dir, "sockets", "launcher-sock", NULL);
    launcher->empty_disk_dir =
        g_build_filename(g_get_user_runtime_dir(), "libvirt", "empty-disks", NULL);
    launcher->paths = (ChPaths){
        .private_dir = options->private_dir,
        .ephemeral_dir = options->ephemeral_dir,
        .container_disk_dir = options->container_disk_dir,
        .empty_disk_dir = launcher->empty_disk_dir,
        .hotplug_dir = options->hotplug_disk_dir,
    };
}

static void
make_parts(Launcher *launcher, bool is_emulated)
{
    const ChLauncherOptions *options = launcher->options;
    g_autofree char *uri = ch_libvirtd_uri();
    g_autofree char *pid_path = ch_libvirtd_pid_path(launcher->domain_name);
    g_autofree char *pipe = g_build_filename(options->share_dir, "domain-notify-pipe.sock", NULL);

    launcher->metadata = ch_metadata_new(on_change, launcher);
    launcher->guest = ch_guest_store_new();
    launcher->virt = ch_virt_new(uri, on_virt_event, launcher);
    launcher->reporter = (ChReporter){
        .virt = launcher->virt,
        .metadata = launcher->metadata,
        .guest = launcher->guest,
        .name = options->name,
        .namespace_ = options->namespace_,
        .uid = options->uid,
        .domain_name = launcher->domain_name,
    };
    launcher->notifier =
        ch_notifier_new(launcher->loop, pipe, &launcher->reporter, on_progress, launcher);
    launcher->dhcp = ch_dhcp_server_new(launcher->loop);
    launcher->manager = ch_manager_new(&(ChManagerConfig){.virt = launcher->virt,
                                                          .metadata = launcher->metadata,
                                                          .domain_name = launcher->domain_name,
                                                          .paths = launcher->paths,
                                                          .dhcp = launcher->dhcp,
                                                          .is_emulated = is_emulated});
    launcher->server = ch_cmd_server_new(launcher->loop, launcher->manager, &launcher->reporter);
    launcher->poller = ch_agent_poller_new(&(ChAgentPollerConfig){
        .loop = launcher->loop,
        .virt = launcher->virt,
        .store = launcher->guest,
        .domain_name = launcher->domain_name,
        .periods = options->agent,
        .on_change = on_change,
        .data = launcher,
    });
    launcher->checker = ch_worker_new("virt-check", 1);
    launcher->killer = ch_worker_new("virt-kill", 1);
    launcher->qemu = ch_qemu_watch_new(launcher->loop, pid_path, on_tick, launcher);
    launcher->tick = ch_timer_new(launcher->loop, on_tick, launcher);
    launcher->check = ch_timer_new(launcher->loop, on_check, launcher);
    for (gsize i = 0; i < G_N_ELEMENTS(stop_signals); i++)
        launcher->signals[i] = ch_signal_new(launcher->loop, stop_signals[i], on_signal, launcher);
}

static bool
start(Launcher *launcher, bool is_emulated, GError **error)
{
    const ChLauncherOptions *options = launcher->options;

    if (!make_directories(launcher, error))
        return false;
    launcher->libvirtd = ch_libvirtd_start(launcher->loop, error);
    if (launcher->libvirtd == NULL)
        return false;
    make_parts(launcher, is_emulated);
    ch_virt_start(launcher->virt);
    ch_life_init(&launcher->life, options->qemu_timeout_us, options->grace_us, ch_time_now_us());
    ch_timer_arm(launcher->tick, TICK_US);
    launcher->connect_deadline_us = ch_time_now_us() + CONNECT_LIMIT_US;
    ch_timer_arm(launcher->check, 0);
    return true;
}

/* The daemon first: calls that wait for it then fail, so that no worker is waited for in vain. */
static void
clear(Launcher *launcher)
{
    g_clear_pointer(&launcher->libvirtd, ch_libvirtd_stop);
    for (gsize i = 0; i < G_N_ELEMENTS(stop_signals); i++)
        ch_signal_free(launcher->signals[i]);
    ch_worker_free(launcher->checker);
    ch_worker_free(launcher->killer);
    ch_agent_poller_free(launcher->poller);
    ch_cmd_server_free(launcher->server);
    ch_virt_stop(launcher->virt);         /* its events go to the notifier, */
    ch_notifier_free(launcher->notifier); /* whose worker reads the domain */
    ch_virt_free(launcher->virt);
    ch_manager_free(launcher->manager);
    ch_dhcp_server_free(launcher->dhcp);
    ch_qemu_watch_free(launcher->qemu);
    ch_timer_free(launcher->tick);
    ch_timer_free(launcher->check);
    ch_guest_store_free(launcher->guest);
    ch_metadata_free(launcher->metadata);
    ch_loop_free(launcher->loop);
    g_free(launcher->domain_name);
    g_free(launcher->init_socket);
    g_free(launcher->socket);
    g_free(launcher->empty_disk_dir);
}

int
ch_launcher_run(const ChLauncherOptions *options, bool is_emulated)
{
    Launcher launcher = {.options = options};
    g_autoptr(GError) error = NULL;

    ch_xml_init();
    init_names(&launcher);
    launcher.loop = ch_loop_new();
    if (start(&launcher, is_emulated, &error))
        ch_loop_run(launcher.loop);
    else
        give_up(&launcher, error);
    const int status = launcher.is_failed ? STATUS_FAILED : launcher.life.exit_status;
    clear(&launcher);
    return status;
}
