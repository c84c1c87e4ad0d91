/* SPDX-License-Identifier: Apache-2.0 */

/* chandler-podrunner: flags, wiring, signals. */

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/linux/mount-space.h"
#include "local/podrunner/runner.h"

#define MIN_WORKERS   1
#define MAX_WORKERS   8
#define QPS           200
#define BURST         400
#define STOP_LIMIT_US (5 * CH_SECOND_US)
#define VERSION       "chandler/launcher:v1.9.0"

typedef struct {
    char *state_dir;
    char *images_dir;
    char *kubeconfig;
    char *launcher;
    char *holder;
    char *node_name;
    char *bridge;
    char **subnets;
    char *why_no_network;
    int mtu;
    gboolean is_emulated;
    int verbosity;
} Flags;

typedef struct {
    ChLoop *loop;
    ChWorkerPool *pool;
    ChKubeClient *kube;
    ChRecorder *recorder;
    ChRunner *runner;
    ChSignal *terminate, *interrupt;
    ChTimer *deadline; /* for the end */
    char *cache_dir;
    char *lease_dir;
    ChCniNetwork network;
    ChUses *uses;
    ChPassEnv env;
} Program;

static void
flags_clear(Flags *flags)
{
    g_free(flags->state_dir);
    g_free(flags->images_dir);
    g_free(flags->kubeconfig);
    g_free(flags->launcher);
    g_free(flags->holder);
    g_free(flags->node_name);
    g_free(flags->bridge);
    g_strfreev(flags->subnets);
    g_free(flags->why_no_network);
}

static bool
parse_flags(int argc, char **argv, Flags *flags, GError **error)
{
    /* clang-format off */
    const GOptionEntry entries[] = {
        {"state", 0, 0, G_OPTION_ARG_FILENAME, &flags->state_dir, "Where pods and their records are kept", "DIR"},
        {"images", 0, 0, G_OPTION_ARG_FILENAME, &flags->images_dir, "Where container images are (DIR/images)", "DIR"},
        {"kubeconfig", 0, 0, G_OPTION_ARG_FILENAME, &flags->kubeconfig, "The API server", "FILE"},
        {"launcher", 0, 0, G_OPTION_ARG_FILENAME, &flags->launcher, "The program chandler-launcher", "FILE"},
        {"container-disk", 0, 0, G_OPTION_ARG_FILENAME, &flags->holder, "The program chandler-container-disk", "FILE"},
        {"node", 0, 0, G_OPTION_ARG_STRING, &flags->node_name, "Name of this node (the host name)", "NAME"},
        {"bridge", 0, 0, G_OPTION_ARG_STRING, &flags->bridge, "The link that pods are connected to; none: they have no network", "LINK"},
        {"subnet", 0, 0, G_OPTION_ARG_STRING_ARRAY, &flags->subnets, "Where their addresses come from; one of each family", "CIDR"},
        {"mtu", 0, 0, G_OPTION_ARG_INT, &flags->mtu, "MTU of their links (the kernel's choice)", "BYTES"},
        {"no-network", 0, 0, G_OPTION_ARG_STRING, &flags->why_no_network, "What to tell VMs that want one where there is none", "REASON"},
        {"emulation", 0, 0, G_OPTION_ARG_NONE, &flags->is_emulated, "Guests are emulated, not run by KVM", NULL},
        {"verbosity", 'v', 0, G_OPTION_ARG_INT, &flags->verbosity, "Log verbosity (2)", "N"},
        G_OPTION_ENTRY_NULL,
    };
    /* clang-format on */
    g_autoptr(GOptionContext) context = g_option_context_new("- makes pods for VMIs");

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, error))
        return false;
    if (argc > 1)
        return ch_fail(error, CH_ERROR_INVALID, "unexpected argument '%s'", argv[1]);
    if (flags->state_dir == NULL || flags->kubeconfig == NULL || flags->launcher == NULL ||
        flags->holder == NULL)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "--state, --kubeconfig, --launcher and --container-disk are needed");
    if (!g_path_is_absolute(flags->state_dir) || !g_path_is_absolute(flags->launcher) ||
        !g_path_is_absolute(flags->holder))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "--state, --launcher and --container-disk must be absolute paths");
    if ((flags->bridge == NULL) != (flags->subnets == NULL))
        return ch_fail(error, CH_ERROR_INVALID, "--bridge and --subnet belong together");
    if (flags->mtu < 0 || flags->mtu > G_MAXUINT16)
        return ch_fail(error, CH_ERROR_INVALID, "--mtu is a number of bytes up to 65535");
    if (flags->images_dir == NULL)
        flags->images_dir = g_build_filename(flags->state_dir, "images", NULL);
    if (flags->node_name == NULL)
        flags->node_name = g_strdup(g_get_host_name());
    return true;
}

/* Go's name of this machine's architecture. */
static const char *
go_architecture(void)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"s390x", "s390x"}, {"ppc64le", "ppc64le"}};
    struct utsname machine;

    for (gsize i = 0; uname(&machine) == 0 && i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(names[i][0], machine.machine))
            return names[i][1];
    }
    return "";
}

