/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/notify-pipe.h"

#include <sys/socket.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define ACCEPT_RETRY_US CH_SECOND_US

struct ChNotifyPipe {
    ChLoop *loop;
    ChNotifyServer *server;
    ChNotifyOrigin *origin; /* owned */
    int fd;
    ChFdWatch *watch; /* NULL until the loop has it, and while accepting pauses */
    ChTimer *retry;
};

static void
on_readable(int fd, short what, gpointer data)
{
    ChNotifyPipe *pipe = data;
    g_autoptr(GError) error = NULL;
    int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (connection >= 0) {
        ch_log_info(NULL, "Accepted new notify pipe connection");
        ch_notify_server_adopt(pipe->server, connection, pipe->origin);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        ch_fail_errno(&error, errno, "accept");
        ch_log_error(NULL, error, "Domain pipe accept error encountered.");
        g_clear_pointer(&pipe->watch, ch_fd_watch_free);
        ch_timer_arm(pipe->retry, ACCEPT_RETRY_US);
    }
}

static void
pipe_listen(gpointer data)
{
    ChNotifyPipe *pipe = data;

    pipe->watch = ch_fd_watch_new(pipe->loop, pipe->fd, EV_READ, on_readable, pipe);
}

static void
pipe_open(gpointer data)
{
    ChNotifyPipe *pipe = data;

    pipe->retry = ch_timer_new(pipe->loop, pipe_listen, pipe);
    pipe_listen(pipe);
}

static void
pipe_free(gpointer data)
{
    ChNotifyPipe *pipe = data;

    ch_fd_watch_free(pipe->watch);
    ch_timer_free(pipe->retry);
    ch_close_fd(&pipe->fd);
    ch_notify_origin_unref(pipe->origin);
    g_free(pipe);
}

ChNotifyPipe *
ch_notify_pipe_new(ChLoop *loop, int listen_fd, ChNotifyServer *server, ChNotifyOrigin *origin)
{
    ChNotifyPipe *pipe = g_new0(ChNotifyPipe, 1);

    *pipe = (ChNotifyPipe){loop, server, origin, listen_fd};
    ch_loop_post(loop, pipe_open, pipe, NULL);
    return pipe;
}

static void
log_closing(gpointer data)
{
    ch_log_info(NULL, "closing notify pipe listener for vmi");
}

void
ch_notify_pipe_close(ChNotifyPipe *pipe)
{
    ch_loop_post(
        pipe->loop, log_closing, pipe, pipe_free); /* posts keep their order: after pipe_open */
}
