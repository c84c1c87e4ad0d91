/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/notify-server.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "handler/watch/notify-calls.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/grpc/server.h"
#include "notify-info.pb-c.h"
#include "notify.pb-c.h"

#define SOCKET_NAME    "domain-notify.sock"
#define FILE_CHECK_US  (5 * CH_SECOND_US)
#define LISTEN_BACKLOG 1024
#define SOCKET_MODE    0755
#define FILE_REMOVED   2 /* the numbers of the original's file watcher, in the log */
#define FILE_REPLACED  4
#define NOTIFY_VERSION 1

/* A launcher needs one connection and one call at a time; a call holds up to 4 MiB. */
#define MAX_PIPE_CONNECTIONS 8
#define MAX_CALLS            4

typedef Kubevirt__Notify__V1__Response Response;

struct ChNotifyServer {
    ChLoop *loop;
    char *path;
    char *directory;
    ChNotifyHandlers handlers;
    gpointer data;
    ChGrpcServer *grpc; /* NULL while not running */
    ChTimer *file_check;
    ino_t inode; /* of the socket's file */
};

ChNotifyOrigin *
ch_notify_origin_new(const char *namespace_, const char *name, const char *uid)
{
    ChNotifyOrigin *origin = g_new0(ChNotifyOrigin, 1);

    origin->key = g_strdup_printf("%s/%s", namespace_, name);
    origin->uid = g_strdup(uid);
    origin->n_refs = 1;
    return origin;
}

void
ch_notify_origin_unref(ChNotifyOrigin *origin)
{
    if (--origin->n_refs > 0)
        return;
    g_free(origin->key);
    g_free(origin->uid);
    g_free(origin);
}

/* Removes a file, a socket or an empty directory; a directory with something in it is nobody's
 * stale socket. */
static bool
remove_path(const char *path, GError **error)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return true;
    if (errno == EISDIR && rmdir(path) == 0)
        return true;
    return ch_fail_errno(error, errno, "remove '%s'", path);
}

