/* SPDX-License-Identifier: Apache-2.0 */

/* up: checks what can be checked, then starts the supervisor in the background. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/mount-space.h"
#include "local/cli/cli.h"
#include "local/cli/client.h"
#include "local/cli/kvm.h"
#include "local/cli/lock.h"
#include "local/cli/node-network.h"

#define READY_FD        3
#define START_LIMIT_US  (60 * CH_SECOND_US)
#define AGENT_LIMIT_US  (20 * CH_SECOND_US)
#define POLL_MS         50
#define MAX_STATE_BYTES 64 /* sockets have 107 for all of their path */
#define MAX_LOG_BYTES   (16u << 20)
#define MIN_FREE_BYTES  (64u << 20)

typedef struct {
    int port;
    char *emulation;
    char *pod_network; /* (nullable) */
} Options;

/* --- what must be there ----------------------------------------------------------------------- */

static bool
check_programs(GError **error)
{
    static const char *const ours[] = {"chandler-apiserver",
                                       "chandler-podrunner",
                                       "chandler-launcher",
                                       "chandler-container-disk",
                                       "virt-handler",
                                       "virt-handler-hands"};
    static const char *const theirs[][2] = {{"crun", "crun"},
                                            {"libvirtd", "libvirt-daemon"},
                                            {"qemu-system-x86_64", "qemu-system-x86"},
                                            {"qemu-img", "qemu-utils"}};

    for (gsize i = 0; i < G_N_ELEMENTS(ours); i++) {
        g_autofree char *path = ch_cli_find_program(ours[i], error);

        if (path == NULL)
            return false;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(theirs); i++) {
        g_autofree char *path = g_find_program_in_path(theirs[i][0]);

        if (path == NULL)
            return ch_fail(error,
                           CH_ERROR_NOT_FOUND,
                           "the program %s is missing: try 'apt-get install %s'",
                           theirs[i][0],
                           theirs[i][1]);
    }
    return true;
}

static bool
check_port(int port, GError **error)
{
    ch_autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (port < 1 || port > G_MAXUINT16)
        return ch_fail(error, CH_ERROR_INVALID, "--port is a number from 1 to 65535");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); /* as the server does */
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0)
        return true;
    if (errno == EADDRINUSE)
        return ch_fail(
            error,
            CH_ERROR_EXISTS,
            "port %d is in use by another program: choose one with 'chandler up --port N'",
            port);
    return ch_fail_errno(error, errno, "listen on 127.0.0.1:%d", port);
}

/* The agent's socket lies below it, and so does the upper layer of an overlay. */
static bool
check_state_path(const ChCli *cli, GError **error)
{
    if (strlen(cli->state_dir) > MAX_STATE_BYTES)
        return ch_fail(error,
                       CH_ERROR_LIMIT,
                       "the path of the state directory is longer than %d bytes: choose another "
                       "--state",
                       MAX_STATE_BYTES);
    if (strpbrk(cli->state_dir, ",:\\") != NULL)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "the path of the state directory must not contain ',', ':' or a backslash: "
                       "choose another --state");
    return true;
}

static bool
make_state(const ChCli *cli, GError **error)
{
    static const char *const dirs[] = {
        "log", "images", "podrunner/pods", "agent/share", "agent/private", "agent/labeller"};
    struct statvfs space;

    for (gsize i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *path = ch_cli_path(cli, dirs[i]);

        if (g_mkdir_with_parents(path, 0755) < 0)
            return ch_fail_errno(error, errno, "create directory '%s'", path);
    }
    if (statvfs(cli->state_dir, &space) == 0 && space.f_bavail * space.f_frsize < MIN_FREE_BYTES)
        return ch_fail(
            error,
            CH_ERROR_LIMIT,
            "the disk that holds '%s' is full (less than %u MiB are free): make room, or choose "
            "another --state",
            cli->state_dir,
            MIN_FREE_BYTES >> 20);
    return true;
}

/* A log that grew large is set aside; the one set aside before goes. */
static void
rotate_logs(const ChCli *cli)
{
    g_autofree char *dir_path = ch_cli_path(cli, "log");
    g_autoptr(GDir) dir = g_dir_open(dir_path, 0, NULL);
    const char *name = NULL;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(dir_path, name, NULL);
        g_autofree char *old = g_strconcat(path, ".old", NULL);
        GStatBuf st;

        if (g_str_has_suffix(name, ".log") && g_stat(path, &st) == 0 && st.st_size > MAX_LOG_BYTES)
            (void)g_rename(path, old); /* it grows on, then */
    }
}