/* Mounts stay among ourselves, and containers that lose their parent become our children. */
static bool
prepare_process(GError **error)
{
    int result = ch_mount_space_enter();

    if (result == 0)
        result = ch_mount_space_hide_hybrid_cgroup();
    if (result < 0)
        return ch_fail_errno(error, -result, "make a mount namespace (root is needed)");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return ch_fail_errno(error, errno, "become a subreaper");
    return true;
}

static bool
make_state(const Flags *flags, GError **error)
{
    static const char *const names[] = {"pods", "run", "crun", "images-cache", "leases"};

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(flags->state_dir, names[i], NULL);

        if (g_mkdir_with_parents(path, 0755) < 0)
            return ch_fail_errno(error, errno, "create directory '%s'", path);
    }
    return true;
}

static void
on_stopped(gpointer data)
{
    Program *program = data;

    ch_loop_stop(program->loop);
}

/* What a pass has begun is finished, if it does not take too long. */
static void
on_signal(int signo, gpointer data)
{
    Program *program = data;

    ch_log_info(NULL, "%s received, ending; pods go on", g_strsignal(signo));
    ch_timer_arm(program->deadline, STOP_LIMIT_US);
    ch_runner_stop(program->runner, on_stopped, program);
}

static const char *
cni_path(void)
{
    const char *path = g_getenv("CNI_PATH");

    return path != NULL && *path != '\0' ? path : CH_CNI_DEFAULT_PATH;
}

static ChPassEnv
make_env(Program *program, const Flags *flags)
{
    program->cache_dir = g_build_filename(flags->state_dir, "images-cache", NULL);
    program->lease_dir = g_build_filename(flags->state_dir, "leases", NULL);
    program->network = (ChCniNetwork){.bridge = flags->bridge,
                                      .subnets = flags->subnets,
                                      .lease_dir = program->lease_dir,
                                      .mtu = (guint)flags->mtu};
    return (ChPassEnv){
        .kube = program->kube,
        .recorder = program->recorder,
        .node_name = flags->node_name,
        .architecture = go_architecture(),
        .version = VERSION,
        .images = {flags->images_dir, program->cache_dir},
        .container = {.state_dir = flags->state_dir,
                      .launcher = flags->launcher,
                      .holder = flags->holder,
                      .is_emulated = flags->is_emulated,
                      .verbosity = flags->verbosity},
        .network = {.state_dir = flags->state_dir,
                    .cni_path = cni_path(),
                    .network = flags->bridge != NULL ? &program->network : NULL,
                    .why_no_network = flags->why_no_network,
                    .lease_dir = program->lease_dir},
        .uses = program->uses,
    };
}

static bool
start(Program *program, const Flags *flags, GError **error)
{
    g_autoptr(ChKubeConfig) config = NULL;

    if (!prepare_process(error) || !make_state(flags, error))
        return false;
    config = ch_kube_config_load(flags->kubeconfig, NULL, error);
    if (config == NULL)
        return false;
    program->loop = ch_loop_new();
    program->kube = ch_kube_client_new(program->loop, config, error);
    if (program->kube == NULL)
        return false;
    ch_kube_client_set_rate(program->kube, QPS, BURST); /* the server is on this machine */
    program->recorder = ch_recorder_new(program->kube, "virt-controller", "");
    program->uses = ch_uses_new();
    program->env = make_env(program, flags);
    ch_image_prune(&program->env.images);
    program->pool = ch_worker_pool_new(MIN_WORKERS, MAX_WORKERS);
    program->runner = ch_runner_new(program->loop, program->pool, &program->env);
    program->deadline = ch_timer_new(program->loop, on_stopped, program);
    program->terminate = ch_signal_new(program->loop, SIGTERM, on_signal, program);
    program->interrupt = ch_signal_new(program->loop, SIGINT, on_signal, program);
    ch_runner_start(program->runner);
    return true;
}

/* The pool first: its passes use all the rest. */
static void
program_clear(Program *program)
{
    g_clear_pointer(&program->terminate, ch_signal_free);
    g_clear_pointer(&program->interrupt, ch_signal_free);
    g_clear_pointer(&program->deadline, ch_timer_free);
    g_clear_pointer(&program->pool, ch_worker_pool_free);
    ch_runner_free(program->runner);
    g_clear_pointer(&program->recorder, ch_recorder_free);
    g_clear_pointer(&program->kube, ch_kube_client_free);
    g_clear_pointer(&program->loop, ch_loop_free);
    ch_uses_free(program->uses);
    g_free(program->cache_dir);
    g_free(program->lease_dir);
}

int
main(int argc, char **argv)
{
    Flags flags = {.verbosity = 2};
    Program program = {0};
    g_autoptr(GError) error = NULL;

    ch_log_init("chandler-podrunner");
    if (parse_flags(argc, argv, &flags, &error)) {
        ch_log_set_verbosity(flags.verbosity);
        if (start(&program, &flags, &error))
            ch_loop_run(program.loop);
    }
    if (program.pool != NULL && ch_worker_pool_n_busy(program.pool) > 0)
        _exit(EXIT_SUCCESS); /* a pass hangs; what it wrote is whole, and is found again */
    if (error != NULL)
        fprintf(stderr, "chandler-podrunner: %s\n", error->message);
    program_clear(&program);
    flags_clear(&flags);
    return error != NULL ? EXIT_FAILURE : EXIT_SUCCESS;
}