static int
listen_at(const char *path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ch_autofd int fd = -EBADF;

    if (strlen(path) >= sizeof(address.sun_path)) {
        ch_fail_errno(error, ENAMETOOLONG, "listen at '%s'", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Before it has a name: only its owner may write to it, whatever the umask. */
    if (fd < 0 || fchmod(fd, SOCKET_MODE) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, LISTEN_BACKLOG) < 0) {
        ch_fail_errno(error, errno, "listen at '%s'", path);
        return -1;
    }
    return g_steal_fd(&fd);
}

static void
reply(ChGrpcServerCall *call, const GError *failure)
{
    Response response = KUBEVIRT__NOTIFY__V1__RESPONSE__INIT;

    response.success = failure == NULL;
    if (failure != NULL)
        response.message = failure->message;
    ch_grpc_server_call_reply(call, &response.base);
}

static void
handle_info(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Kubevirt__Notify__Info__NotifyInfoResponse response =
        KUBEVIRT__NOTIFY__INFO__NOTIFY_INFO_RESPONSE__INIT;
    uint32_t versions[] = {NOTIFY_VERSION};

    response.n_supported_notify_versions = G_N_ELEMENTS(versions);
    response.supported_notify_versions = versions;
    ch_grpc_server_call_reply(call, &response.base);
}

/* Spec 01 §12.3. */
static void
handle_domain_event(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    const ChNotifyServer *server = data;
    g_autoptr(GError) error = NULL;

    (void)ch_notify_domain_event(
        &server->handlers, server->data, ch_grpc_server_call_peer(call), request, &error);
    reply(call, error);
}

/* Spec 01 §12.4. */
static void
handle_k8s_event(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    const ChNotifyServer *server = data;
    g_autoptr(GError) error = NULL;

    (void)ch_notify_k8s_event(
        &server->handlers, server->data, ch_grpc_server_call_peer(call), request, &error);
    reply(call, error);
}

static const ChGrpcMethod methods[] = {
    {"/kubevirt.notify.info.NotifyInfo/Info",
     &kubevirt__notify__info__notify_info_request__descriptor,
     handle_info},
    {"/kubevirt.notify.v1.Notify/HandleDomainEvent",
     &kubevirt__notify__v1__domain_event_request__descriptor,
     handle_domain_event},
    {"/kubevirt.notify.v1.Notify/HandleK8sEvent",
     &kubevirt__notify__v1__k8s_event_request__descriptor,
     handle_k8s_event},
};

static void
check_file(gpointer data)
{
    ChNotifyServer *server = data;
    g_autoptr(GError) error = NULL;
    struct stat st;
    int errnum = stat(server->path, &st) == 0 ? 0 : errno;

    if (errnum == 0 && st.st_ino == server->inode) {
        ch_timer_arm(server->file_check, FILE_CHECK_US);
        return;
    }
    if (errnum == 0 || errnum == ENOENT) {
        ch_log_info(NULL,
                    "socket file %s changed (event: %d), stopping notify server",
                    server->path,
                    errnum == 0 ? FILE_REPLACED : FILE_REMOVED);
        ch_fail(&error,
                CH_ERROR_CLOSED,
                "socket file %s was removed or replaced externally",
                server->path);
    } else {
        ch_fail_errno(&error, errnum, "error watching socket file %s", server->path);
    }
    g_clear_pointer(&server->grpc, ch_grpc_server_free);
    server->handlers.on_failed(server->data, error);
}

ChNotifyServer *
ch_notify_server_new(ChLoop *loop,
                     const char *share_dir,
                     const ChNotifyHandlers *handlers,
                     gpointer data)
{
    ChNotifyServer *server = g_new0(ChNotifyServer, 1);

    server->loop = loop;
    server->directory = g_strdup(share_dir);
    server->path = g_build_filename(share_dir, SOCKET_NAME, NULL);
    server->handlers = *handlers;
    server->data = data;
    server->file_check = ch_timer_new(loop, check_file, server);
    return server;
}

void
ch_notify_server_free(ChNotifyServer *server)
{
    struct stat st;

    if (server == NULL)
        return;
    ch_timer_free(server->file_check);
    if (server->grpc != NULL && stat(server->path, &st) == 0 && st.st_ino == server->inode)
        (void)unlink(server->path); /* a successor removes what is left */
    ch_grpc_server_free(server->grpc);
    g_free(server->directory);
    g_free(server->path);
    g_free(server);
}

bool
ch_notify_server_start(ChNotifyServer *server, GError **error)
{
    static const ChGrpcServerOptions options = {.max_streams = MAX_CALLS};
    struct stat st;
    ch_autofd int fd = -EBADF;

    g_assert(server->grpc == NULL);
    if (!remove_path(server->path, error))
        return false;
    if (g_mkdir_with_parents(server->directory, 0755) < 0)
        return ch_fail_errno(error, errno, "make directory '%s'", server->directory);
    CH_CRASH_POINT("notify/unlinked");
    fd = listen_at(server->path, error);
    if (fd < 0)
        return false;
    if (stat(server->path, &st) < 0)
        return ch_fail_errno(error, errno, "stat '%s'", server->path);
    server->inode = st.st_ino;
    server->grpc = ch_grpc_server_new(server->loop, &options);
    ch_grpc_server_add(server->grpc, methods, G_N_ELEMENTS(methods), server);
    ch_grpc_server_listen(server->grpc, g_steal_fd(&fd));
    ch_timer_arm(server->file_check, FILE_CHECK_US);
    return true;
}

bool
ch_notify_server_is_running(const ChNotifyServer *server)
{
    return server->grpc != NULL;
}

static void
connection_gone(gpointer data)
{
    ChNotifyOrigin *origin = data;

    origin->n_connections--;
    ch_notify_origin_unref(origin);
}

void
ch_notify_server_adopt(ChNotifyServer *server, int fd, ChNotifyOrigin *origin)
{
    if (server->grpc == NULL || origin->n_connections >= MAX_PIPE_CONNECTIONS) {
        close(fd);
        return;
    }
    origin->n_connections++;
    origin->n_refs++;
    ch_grpc_server_accept(server->grpc, fd, origin, connection_gone);
}