static bool
check(const ChCli *cli, const Options *options, GError **error)
{
    pid_t pid = 0;

    if (geteuid() != 0)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "'chandler up' needs root (it makes namespaces and mounts): use sudo");
    if (ch_lock_is_held(cli->state_dir, &pid))
        return ch_fail(error,
                       CH_ERROR_EXISTS,
                       "chandler is already up (process %d, state %s): 'chandler down' stops it",
                       (int)pid,
                       cli->state_dir);
    return check_state_path(cli, error) && check_programs(error) &&
           check_port(options->port, error) && make_state(cli, error);
}

/* --- start ------------------------------------------------------------------------------------ */

static void
child_setup(gpointer data)
{
    const int *log_fd = data;

    setsid(); /* neither the terminal's signals nor its end */
    dup2(*log_fd, STDOUT_FILENO);
    dup2(*log_fd, STDERR_FILENO);
}

static bool
spawn_supervisor(
    const ChCli *cli, const Options *options, bool is_emulated, int ready_fd, GError **error)
{
    g_autofree char *log = ch_cli_path(cli, "log/supervisor.log");
    g_autofree char *port = g_strdup_printf("%d", options->port);
    ch_autofd int log_fd = g_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    const int target_fd = READY_FD;
    const char *const argv[] = {"/proc/self/exe",
                                "supervise",
                                "--state",
                                cli->state_dir,
                                "--ready-fd",
                                G_STRINGIFY(READY_FD),
                                "--port",
                                port,
                                is_emulated ? "--emulated" : NULL,
                                NULL};

    if (log_fd < 0)
        return ch_fail_errno(error, errno, "open '%s'", log);
    return g_spawn_async_with_pipes_and_fds("/",
                                            argv,
                                            NULL,
                                            G_SPAWN_DEFAULT,
                                            child_setup,
                                            &log_fd,
                                            -1,
                                            -1,
                                            -1,
                                            &ready_fd,
                                            &target_fd,
                                            1,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL,
                                            error);
}

/* "ok", or the reason. */
static bool
wait_for_answer(const ChCli *cli, int fd, GError **error)
{
    const int64_t deadline_us = ch_time_now_us() + START_LIMIT_US;
    g_autoptr(GString) text = g_string_new(NULL);
    struct pollfd answer = {fd, POLLIN, 0};
    char buffer[1024];
    ssize_t n_bytes = 1;

    while (n_bytes > 0 && strchr(text->str, '\n') == NULL) {
        const int64_t left_us = deadline_us - ch_time_now_us();

        if (left_us <= 0 || poll(&answer, 1, (int)(left_us / CH_MS_US)) == 0)
            return ch_fail(error,
                           CH_ERROR_TIMEOUT,
                           "the start takes too long: see the files in %s/log",
                           cli->state_dir);
        n_bytes = read(fd, buffer, sizeof(buffer));
        if (n_bytes > 0)
            g_string_append_len(text, buffer, n_bytes);
    }
    g_strchomp(text->str);
    if (g_str_equal(text->str, "ok"))
        return true;
    return ch_fail(error,
                   CH_ERROR_FAILED,
                   "%s (more in %s/log)",
                   *text->str != '\0' ? text->str : "the supervisor ended",
                   cli->state_dir);
}

/* The agent marks its node as one of its first acts. */
static bool
wait_for_agent(const ChCli *cli, GError **error)
{
    const int64_t deadline_us = ch_time_now_us() + AGENT_LIMIT_US;
    g_autofree char *path = g_strdup_printf("/api/v1/nodes/%s", g_get_host_name());
    g_autoptr(ChClient) client = ch_client_new(cli, error);

    if (client == NULL)
        return false;
    while (ch_time_now_us() < deadline_us) {
        g_autoptr(ChJson) node = ch_client_get(client, path, NULL);

        if (ch_json_string_at(node, "metadata", "labels", "kubevirt.io/schedulable") != NULL)
            return true;
        ch_cli_wait_ms(POLL_MS);
    }
    return ch_fail(
        error,
        CH_ERROR_TIMEOUT,
        "the agent does not start: see %s/log/virt-handler.log ('chandler down' stops the rest)",
        cli->state_dir);
}

