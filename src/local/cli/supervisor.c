/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "local/cli/child.h"
#include "local/cli/lock.h"
#include "local/cli/node-network.h"

#define STOP_LIMIT_US  (10 * CH_SECOND_US)
#define MAX_TAIL_BYTES 4096
#define LOCK_CHECK_US  (5 * CH_SECOND_US)

typedef enum { APISERVER, BOOTSTRAP, PODRUNNER, AGENT, N_CHILDREN } Role;

static const char *const names[N_CHILDREN] = {
    [APISERVER] = "chandler-apiserver",
    [BOOTSTRAP] = "bootstrap",
    [PODRUNNER] = "chandler-podrunner",
    [AGENT] = "virt-handler",
};

typedef struct {
    const ChSupervisorSpec *spec;
    ChLoop *loop;
    ChChild *children[N_CHILDREN];
    ChChild *ending; /* the one that is being stopped */
    ChSignal *signals[2];
    ChTimer *lock_check;
    int lock_fd;
    GError *failure; /* of the start */
    bool is_up, is_stopping;
} Supervisor;

/* --- the programs ----------------------------------------------------------------------------- */

static void
add(GPtrArray *argv, const char *text)
{
    g_ptr_array_add(argv, g_strdup(text));
}

static void
add_path(GPtrArray *argv, const char *flag, const ChCli *cli, const char *name)
{
    add(argv, flag);
    g_ptr_array_add(argv, ch_cli_path(cli, name));
}

static bool
add_program(GPtrArray *argv, const char *name, GError **error)
{
    char *path = ch_cli_find_program(name, error);

    if (path != NULL)
        g_ptr_array_add(argv, path);
    return path != NULL;
}

static bool
add_apiserver(const ChSupervisorSpec *spec, GPtrArray *argv, GError **error)
{
    if (!add_program(argv, names[APISERVER], error))
        return false;
    add_path(argv, "--state", spec->cli, "apiserver");
    add_path(argv, "--kubeconfig", spec->cli, "kubeconfig");
    add(argv, "--port");
    g_ptr_array_add(argv, g_strdup_printf("%d", spec->port));
    return true;
}

static void
add_self(const ChSupervisorSpec *spec, GPtrArray *argv, const char *command)
{
    add(argv, "/proc/self/exe");
    add(argv, command);
    add(argv, "--state");
    add(argv, spec->cli->state_dir);
}

/* What `up` has made for pods. */
static void
add_network(const ChSupervisorSpec *spec, GPtrArray *argv)
{
    g_auto(ChNodeNetwork) network = {0};

    if (!ch_node_network_load(spec->cli, &network) || network.bridge == NULL) {
        add(argv, "--no-network");
        add(argv, network.reason != NULL ? network.reason : "see what 'chandler up' says");
        return;
    }
    add(argv, "--bridge");
    add(argv, network.bridge);
    for (gsize i = 0; network.subnets[i] != NULL; i++) {
        add(argv, "--subnet");
        add(argv, network.subnets[i]);
    }
    add(argv, "--mtu");
    g_ptr_array_add(argv, g_strdup_printf("%u", network.mtu));
}

static bool
add_podrunner(const ChSupervisorSpec *spec, GPtrArray *argv, GError **error)
{
    if (!add_program(argv, names[PODRUNNER], error))
        return false;
    add_path(argv, "--state", spec->cli, "podrunner");
    add_path(argv, "--images", spec->cli, "images");
    add_path(argv, "--kubeconfig", spec->cli, "kubeconfig");
    add(argv, "--launcher");
    if (!add_program(argv, "chandler-launcher", error))
        return false;
    add(argv, "--container-disk");
    if (!add_program(argv, "chandler-container-disk", error))
        return false;
    add_network(spec, argv);
    if (spec->is_emulated)
        add(argv, "--emulation");
    return true;
}

static bool
add_agent(const ChSupervisorSpec *spec, GPtrArray *argv, GError **error)
{
    add_self(spec, argv, "agent-root");
    add(argv, "--");
    if (!add_program(argv, names[AGENT], error))
        return false;
    add_path(argv, "--kubeconfig", spec->cli, "kubeconfig");
    add_path(argv, "--kubevirt-share-dir", spec->cli, "agent/share");
    add_path(argv, "--kubevirt-private-dir", spec->cli, "agent/private");
    add_path(argv, "--kubelet-pods-dir", spec->cli, CH_PODS_DIR);
    add(argv, "--hostname-override");
    add(argv, g_get_host_name());
    add(argv, "--pod-ip-address");
    add(argv, "127.0.0.1");
    return true;
}

