/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/qemu-watch.h"

#include <signal.h>
#include <sys/pidfd.h>

#include "lib/base/fd.h"
#include "lib/base/log.h"

#define MAX_DIGITS 10

struct ChQemuWatch {
    ChLoop *loop;
    char *pid_path;
    ChLoopFunc on_end;
    gpointer data;
    int pidfd; /* negative: not found, or gone again */
    ChFdWatch *watch;
    bool is_found;
};

bool
ch_qemu_watch_parse_pid(const char *text, gsize length, int *out_pid)
{
    int64_t pid = 0;

    if (length == 0 || length > MAX_DIGITS)
        return false;
    for (gsize i = 0; i < length; i++) {
        if (!g_ascii_isdigit(text[i]))
            return false;
        pid = pid * 10 + (text[i] - '0');
    }
    if (pid <= 0 || pid > G_MAXINT)
        return false;
    *out_pid = (int)pid;
    return true;
}

static void
on_readable(int fd, short what, gpointer data)
{
    ChQemuWatch *watch = data;

    g_clear_pointer(&watch->watch, ch_fd_watch_free);
    ch_close_fd(&watch->pidfd);
    ch_log_info(NULL, "QEMU is gone.");
    watch->on_end(watch->data);
}

ChQemuWatch *
ch_qemu_watch_new(ChLoop *loop, const char *pid_path, ChLoopFunc on_end, gpointer data)
{
    ChQemuWatch *watch = g_new0(ChQemuWatch, 1);

    watch->loop = loop;
    watch->pid_path = g_strdup(pid_path);
    watch->on_end = on_end;
    watch->data = data;
    watch->pidfd = -EBADF;
    return watch;
}

void
ch_qemu_watch_free(ChQemuWatch *watch)
{
    if (watch == NULL)
        return;
    g_clear_pointer(&watch->watch, ch_fd_watch_free);
    ch_close_fd(&watch->pidfd);
    g_free(watch->pid_path);
    g_free(watch);
}

static bool
read_pid(const ChQemuWatch *watch, int *out_pid)
{
    g_autofree char *text = NULL;
    gsize length = 0;

    return g_file_get_contents(watch->pid_path, &text, &length, NULL) &&
           ch_qemu_watch_parse_pid(text, length, out_pid);
}

/* The file is read again after opening: if it still names the process, the number was not given to
 * another one in between. */
bool
ch_qemu_watch_look(ChQemuWatch *watch)
{
    int pid = 0;
    int again = 0;

    if (watch->is_found || !read_pid(watch, &pid))
        return watch->is_found;
    ch_autofd int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0 || !read_pid(watch, &again) || again != pid)
        return false;
    watch->pidfd = g_steal_fd(&pidfd);
    watch->watch = ch_fd_watch_new(watch->loop, watch->pidfd, EV_READ, on_readable, watch);
    watch->is_found = true;
    ch_log_info(NULL, "QEMU runs with pid %d.", pid);
    return true;
}

bool
ch_qemu_watch_is_running(const ChQemuWatch *watch)
{
    return watch->pidfd >= 0;
}

void
ch_qemu_watch_terminate(ChQemuWatch *watch)
{
    if (watch->pidfd >= 0)
        (void)pidfd_send_signal(watch->pidfd, SIGTERM, NULL, 0); /* gone meanwhile: as wanted */
}
