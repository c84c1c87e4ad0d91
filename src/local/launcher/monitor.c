/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/monitor.h"

#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/time.h"

#define LEFT_OVER_US (10 * CH_SECOND_US)

#define STATUS_KILLED     255
#define STATUS_LEFT_OVER  1
#define STATUS_NO_PROCESS 1

/* Runs until the launcher ends. Returns: its wait status. */
static int
watch_child(pid_t child, const sigset_t *signals)
{
    for (;;) {
        int status = 0;
        const int signo = sigwaitinfo(signals, NULL);

        if (signo < 0)
            continue; /* EINTR: by a signal that is not ours */
        if (signo != SIGCHLD) {
            kill(child, SIGTERM);
            continue;
        }
        for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0;
             pid = waitpid(-1, &status, WNOHANG))
            if (pid == child)
                return status;
    }
}

/* Nothing but QEMU outlives the launcher: libvirtd ends with it. Returns: whether a child is left.
 */
static bool
has_child(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    return waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void
end_children(void)
{
    g_autofree char *path = g_strdup_printf("/proc/self/task/%d/children", (int)getpid());
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    g_auto(GStrv) pids = g_strsplit(g_strstrip(text), " ", -1);
    for (gsize i = 0; pids[i] != NULL; i++) {
        guint64 pid = 0;

        if (g_ascii_string_to_unsigned(pids[i], 10, 2, G_MAXINT, &pid, NULL))
            kill((pid_t)pid, SIGTERM);
    }
}

/* Returns: false when a child does not end. */
static bool
wait_for_left_overs(void)
{
    const int64_t deadline_us = ch_time_now_us() + LEFT_OVER_US;
    const struct timespec second = {1, 0};
    sigset_t child_signal;

    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    while (has_child()) {
        if (ch_time_now_us() >= deadline_us)
            return false;
        end_children(); /* again and again: a libvirtd that is ending may still start a QEMU */
        sigtimedwait(&child_signal, NULL, &second);
    }
    return true;
}

static void
remove_sockets(const char *dir_path)
{
    g_autoptr(GDir) dir = g_dir_open(dir_path, 0, NULL);
    const char *name = NULL;

    if (dir == NULL)
        return;
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(dir_path, name, NULL);

        if (g_str_has_suffix(name, ".sock") && g_unlink(path) < 0)
            ch_log_warning(NULL, NULL, "Could not remove %s, ignoring it.", path);
    }
}

static int
supervise(pid_t child, const sigset_t *signals, const char *container_disk_dir)
{
    const int status = watch_child(child, signals);
    const bool is_tidy = wait_for_left_overs();

    remove_sockets(container_disk_dir);
    if (!is_tidy)
        return STATUS_LEFT_OVER;
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_KILLED;
}

bool
ch_monitor_fork(const char *container_disk_dir, int *out_status)
{
    static const int forwarded[] = {SIGCHLD, SIGTERM, SIGINT, SIGQUIT};
    sigset_t signals, before;

    sigemptyset(&signals);
    for (gsize i = 0; i < G_N_ELEMENTS(forwarded); i++)
        sigaddset(&signals, forwarded[i]);
    sigprocmask(SIG_BLOCK, &signals, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* for a monitor that is not process 1 */

    const pid_t child = fork(); /* lint: banned-call, no thread exists yet */
    if (child < 0) {
        ch_log_error(NULL, NULL, "Could not start the launcher: %s", g_strerror(errno));
        *out_status = STATUS_NO_PROCESS;
        return false;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return true;
    }
    *out_status = supervise(child, &signals, container_disk_dir);
    return false;
}