/* (transfer full): NULL-terminated; NULL: a program is missing */
static char **
make_argv(const ChSupervisorSpec *spec, Role role, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    bool is_good = true;

    switch (role) {
    case APISERVER:
        is_good = add_apiserver(spec, argv, error);
        break;
    case BOOTSTRAP:
        add_self(spec, argv, "bootstrap");
        if (spec->is_emulated)
            add(argv, "--emulated");
        break;
    case PODRUNNER:
        is_good = add_podrunner(spec, argv, error);
        break;
    case AGENT:
        is_good = add_agent(spec, argv, error);
        break;
    case N_CHILDREN:
        break;
    }
    if (!is_good)
        return NULL;
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&argv), FALSE);
}

/* --- start ------------------------------------------------------------------------------------ */

static char *
log_path(const Supervisor *supervisor, Role role)
{
    g_autofree char *file = g_strconcat("log/", names[role], ".log", NULL);

    return ch_cli_path(supervisor->spec->cli, file);
}

/* (transfer full): the last line that a program wrote: its reason to end. */
static char *
last_words(const Supervisor *supervisor, Role role)
{
    g_autofree char *path = log_path(supervisor, role);
    g_autofree char *text = NULL;
    gsize length = 0;
    const char *line;

    if (!g_file_get_contents(path, &text, &length, NULL))
        return g_strdup("it said nothing");
    g_strchomp(text);
    length = strlen(text);
    line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    return g_utf8_make_valid(length > MAX_TAIL_BYTES && line < text + length - MAX_TAIL_BYTES
                                 ? text + length - MAX_TAIL_BYTES
                                 : line,
                             -1);
}

static void
answer(const Supervisor *supervisor, const char *text)
{
    g_autofree char *line = g_strconcat(text, "\n", NULL);

    if (supervisor->spec->ready_fd >= 0 &&
        write(supervisor->spec->ready_fd, line, strlen(line)) < 0)
        ch_log_warning(NULL, NULL, "ignoring that nobody waits for the start anymore");
}

static void stop_next(Supervisor *supervisor);

static void
fail_start(Supervisor *supervisor, GError *failure /* (transfer full) */)
{
    ch_log_error(NULL, failure, "The start failed.");
    if (supervisor->failure == NULL)
        supervisor->failure = failure;
    else
        g_error_free(failure);
    supervisor->is_stopping = true;
    stop_next(supervisor);
}

static bool
start_child(Supervisor *supervisor, Role role, const ChChildHandlers *handlers, GError **error)
{
    g_auto(GStrv) argv = make_argv(supervisor->spec, role, error);
    g_autofree char *path = log_path(supervisor, role);
    const ChChildSpec spec = {
        .name = names[role],
        .argv = argv,
        .log_path = path,
        .kind = role == BOOTSTRAP ? CH_CHILD_ONCE : CH_CHILD_FOREVER,
        .reports_readiness = role == APISERVER,
    };

    if (argv == NULL)
        return false;
    supervisor->children[role] = ch_child_new(supervisor->loop, &spec, handlers, supervisor, error);
    return supervisor->children[role] != NULL;
}

static void
on_stopped(gpointer data, int status)
{
    stop_next(data);
}

static const ChChildHandlers plain_handlers = {.on_end = on_stopped};

static void
on_bootstrap_end(gpointer data, int status)
{
    Supervisor *supervisor = data;
    GError *failure = NULL;

    if (supervisor->is_stopping) {
        stop_next(supervisor);
        return;
    }
    g_clear_pointer(&supervisor->children[BOOTSTRAP], ch_child_free);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        g_autofree char *words = last_words(supervisor, BOOTSTRAP);

        ch_fail(&failure, CH_ERROR_FAILED, "the first objects could not be stored: %s", words);
    } else if (start_child(supervisor, PODRUNNER, &plain_handlers, &failure) &&
               start_child(supervisor, AGENT, &plain_handlers, &failure)) {
        supervisor->is_up = true;
        ch_log_info(NULL, "Everything is started.");
        answer(supervisor, "ok");
        return;
    }
    fail_start(supervisor, failure);
}

