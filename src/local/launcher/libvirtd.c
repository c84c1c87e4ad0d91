/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/libvirtd.h"

#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define PROGRAM      "/usr/sbin/libvirtd"
#define RESTART_US   CH_SECOND_US
#define STOP_WAIT_US (5 * CH_SECOND_US)

/* QEMU's output goes to plain files: no virtlogd in a pod. Cgroups and namespaces are the pod's. */
#define QEMU_CONF                                                                                  \
    "stdio_handler = \"file\"\n"                                                                   \
    "cgroup_controllers = [ ]\n"                                                                   \
    "namespaces = [ ]\n"

/* This process's own stderr is one JSON object a line; libvirt's words go elsewhere. */
#define DAEMON_CONF "log_outputs = \"3:file:%s/libvirtd.log\"\n"

struct ChLibvirtd {
    ChLoop *loop;
    GPid pid; /* 0: not running */
    int pidfd;
    ChFdWatch *watch;
    ChTimer *restart;
};

char *
ch_libvirtd_uri(void)
{
    return g_strdup_printf("qemu+unix:///session?socket=%s/libvirt/libvirt-sock",
                           g_get_user_runtime_dir());
}

char *
ch_libvirtd_pid_path(const char *domain_name)
{
    g_autofree char *file = g_strconcat(domain_name, ".pid", NULL);

    return g_build_filename(g_get_user_runtime_dir(), "libvirt", "qemu", "run", file, NULL);
}

static bool
write_file(const char *dir, const char *name, const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    return g_file_set_contents(path, text, -1, error);
}

static bool
write_configuration(GError **error)
{
    g_autofree char *dir = g_build_filename(g_get_user_config_dir(), "libvirt", NULL);
    g_autofree char *daemon_conf = g_strdup_printf(DAEMON_CONF, dir);

    if (g_mkdir_with_parents(dir, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", dir);
    return write_file(dir, "libvirtd.conf", daemon_conf, error) &&
           write_file(dir, "qemu.conf", QEMU_CONF, error);
}

/* Runs between fork and exec: system calls only. The daemon ends with this process. */
static void
child_setup(gpointer data)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Kills it and forgets it. */
static void
reap(ChLibvirtd *libvirtd)
{
    kill(libvirtd->pid, SIGKILL); /* not another's number: it is not reaped yet */
    while (waitpid(libvirtd->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    libvirtd->pid = 0;
    g_clear_pointer(&libvirtd->watch, ch_fd_watch_free);
    ch_close_fd(&libvirtd->pidfd);
}

static void
on_daemon_end(int fd, short what, gpointer data)
{
    ChLibvirtd *libvirtd = data;

    reap(libvirtd);
    ch_log_warning(NULL, NULL, "libvirtd ended, retrying in 1 s.");
    ch_timer_arm(libvirtd->restart, RESTART_US);
}

static bool
spawn(ChLibvirtd *libvirtd, GError **error)
{
    char *argv[] = {(char *)PROGRAM, NULL};

    if (!g_spawn_async(
            NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, child_setup, NULL, &libvirtd->pid, error))
        return false;
    libvirtd->pidfd = pidfd_open(libvirtd->pid, 0);
    if (libvirtd->pidfd < 0) {
        ch_fail_errno(error, errno, "pidfd of libvirtd");
        reap(libvirtd);
        return false;
    }
    libvirtd->watch =
        ch_fd_watch_new(libvirtd->loop, libvirtd->pidfd, EV_READ, on_daemon_end, libvirtd);
    return true;
}

static void
on_restart(gpointer data)
{
    ChLibvirtd *libvirtd = data;
    g_autoptr(GError) error = NULL;

    if (!spawn(libvirtd, &error)) {
        ch_log_error(NULL, error, "libvirtd does not start.");
        ch_timer_arm(libvirtd->restart, RESTART_US);
    }
}

ChLibvirtd *
ch_libvirtd_start(ChLoop *loop, GError **error)
{
    g_autoptr(ChLibvirtd) libvirtd = g_new0(ChLibvirtd, 1);

    libvirtd->loop = loop;
    libvirtd->pidfd = -EBADF;
    libvirtd->restart = ch_timer_new(loop, on_restart, libvirtd);
    if (!write_configuration(error) || !spawn(libvirtd, error))
        return NULL;
    return g_steal_pointer(&libvirtd);
}

void
ch_libvirtd_kill(ChLibvirtd *libvirtd)
{
    if (libvirtd->pid != 0)
        kill(libvirtd->pid, SIGKILL); /* on_daemon_end() hears of it */
}

static void
end_process(ChLibvirtd *libvirtd)
{
    const int64_t deadline_us = ch_time_now_us() + STOP_WAIT_US;
    struct pollfd ended = {libvirtd->pidfd, POLLIN, 0};
    int64_t left_us = STOP_WAIT_US;

    kill(libvirtd->pid, SIGTERM);
    while (left_us > 0 && poll(&ended, 1, (int)(left_us / CH_MS_US) + 1) != 1)
        left_us = deadline_us - ch_time_now_us(); /* a signal may interrupt it */
    reap(libvirtd);
}

void
ch_libvirtd_stop(ChLibvirtd *libvirtd)
{
    if (libvirtd == NULL)
        return;
    ch_timer_free(libvirtd->restart);
    if (libvirtd->pid != 0)
        end_process(libvirtd);
    g_free(libvirtd);
}
