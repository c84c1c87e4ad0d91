/* SPDX-License-Identifier: Apache-2.0 */

/*
 * notify-pipe: the listening socket inside a pod through which its launcher reports. Spec 01 §13.
 *
 * The agent accepts on it and serves the connection itself, with the VMI as its origin; what
 * the original copies to its shared socket byte by byte never leaves this process. Closing a pipe
 * ends only the listener; connections stay until a side ends them.
 */

#pragma once

#include "handler/watch/notify-server.h"

typedef struct ChNotifyPipe ChNotifyPipe;

/**
 * ch_notify_pipe_new:
 * @listen_fd: (transfer full): listening, non-blocking
 * @server: borrowed, outlives the pipe
 * @origin: (transfer full)
 *
 * Thread: any.
 */
ChNotifyPipe *
ch_notify_pipe_new(ChLoop *loop, int listen_fd, ChNotifyServer *server, ChNotifyOrigin *origin);

/* Thread: any; the listener is closed on the loop's thread. */
void ch_notify_pipe_close(ChNotifyPipe *pipe);
