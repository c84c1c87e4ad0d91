/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pod-watch.h"

#include <sys/inotify.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "local/podrunner/container.h"
#include "local/podrunner/pod-layout.h"

#define SOCKET           "launcher-sock"
#define KILLED_EXIT_CODE 128 /* and the signal, as shells and kubelet count */

struct ChPodWatch {
    int64_t pid;
    char *socket_path;
    int pidfd; /* negative: ended */
    int inotify_fd;
    ChFdWatch *end;
    ChFdWatch *arrival; /* NULL once it is ready */
    ChLoopFunc on_change;
    gpointer data;
    bool is_ready;
    int exit_code;
};

/* This process is the one that orphans are given to, so the container's first process is its child
 * since crun has ended: unless an earlier pod runner started it. */
static int
collect_exit_code(const ChPodWatch *watch)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)watch->pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return -1;
    return info.si_code == CLD_EXITED ? info.si_status : KILLED_EXIT_CODE + info.si_status;
}

static void
on_end(int fd, short what, gpointer data)
{
    ChPodWatch *watch = data;

    watch->exit_code = collect_exit_code(watch);
    g_clear_pointer(&watch->end, ch_fd_watch_free);
    ch_close_fd(&watch->pidfd);
    watch->on_change(watch->data);
}

/* Returns: whether it became ready just now */
static bool
look(ChPodWatch *watch)
{
    if (watch->is_ready || !g_file_test(watch->socket_path, G_FILE_TEST_EXISTS))
        return false;
    watch->is_ready = true;
    g_clear_pointer(&watch->arrival, ch_fd_watch_free);
    ch_close_fd(&watch->inotify_fd);
    return true;
}

static void
on_arrival(int fd, short what, gpointer data)
{
    ChPodWatch *watch = data;
    char buffer[4096] G_GNUC_UNUSED;

    while (read(fd, buffer, sizeof(buffer)) > 0)
        ; /* what it says does not matter: the file is looked for */
    if (look(watch))
        watch->on_change(watch->data);
}

static void
watch_directory(ChPodWatch *watch, ChLoop *loop, const char *dir)
{
    watch->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->inotify_fd < 0 ||
        inotify_add_watch(watch->inotify_fd, dir, IN_CREATE | IN_MOVED_TO) < 0) {
        ch_log_error(NULL, NULL, "cannot watch '%s': %s", dir, g_strerror(errno));
        return;
    }
    watch->arrival = ch_fd_watch_new(loop, watch->inotify_fd, EV_READ, on_arrival, watch);
}

ChPodWatch *
ch_pod_watch_new(ChLoop *loop,
                 const ChRecord *record,
                 const char *state_dir,
                 ChLoopFunc on_change,
                 gpointer data)
{
    ChPodWatch *watch = g_new0(ChPodWatch, 1);
    g_autofree char *dir = ch_pod_volume_dir(state_dir, record->uid, "sockets");

    *watch = (ChPodWatch){.pid = record->pid,
                          .socket_path = g_build_filename(dir, SOCKET, NULL),
                          .pidfd = ch_container_open(record),
                          .inotify_fd = -EBADF,
                          .on_change = on_change,
                          .data = data,
                          .exit_code = -1};
    if (watch->pidfd < 0) { /* ended already, perhaps a moment after its start */
        watch->exit_code = record->pid > 0 ? collect_exit_code(watch) : -1;
        return watch;
    }
    watch->end = ch_fd_watch_new(loop, watch->pidfd, EV_READ, on_end, watch);
    watch_directory(watch, loop, dir);
    (void)look(watch); /* it may have been there before */
    return watch;
}

void
ch_pod_watch_free(ChPodWatch *watch)
{
    if (watch == NULL)
        return;
    if (watch->end != NULL)
        ch_fd_watch_free(watch->end);
    if (watch->arrival != NULL)
        ch_fd_watch_free(watch->arrival);
    ch_close_fd(&watch->pidfd);
    ch_close_fd(&watch->inotify_fd);
    g_free(watch->socket_path);
    g_free(watch);
}

bool
ch_pod_watch_is_ready(const ChPodWatch *watch)
{
    return watch->is_ready;
}

bool
ch_pod_watch_has_ended(const ChPodWatch *watch)
{
    return watch->pidfd < 0;
}

int
ch_pod_watch_exit_code(const ChPodWatch *watch)
{
    return watch->exit_code;
}
