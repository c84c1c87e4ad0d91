/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/base/backoff.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

static const ChBackoffSpec restart_spec = {.initial_us = CH_SECOND_US,
                                           .cap_us = 30 * CH_SECOND_US,
                                           .factor = 2,
                                           .jitter = 0.1,
                                           .reset_after_us = 120 * CH_SECOND_US};

struct ChChild {
    ChLoop *loop;
    char *name, *log_path;
    char **argv;
    ChChildKind kind;
    bool reports_readiness, was_ready, is_stopping;
    ChChildHandlers handlers;
    gpointer data;
    GPid pid; /* 0: does not run */
    int pidfd, out_fd;
    ChFdWatch *end, *output;
    ChTimer *timer; /* of the next start; while stopping, of SIGKILL */
    ChBackoff backoff;
};

static bool start(ChChild *child, GError **error);

/* Runs between fork and exec: system calls only. */
static void
child_setup(gpointer data)
{
    const int *log_fd = data;
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(log_fd[0], STDERR_FILENO);
    if (log_fd[1] != 0)
        dup2(log_fd[0], STDOUT_FILENO);
}

static void
on_timer(gpointer data)
{
    ChChild *child = data;
    g_autoptr(GError) error = NULL;

    if (child->is_stopping) {
        ch_log_warning(NULL, NULL, "%s does not end: killing it", child->name);
        kill(child->pid, SIGKILL);
    } else if (!start(child, &error)) {
        ch_log_error(NULL, error, "%s does not start, retrying", child->name);
        ch_timer_arm(child->timer,
                     ch_backoff_next(&child->backoff, ch_time_now_us(), g_random_double()));
    }
}

static void
on_end(int fd, short what, gpointer data)
{
    ChChild *child = data;
    int status = 0;

    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    child->pid = 0;
    g_clear_pointer(&child->end, ch_fd_watch_free);
    g_clear_pointer(&child->output, ch_fd_watch_free);
    ch_close_fd(&child->pidfd);
    ch_close_fd(&child->out_fd);
    if (child->kind == CH_CHILD_ONCE || child->is_stopping ||
        (child->reports_readiness && !child->was_ready)) {
        child->handlers.on_end(child->data, status);
        return;
    }
    const int64_t delay_us = ch_backoff_next(&child->backoff, ch_time_now_us(), g_random_double());
    ch_log_error(NULL,
                 NULL,
                 "%s ended (%s %d), retrying in %" G_GINT64_FORMAT " ms",
                 child->name,
                 WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                 delay_us / CH_MS_US);
    ch_timer_arm(child->timer, delay_us);
}

static void
on_output(int fd, short what, gpointer data)
{
    ChChild *child = data;
    char buffer[4096] G_GNUC_UNUSED;
    const ssize_t n_bytes = read(fd, buffer, sizeof(buffer));

    if (n_bytes <= 0) {
        g_clear_pointer(&child->output, ch_fd_watch_free);
        return;
    }
    if (child->was_ready)
        return;
    child->was_ready = true;
    if (child->handlers.on_ready != NULL)
        child->handlers.on_ready(child->data);
}

static bool
start(ChChild *child, GError **error)
{
    ch_autofd int log_fd = g_open(child->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    int setup[2] = {log_fd, !child->reports_readiness};

    if (log_fd < 0)
        return ch_fail_errno(error, errno, "open '%s'", child->log_path);
    if (!g_spawn_async_with_pipes(NULL,
                                  child->argv,
                                  NULL,
                                  G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_CLOEXEC_PIPES,
                                  child_setup,
                                  setup,
                                  &child->pid,
                                  NULL,
                                  child->reports_readiness ? &child->out_fd : NULL,
                                  NULL,
                                  error))
        return false;
    child->pidfd = pidfd_open(child->pid, 0); /* not reaped yet, so it is there */
    child->end = ch_fd_watch_new(child->loop, child->pidfd, EV_READ, on_end, child);
    if (child->reports_readiness)
        child->output = ch_fd_watch_new(child->loop, child->out_fd, EV_READ, on_output, child);
    return true;
}

ChChild *
ch_child_new(ChLoop *loop,
             const ChChildSpec *spec,
             const ChChildHandlers *handlers,
             gpointer data,
             GError **error)
{
    g_autoptr(ChChild) child = g_new0(ChChild, 1);

    child->loop = loop;
    child->name = g_strdup(spec->name);
    child->log_path = g_strdup(spec->log_path);
    child->argv = g_strdupv((char **)spec->argv);
    child->kind = spec->kind;
    child->reports_readiness = spec->reports_readiness;
    child->handlers = *handlers;
    child->data = data;
    child->pidfd = -EBADF;
    child->out_fd = -EBADF;
    child->timer = ch_timer_new(loop, on_timer, child);
    ch_backoff_init(&child->backoff, &restart_spec);
    return start(child, error) ? g_steal_pointer(&child) : NULL;
}

void
ch_child_stop(ChChild *child, int64_t limit_us)
{
    child->is_stopping = true;
    ch_timer_disarm(child->timer);
    if (child->pid == 0) {
        child->handlers.on_end(child->data, 0);
        return;
    }
    kill(child->pid, SIGTERM);
    ch_timer_arm(child->timer, limit_us);
}

void
ch_child_free(ChChild *child)
{
    if (child == NULL)
        return;
    if (child->pid != 0) {
        kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0); /* it was killed: this does not last */
    }
    if (child->end != NULL)
        ch_fd_watch_free(child->end);
    if (child->output != NULL)
        ch_fd_watch_free(child->output);
    ch_timer_free(child->timer);
    ch_close_fd(&child->pidfd);
    ch_close_fd(&child->out_fd);
    g_strfreev(child->argv);
    g_free(child->name);
    g_free(child->log_path);
    g_free(child);
}