static const ChChildHandlers bootstrap_handlers = {.on_end = on_bootstrap_end};

static void
on_apiserver_ready(gpointer data)
{
    Supervisor *supervisor = data;
    GError *failure = NULL;

    if (!supervisor->is_stopping &&
        !start_child(supervisor, BOOTSTRAP, &bootstrap_handlers, &failure))
        fail_start(supervisor, failure);
}

static void
on_apiserver_end(gpointer data, int status)
{
    Supervisor *supervisor = data;
    GError *failure = NULL;

    if (supervisor->is_stopping) {
        stop_next(supervisor);
        return;
    }
    g_autofree char *words = last_words(supervisor, APISERVER);
    g_clear_pointer(&supervisor->children[APISERVER], ch_child_free);
    ch_fail(&failure, CH_ERROR_FAILED, "%s", words);
    fail_start(supervisor, failure);
}

static const ChChildHandlers apiserver_handlers = {.on_ready = on_apiserver_ready,
                                                   .on_end = on_apiserver_end};

/* --- the end ---------------------------------------------------------------------------------- */

/* The one started last ends first. */
static void
stop_next(Supervisor *supervisor)
{
    static const Role order[] = {AGENT, PODRUNNER, BOOTSTRAP, APISERVER};

    g_clear_pointer(&supervisor->ending, ch_child_free);
    for (gsize i = 0; i < G_N_ELEMENTS(order); i++) {
        supervisor->ending = g_steal_pointer(&supervisor->children[order[i]]);
        if (supervisor->ending == NULL)
            continue;
        ch_child_stop(supervisor->ending, STOP_LIMIT_US);
        return;
    }
    ch_loop_stop(supervisor->loop);
}

static void
on_signal(int signo, gpointer data)
{
    Supervisor *supervisor = data;

    if (supervisor->is_stopping)
        return;
    supervisor->is_stopping = true;
    ch_log_info(NULL, "%s received, ending; pods go on", g_strsignal(signo));
    stop_next(supervisor);
}

/* Without its state directory nobody could find this process anymore to stop it, and it would keep
 * the port. */
static void
on_lock_check(gpointer data)
{
    Supervisor *supervisor = data;
    struct stat info;

    if (supervisor->is_stopping)
        return;
    if (fstat(supervisor->lock_fd, &info) == 0 && info.st_nlink == 0) {
        supervisor->is_stopping = true;
        ch_log_error(NULL, NULL, "the state directory was removed, ending");
        stop_next(supervisor);
        return;
    }
    ch_timer_arm(supervisor->lock_check, LOCK_CHECK_US);
}

bool
ch_supervisor_run(const ChSupervisorSpec *spec, GError **error)
{
    Supervisor supervisor = {.spec = spec};
    ch_autofd int lock_fd = ch_lock_take(spec->cli->state_dir, &supervisor.failure);

    if (lock_fd >= 0) {
        supervisor.loop = ch_loop_new();
        supervisor.signals[0] = ch_signal_new(supervisor.loop, SIGTERM, on_signal, &supervisor);
        supervisor.signals[1] = ch_signal_new(supervisor.loop, SIGINT, on_signal, &supervisor);
        supervisor.lock_fd = lock_fd;
        supervisor.lock_check = ch_timer_new(supervisor.loop, on_lock_check, &supervisor);
        ch_timer_arm(supervisor.lock_check, LOCK_CHECK_US);
        if (start_child(&supervisor, APISERVER, &apiserver_handlers, &supervisor.failure))
            ch_loop_run(supervisor.loop);
        ch_child_free(supervisor.ending);
        for (gsize i = 0; i < G_N_ELEMENTS(supervisor.children); i++)
            ch_child_free(supervisor.children[i]);
        ch_timer_free(supervisor.lock_check);
        ch_signal_free(supervisor.signals[0]);
        ch_signal_free(supervisor.signals[1]);
        ch_loop_free(supervisor.loop);
    }
    if (supervisor.failure == NULL)
        return true;
    if (!supervisor.is_up)
        answer(&supervisor, supervisor.failure->message);
    g_propagate_error(error, supervisor.failure);
    return false;
}
