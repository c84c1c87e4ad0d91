/* SPDX-License-Identifier: Apache-2.0 */

/*
 * virt-handler-hands: the small privileged program that virt-handler starts and asks.
 *
 * Called as `virt-handler-hands PODS-DIR PRIVATE-DIR NODE-PODS-DIR NODE-PID` with the channels at
 * descriptors 3 and up. It executes itself, where a node has SELinux, as
 * `virt-handler-hands make-tap NAME FLAGS` (tap.h).
 */

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/board.h"
#include "handler/hands/cache.h"
#include "handler/hands/inside-daemons.h"
#include "handler/hands/labeller.h"
#include "handler/hands/launcher.h"
#include "handler/hands/mount-spaces.h"
#include "handler/hands/protocol.h"
#include "handler/hands/sandbox.h"
#include "handler/hands/server.h"
#include "handler/hands/tap.h"
#include "handler/hands/target.h"
#include "lib/base/errors.h"
#include "lib/linux/selinux.h"

/* Where everybody looks for them, whatever the agent's flags. */
#define SHARE_DIR "/var/run/kubevirt"
#define RUN_DIR   "/run"

static int
fail(int errnum, const char *what)
{
    char reason[CH_ERRNO_TEXT_SIZE];

    (void)dprintf(
        STDERR_FILENO, "virt-handler-hands: %s: %s\n", what, ch_errno_print(errnum, reason));
    return 1;
}

/* Whether the brain started us. */
static bool
has_channels(void)
{
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++) {
        int type = 0;
        socklen_t size = sizeof(type);

        if (getsockopt(CH_HANDS_FIRST_FD + i, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
            type != SOCK_SEQPACKET)
            return false;
    }
    return true;
}

static bool
read_pid(const char *text, pid_t *out_pid)
{
    char *end = NULL;
    const long value = strtol(text, &end, 10);

    if (end == text || *end != '\0' || value <= 0 || value > INT_MAX)
        return false;
    *out_pid = (pid_t)value;
    return true;
}

/* A Ctrl-C goes to the whole group: it is the brain that ends in order, and we with it. Children
 * are reaped by the kernel. */
static void
set_signals(void)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD};

    for (gsize i = 0; i < G_N_ELEMENTS(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
}

/* Two descriptors a pod, and what operations hold for a moment. */
static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return; /* the limit we were given has to do */
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Kernels before 5.11 count a device program against it. What may not be raised has to do. */
static void
raise_memory_limit(void)
{
    const struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    (void)setrlimit(RLIMIT_MEMLOCK, &limit);
}

/* Before the sandbox: nothing is executed behind it. */
static int
start_labeller(pid_t node_pid)
{
    static const ChTapLabelPlaces places = {"/proc", "/proc/self/exe"};
    char node_root[64];
    ChSelinuxMode mode;

    (void)snprintf(node_root, sizeof(node_root), "/proc/%d/root", (int)node_pid);
    mode = ch_selinux_mode(node_root, CH_SELINUX_OWN_LABEL);
    if (mode == CH_SELINUX_ABSENT || mode == CH_SELINUX_UNKNOWN)
        return mode == CH_SELINUX_ABSENT ? 0 : -EAGAIN;
    return ch_labeller_start(&places);
}

static void
set_daemon_places(pid_t node_pid)
{
    static char node_root[32];

    (void)snprintf(node_root, sizeof(node_root), "/proc/%d/root", (int)node_pid);
    ch_inside_daemons_set_places(&(ChDaemonPlaces){SHARE_DIR, RUN_DIR, node_root, node_pid});
}

int
main(int argc, char **argv)
{
    pid_t node_pid = 0;
    int result;

    if (argc == CH_TAP_N_ARGS && g_str_equal(argv[1], CH_TAP_COMMAND))
        _exit(ch_tap_main(argv));
    if (argc != 5 || argv[1][0] != '/' || argv[2][0] != '/' || argv[3][0] != '/' ||
        !read_pid(argv[4], &node_pid) || !has_channels()) {
        (void)dprintf(STDERR_FILENO,
                      "virt-handler-hands is started by virt-handler, not by hand\n");
        return 1;
    }
    ch_launcher_set_pods_dir(argv[1]);
    ch_cache_set_dir(argv[2]);
    ch_target_set_pods_dir(argv[3]);
    ch_mount_spaces_set_node(node_pid);
    set_daemon_places(node_pid);
    set_signals();
    raise_descriptor_limit();
    raise_memory_limit();
    (void)umask(022); /* the notify pipe's mode comes from it: 0755 */
    if (chdir("/") < 0)
        return fail(errno, "chdir /");

    result = start_labeller(node_pid);
    if (result < 0)
        return fail(-result, "start the process for taps");
    result = ch_board_init();
    if (result != 0)
        return fail(result, "share memory with children");
    result = ch_sandbox_drop_capabilities();
    if (result < 0)
        return fail(-result, "drop capabilities");
    result = ch_sandbox_filter_calls();
    if (result < 0)
        return fail(-result, "filter system calls");

    result = ch_server_run();
    _exit(result == 0 ? 0 : 1);
}