static bool
choose_emulation(const Options *options, bool *out_is_emulated, char **out_reason, GError **error)
{
    static const char *const modes[] = {"auto", "on", "off", NULL};
    const char *mode = options->emulation != NULL ? options->emulation : "auto";

    if (!g_strv_contains(modes, mode))
        return ch_fail(error, CH_ERROR_INVALID, "--emulation is auto, on or off, not '%s'", mode);
    if (g_str_equal(mode, "on"))
        *out_reason = g_strdup("emulation was asked for");
    *out_is_emulated = g_str_equal(mode, "on") || !ch_kvm_works(out_reason);
    if (*out_is_emulated && g_str_equal(mode, "off"))
        return ch_fail(
            error, CH_ERROR_FAILED, "KVM does not work on this machine: %s", *out_reason);
    return true;
}

/* The last sentence: QEMU's own, without its name. */
static const char *
short_reason(const char *reason)
{
    const char *last = g_strrstr(reason, ": ");

    return last != NULL ? last + 2 : reason;
}

static void
print_network(const ChNodeNetwork *network)
{
    g_autofree char *subnets = NULL;

    if (network->bridge == NULL) {
        printf("  pods        have no network: %s\n", network->reason);
        return;
    }
    subnets = g_strjoinv(" and ", network->subnets);
    printf("  pods        get addresses of %s, on %s\n", subnets, network->bridge);
}

static void
print_summary(const ChCli *cli,
              const Options *options,
              const ChNodeNetwork *network,
              bool is_emulated,
              const char *reason)
{
    printf("chandler is up; everything it keeps is in %s\n", cli->state_dir);
    printf("  API server  https://127.0.0.1:%d\n", options->port);
    printf("  kubectl     export KUBECONFIG=%s/kubeconfig\n", cli->state_dir);
    print_network(network);
    if (is_emulated)
        printf("  guests      are emulated, which is slow: KVM is not used (%s)\n",
               short_reason(reason));
    else
        printf("  guests      run on KVM\n");
}

static bool
start(const ChCli *cli, const Options *options, bool is_emulated, GError **error)
{
    ch_autofd int read_end = -EBADF;
    ch_autofd int write_end = -EBADF;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return ch_fail_errno(error, errno, "make a pipe");
    read_end = ends[0];
    write_end = ends[1];
    rotate_logs(cli);
    if (!spawn_supervisor(cli, options, is_emulated, write_end, error))
        return false;
    ch_close_fd(&write_end);
    return wait_for_answer(cli, read_end, error) && wait_for_agent(cli, error);
}

/* Where the agent mounts disks and volumes into pods: it does so in the node's mount namespace, and
 * they appear in the pods. As kubelet's directory is on a cluster. */
static bool
share_pods(const ChCli *cli, GError **error)
{
    g_autofree char *path = ch_cli_path(cli, CH_PODS_DIR);
    int result;

    if (g_mkdir_with_parents(path, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", path);
    result = ch_mount_share(path);
    return result == 0 || ch_fail_errno(error, -result, "share the mounts of '%s'", path);
}

static bool
up(const ChCli *cli, const Options *options, GError **error)
{
    g_auto(ChNodeNetwork) network = {0};
    g_autofree char *reason = NULL;
    bool is_emulated = false;

    if (!check(cli, options, error) || !choose_emulation(options, &is_emulated, &reason, error) ||
        !ch_node_network_up(cli, options->pod_network, ch_cli_has_pods(cli), &network, error) ||
        !share_pods(cli, error) || !start(cli, options, is_emulated, error))
        return false;
    print_summary(cli, options, &network, is_emulated, reason);
    return true;
}

bool
ch_cmd_up(ChCli *cli, int argc, char **argv, GError **error)
{
    Options options = {.port = CH_DEFAULT_PORT};
    const GOptionEntry entries[] = {
        {"port", 0, 0, G_OPTION_ARG_INT, &options.port, NULL, NULL},
        {"emulation", 0, 0, G_OPTION_ARG_STRING, &options.emulation, NULL, NULL},
        {"pod-network", 0, 0, G_OPTION_ARG_STRING, &options.pod_network, NULL, NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_auto(GStrv) arguments = NULL;
    const bool is_up =
        ch_cli_parse(cli, argc, argv, entries, 0, 0, &arguments, error) && up(cli, &options, error);

    g_free(options.emulation);
    g_free(options.pod_network);
    return is_up;
}
