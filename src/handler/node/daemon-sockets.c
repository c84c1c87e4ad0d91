/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/daemon-sockets.h"

#include <errno.h>

#include "handler/node/file-keeper.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"

struct ChDaemonSockets {
    ChFileKeeper *multipath;
    ChFileKeeper *helper;
    char *multipath_trouble; /* owned; what was told last; NULL: all is well */
    char *helper_trouble;    /* owned; the same */
    bool is_mounted;
};

/* Each trouble is told once. Returns: whether it is a new one. */
static bool
is_news(char **told, const GError *error)
{
    if (error != NULL && g_strcmp0(*told, error->message) == 0)
        return false;
    g_free(*told);
    *told = error != NULL ? g_strdup(error->message) : NULL;
    return error != NULL;
}

static bool
on_multipath_settled(gpointer data, const ChHandsReply *reply, const GError *error)
{
    ChDaemonSockets *sockets = data;
    const bool is_new = is_news(&sockets->multipath_trouble, error);
    const bool is_elsewhere = g_error_matches(error, CH_ERRNO, EXDEV);

    if (is_elsewhere && is_new) /* as in local mode, where nobody else looks there */
        ch_log_info(NULL, "ignoring multipath's socket: %s", error->message);
    else if (is_new)
        ch_log_error(NULL, error, "Error during monitoring multipath socket");
    if (error == NULL && (bool)reply->target.is_mounted != sockets->is_mounted) {
        sockets->is_mounted = reply->target.is_mounted;
        ch_log_info(NULL, "multipath socket is %s", sockets->is_mounted ? "mounted" : "unmounted");
    }
    return true;
}

static bool
on_helper_settled(gpointer data, const ChHandsReply *reply, const GError *error)
{
    ChDaemonSockets *sockets = data;

    if (is_news(&sockets->helper_trouble, error))
        ch_log_warning(NULL, error, "the pr-helper socket is not ready");
    /* The watch tells when it comes. */
    return !(g_error_matches(error, CH_ERRNO, ENOENT) && reply->step == CH_HANDS_STEP_SOCKET);
}

static const ChFileKeeperSpec multipath_spec = {
    .watch = CH_HANDS_OP_MULTIPATH_WATCH,
    .settle = CH_HANDS_OP_MULTIPATH_SET,
    .has_end = true,
    .name = "multipathd.socket",
    .on_settled = on_multipath_settled,
};

static const ChFileKeeperSpec helper_spec = {
    .watch = CH_HANDS_OP_RESERVATION_WATCH,
    .settle = CH_HANDS_OP_RESERVATION_OWN,
    .name = "pr-helper.sock",
    .on_settled = on_helper_settled,
};

ChDaemonSockets *
ch_daemon_sockets_new(ChLoop *loop, ChWorkerPool *pool, ChHands *hands)
{
    ChDaemonSockets *sockets = g_new0(ChDaemonSockets, 1);

    sockets->multipath = ch_file_keeper_new(loop, pool, hands, &multipath_spec, sockets);
    sockets->helper = ch_file_keeper_new(loop, pool, hands, &helper_spec, sockets);
    return sockets;
}

void
ch_daemon_sockets_free(ChDaemonSockets *sockets)
{
    if (sockets == NULL)
        return;
    ch_file_keeper_free(sockets->multipath);
    ch_file_keeper_free(sockets->helper);
    g_free(sockets->multipath_trouble);
    g_free(sockets->helper_trouble);
    g_free(sockets);
}

void
ch_daemon_sockets_start(ChDaemonSockets *sockets)
{
    ch_file_keeper_start(sockets->multipath);
}

void
ch_daemon_sockets_configure(ChDaemonSockets *sockets, bool has_reservation)
{
    if (has_reservation)
        ch_file_keeper_start(sockets->helper);
    else
        ch_file_keeper_stop(sockets->helper, NULL, NULL);
}

void
ch_daemon_sockets_stop(ChDaemonSockets *sockets, ChLoopFunc done, gpointer data)
{
    ch_file_keeper_stop(sockets->helper, NULL, NULL);
    ch_file_keeper_stop(sockets->multipath, done, data);
}
