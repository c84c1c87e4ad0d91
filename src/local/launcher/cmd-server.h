/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cmd-server: the services that the agent calls, `CmdInfo` and `Cmd`.
 *
 * Theory of operation: the loop's thread takes requests, answers at once what needs no libvirt, and
 * hands all else to one of four workers; the worker answers. Which worker is data (a table): what
 * must not overlap shares one, what must pass a hanging one has another. An RPC that is not in the
 * table is answered by status 12, "unknown method". Failures travel in the answer, not as gRPC
 * errors. Spec 03 §7, §8.1.
 */

#pragma once

#include "lib/grpc/server.h"
#include "local/launcher/manager.h"
#include "local/launcher/report.h"

typedef struct ChCmdServer ChCmdServer;

/* All borrowed. */
ChCmdServer *ch_cmd_server_new(ChLoop *loop, ChManager *manager, const ChReporter *reporter);
/* Waits for the calls that run. The loop is not running any more. */
void ch_cmd_server_free(ChCmdServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChCmdServer, ch_cmd_server_free)

/**
 * ch_cmd_server_listen: listens on @init_path; stale files there are removed. The process that
 * calls this is the one that SO_PEERCRED names.
 */
bool ch_cmd_server_listen(ChCmdServer *server, const char *init_path, GError **error);
/* Every connection is closed when @done runs, 1 s from now at the latest. */
void ch_cmd_server_stop(ChCmdServer *server, ChLoopFunc done, gpointer data);
