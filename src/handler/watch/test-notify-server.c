/* SPDX-License-Identifier: Apache-2.0 */

/* What launchers may say, over real sockets: the shared one and a VMI's pipe. */

#include "handler/watch/notify-pipe.h"
#include "handler/watch/notify-server.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "lib/grpc/client.h"
#include "notify-info.pb-c.h"
#include "notify.pb-c.h"

#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define TIMEOUT_US     (60 * CH_SECOND_US)
#define NOTIFY(method) "/kubevirt.notify.v1.Notify/" method

typedef struct {
    char *directory, *path;
    ChLoop *loop;
    ChNotifyServer *server;
    ChNotifyPipe *pipe;
    char *pipe_path;
    pthread_mutex_t lock;
    GString *told; /* by the server, guarded by the lock: " put ns/vm" ... */
} Fixture;

static void
tell(Fixture *f, const char *what, const char *about)
{
    pthread_mutex_lock(&f->lock);
    g_string_append_printf(f->told, " %s %s", what, about);
    pthread_mutex_unlock(&f->lock);
}

static void
on_domain(gpointer data, ChKnownDomain *domain, bool is_deleted)
{
    tell(data, is_deleted ? "delete" : "put", domain->key);
}

static void
on_relist(gpointer data, const char *key)
{
    tell(data, "relist", key);
}

static const char *
on_event(gpointer data, const ChLauncherEvent *event)
{
    if (g_str_equal(event->uid, "unknown"))
        return "VMI not found";
    tell(data, event->type, event->reason);
    return NULL;
}

static void
on_failed(gpointer data, const GError *error)
{
    tell(data, "failed", error->message);
}

static const ChNotifyHandlers handlers = {on_domain, on_relist, on_event, on_failed};

static int
listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    g_assert_cmpuint(strlen(path), <, sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    g_assert_no_errno(bind(fd, (struct sockaddr *)&address, sizeof(address)));
    g_assert_no_errno(listen(fd, 64));
    return fd;
}

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    f->directory = g_dir_make_tmp("notify-XXXXXX", &error);
    g_assert_no_error(error);
    f->path = g_build_filename(f->directory, "share", "domain-notify.sock", NULL);
    f->pipe_path = g_build_filename(f->directory, "pipe", NULL);
    f->told = g_string_new(NULL);
    pthread_mutex_init(&f->lock, NULL);
    f->loop = ch_loop_new();
    {
        g_autofree char *share = g_path_get_dirname(f->path);

        f->server = ch_notify_server_new(f->loop, share, &handlers, f);
    }
    ch_notify_server_start(f->server, &error);
    g_assert_no_error(error);
    f->pipe = ch_notify_pipe_new(
        f->loop, listen_at(f->pipe_path), f->server, ch_notify_origin_new("ns", "vm", "u"));
    ch_loop_start(f->loop, "test-loop");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_autofree char *share = g_path_get_dirname(f->path);

    ch_notify_pipe_close(f->pipe);
    ch_loop_stop(f->loop);
    ch_loop_join(f->loop);
    ch_notify_server_free(f->server);
    ch_loop_free(f->loop);
    g_assert_false(g_file_test(f->path, G_FILE_TEST_EXISTS)); /* it takes its socket away */
    (void)g_unlink(f->pipe_path);
    (void)g_rmdir(share);
    g_assert_no_errno(g_rmdir(f->directory));
    g_string_free(f->told, TRUE);
    pthread_mutex_destroy(&f->lock);
    g_free(f->path);
    g_free(f->pipe_path);
    g_free(f->directory);
}

static int
connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path));
    g_assert_no_errno(connect(fd, (struct sockaddr *)&address, sizeof(address)));
    return fd;
}

static ChGrpcChannel *
channel_to(Fixture *f, const char *path)
{
    return ch_grpc_channel_new(f->loop, connect_to(path), "localhost");
}

static void
assert_told(Fixture *f, const char *what)
{
    pthread_mutex_lock(&f->lock);
    g_assert_cmpstr(f->told->str, ==, what);
    g_string_truncate(f->told, 0);
    pthread_mutex_unlock(&f->lock);
}

/* (transfer full): NULL: success, else the message of success=false */
static char *
send_message(ChGrpcChannel *channel, const char *method, const ProtobufCMessage *request)
{
    ProtobufCMessage *answer = NULL;
    const Kubevirt__Notify__V1__Response *response;
    g_autoptr(GError) error = NULL;
    char *message;

    ch_grpc_call(channel,
                 method,
                 request,
                 &kubevirt__notify__v1__response__descriptor,
                 TIMEOUT_US,
                 &answer,
                 &error);
    g_assert_no_error(error);
    response = (const void *)answer;
    message = response->success ? NULL : g_strdup(response->message);
    protobuf_c_message_free_unpacked(answer, NULL);
    return message;
}

static ProtobufCBinaryData
bytes_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static char *
send_domain(ChGrpcChannel *channel, const char *type, const char *domain, const char *status)
{
    Kubevirt__Notify__V1__DomainEventRequest request =
        KUBEVIRT__NOTIFY__V1__DOMAIN_EVENT_REQUEST__INIT;

    request.event_type = (char *)type;
    request.domain_json = bytes_of(domain);
    request.status_json = bytes_of(status);
    return send_message(channel, NOTIFY("HandleDomainEvent"), &request.base);
}

static char *
send_event(ChGrpcChannel *channel, const char *event)
{
    Kubevirt__Notify__V1__K8sEventRequest request = KUBEVIRT__NOTIFY__V1__K8S_EVENT_REQUEST__INIT;

    request.event_json = bytes_of(event);
    return send_message(channel, NOTIFY("HandleK8sEvent"), &request.base);
}

#define DOMAIN_OF(ns, name, uid)                                                                   \
    "{\"ObjectMeta\":{\"namespace\":\"" ns "\",\"name\":\"" name                                   \
    "\"},\"Spec\":{\"Metadata\":{\"KubeVirt\":{\"UID\":\"" uid "\"}}}}"
#define EVENT_OF(uid)                                                                              \
    "{\"involvedObject\":{\"namespace\":\"ns\",\"name\":\"vm\",\"uid\":\"" uid                     \
    "\"},\"type\":\"Warning\",\"reason\":\"IOerror\",\"message\":\"m\"}"

static void
test_info(Fixture *f, gconstpointer data)
{
    const Kubevirt__Notify__Info__NotifyInfoRequest request =
        KUBEVIRT__NOTIFY__INFO__NOTIFY_INFO_REQUEST__INIT;
    g_autoptr(ChGrpcChannel) channel = channel_to(f, f->path);
    ProtobufCMessage *answer = NULL;
    const Kubevirt__Notify__Info__NotifyInfoResponse *info;
    g_autoptr(GError) error = NULL;

    ch_grpc_call(channel,
                 "/kubevirt.notify.info.NotifyInfo/Info",
                 &request.base,
                 &kubevirt__notify__info__notify_info_response__descriptor,
                 TIMEOUT_US,
                 &answer,
                 &error);
    g_assert_no_error(error);
    info = (const void *)answer;
    g_assert_cmpuint(info->n_supported_notify_versions, ==, 1);
    g_assert_cmpuint(info->supported_notify_versions[0], ==, 1);
    protobuf_c_message_free_unpacked(answer, NULL);
}

/* spec:01#96 spec:01#71 01 §12.3: by type; what is unknown or empty has no effect, and is success.
 */
static const struct TypeCase {
    const char *type, *domain, *status, *told;
} type_cases[] = {
    {"ADDED", DOMAIN_OF("ns", "vm", "u"), "", " put ns/vm"},
    {"MODIFIED", DOMAIN_OF("ns", "vm", "u"), "", " put ns/vm"},
    {"DELETED", DOMAIN_OF("ns", "vm", "u"), "", " delete ns/vm"},
    {"ERROR", "", "{\"message\":\"broken\"}", " relist ns/vm"},
    {"ERROR", "", "", " relist ns/vm"},
    {"ERROR", DOMAIN_OF("ns", "vm", "u"), "[]", " relist ns/vm"},
    {"Modified", DOMAIN_OF("ns", "vm", "u"), "", ""},
    {"", DOMAIN_OF("ns", "vm", "u"), "", ""},
    {"MODIFIED", "", "", ""},
    {"DELETED", "", "", ""},
};

static void
test_types(Fixture *f, gconstpointer data)
{
    g_autoptr(ChGrpcChannel) channel = channel_to(f, f->pipe_path);

    for (gsize i = 0; i < G_N_ELEMENTS(type_cases); i++) {
        const struct TypeCase *c = &type_cases[i];
        g_autofree char *failure = send_domain(channel, c->type, c->domain, c->status);

        g_assert_null(failure);
        assert_told(f, c->told);
    }
}

/* spec:01#96: the call itself succeeds */
static void
test_bad_documents(Fixture *f, gconstpointer data)
{
    static const char *const bad[][2] = {
        {"garbage", ""},
        {"[]", ""},
        {"{\"ObjectMeta\":1}", ""},
        {DOMAIN_OF("ns", "vm", "u"), "{"},
        {"{}", ""},
        {DOMAIN_OF("a/b", "c", "u"), ""},
        {DOMAIN_OF("ns", "vm\\u0007", "u"), ""},
    };
    g_autoptr(ChGrpcChannel) channel = channel_to(f, f->pipe_path);

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *failure = send_domain(channel, "MODIFIED", bad[i][0], bad[i][1]);

        g_assert_nonnull(failure);
        g_assert_cmpstr(failure, !=, "");
    }
    assert_told(f, "");
}

/* A pipe speaks for its VMI and for no other; ADR 0003. */
static void
test_pipe_is_bound(Fixture *f, gconstpointer data)
{
    g_autoptr(ChGrpcChannel) channel = channel_to(f, f->pipe_path);
    g_autofree char *own = send_domain(channel, "MODIFIED", DOMAIN_OF("ns", "vm", "u"), "");
    g_autofree char *early = send_domain(channel, "ADDED", DOMAIN_OF("ns", "vm", ""), "");
    g_autofree char *uid = send_domain(channel, "MODIFIED", DOMAIN_OF("ns", "vm", "v"), "");
    g_autofree char *name = send_domain(channel, "DELETED", DOMAIN_OF("ns", "other", "u"), "");
    g_autofree char *own_event = send_event(channel, EVENT_OF("u"));
    g_autofree char *other_event = send_event(channel, EVENT_OF("v"));
    g_autofree char *error = send_domain(channel, "ERROR", "", "{\"message\":\"broken\"}");
    g_assert_null(own);
    g_assert_null(early);
    g_assert_nonnull(uid);
    g_assert_nonnull(name);
    g_assert_null(own_event);
    g_assert_cmpstr(other_event, ==, "VMI not found");
    g_assert_null(error); /* and it is its own launcher that is asked again */
    assert_told(f, " put ns/vm put ns/vm Warning IOerror relist ns/vm");
}

/* A socket that any pod's launcher could be at says nothing about any VM. */
static void
test_shared_socket_is_not_believed(Fixture *f, gconstpointer data)
{
    g_autoptr(ChGrpcChannel) channel = channel_to(f, f->path);
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED", "ERROR", ""};
    g_autofree char *event = send_event(channel, EVENT_OF("u"));

    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree char *failure = send_domain(channel, types[i], DOMAIN_OF("ns", "vm", "u"), "");

        g_assert_cmpstr(failure, ==, "reports are taken through the pipe of the VMI's pod only");
    }
    g_assert_nonnull(event);
    assert_told(f, "");
}

/* spec:01#97, first half */
static void
test_events(Fixture *f, gconstpointer data)
{
    g_autoptr(ChGrpcChannel) channel = channel_to(f, f->pipe_path);
    g_autofree char *good = send_event(channel, EVENT_OF("u"));
    g_autofree char *unknown = send_event(channel, EVENT_OF("unknown"));
    g_autofree char *bad = send_event(channel, "{\"type\":");

    g_assert_null(good);
    g_assert_cmpstr(unknown, ==, "VMI not found");
    g_assert_true(g_str_has_prefix(bad, "Error unmarshalling k8s event: "));
    assert_told(f, " Warning IOerror");
}

/* Whether the peer closed the connection, within the time a busy machine may need. */
static bool
is_closed_by_peer(int fd)
{
    const struct timeval limit = {.tv_sec = 10};
    char bytes[4096];
    ssize_t n;

    g_assert_no_errno(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
    while ((n = read(fd, bytes, sizeof(bytes))) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

static void
test_garbage_closes_that_connection_only(Fixture *f, gconstpointer data)
{
    g_autoptr(ChGrpcChannel) channel = channel_to(f, f->pipe_path);
    int fd = connect_to(f->path);
    g_autofree char *failure = NULL;

    g_assert_cmpint(write(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27), ==, 27);
    g_assert_true(is_closed_by_peer(fd));
    close(fd);
    failure = send_domain(channel, "ADDED", DOMAIN_OF("ns", "vm", "u"), "");
    g_assert_null(failure);
}

/* spec:01#81: One launcher must not use up what all of them need. */
static void
test_connections_of_a_pipe_are_limited(Fixture *f, gconstpointer data)
{
    ChGrpcChannel *channels[8];
    int fd;

    for (gsize i = 0; i < G_N_ELEMENTS(channels); i++) {
        channels[i] = channel_to(f, f->pipe_path);
        g_assert_true(ch_grpc_channel_wait_ready(channels[i], TIMEOUT_US, NULL));
    }
    fd = connect_to(f->pipe_path);
    g_assert_true(is_closed_by_peer(fd));
    close(fd);
    for (gsize i = 0; i < G_N_ELEMENTS(channels); i++) {
        ch_grpc_channel_close(channels[i]);
        ch_grpc_channel_unref(channels[i]);
    }
}

static void
stop_pipe(Fixture *f)
{
    ch_notify_pipe_close(f->pipe);
    f->pipe = ch_notify_pipe_new(f->loop,
                                 socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                                 f->server,
                                 ch_notify_origin_new("ns", "vm", "u"));
}

/* spec:01#80 spec:01#79: the connection carries data until a side ends it */
static void
test_closed_pipe_keeps_connections(Fixture *f, gconstpointer data)
{
    g_autoptr(ChGrpcChannel) channel = channel_to(f, f->pipe_path);
    g_autofree char *failure = NULL;

    g_assert_true(ch_grpc_channel_wait_ready(channel, TIMEOUT_US, NULL));
    stop_pipe(f);
    failure = send_domain(channel, "ADDED", DOMAIN_OF("ns", "vm", "u"), "");
    g_assert_null(failure);
    assert_told(f, " put ns/vm");
}

static void
test_start_replaces_what_lies_there(void)
{
    g_autofree char *directory = g_dir_make_tmp("notify-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(directory, "domain-notify.sock", NULL);
    g_autofree char *inside = g_build_filename(path, "file", NULL);
    g_autoptr(ChLoop) loop = ch_loop_new();
    g_autoptr(ChNotifyServer) server = ch_notify_server_new(loop, directory, &handlers, NULL);
    g_autoptr(GError) error = NULL;
    struct stat info;

    g_assert_no_errno(g_mkdir(path, 0700));
    g_assert_true(g_file_set_contents(inside, "x", 1, NULL));
    g_assert_false(ch_notify_server_start(server, &error)); /* that is no stale socket */
    g_assert_error(error, CH_ERRNO, ENOTEMPTY);
    g_assert_no_errno(g_unlink(inside));
    umask(0);
    g_assert_true(ch_notify_server_start(server, NULL));
    g_assert_true(ch_notify_server_is_running(server));
    g_assert_no_errno(g_stat(path, &info));
    g_assert_cmpint(info.st_mode, ==, S_IFSOCK | 0755); /* nobody else connects */
    g_clear_pointer(&server, ch_notify_server_free);
    g_assert_no_errno(g_rmdir(directory));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, func) g_test_add("/notify-server/" path, Fixture, NULL, set_up, func, tear_down)
    ADD("info", test_info);
    ADD("types", test_types);
    ADD("bad-documents", test_bad_documents);
    ADD("pipe-is-bound", test_pipe_is_bound);
    ADD("shared-socket-is-not-believed", test_shared_socket_is_not_believed);
    ADD("events", test_events);
    ADD("garbage-closes-that-connection-only", test_garbage_closes_that_connection_only);
    ADD("connections-of-a-pipe-are-limited", test_connections_of_a_pipe_are_limited);
    ADD("closed-pipe-keeps-connections", test_closed_pipe_keeps_connections);
    g_test_add_func("/notify-server/start-replaces-what-lies-there",
                    test_start_replaces_what_lies_there);
    return g_test_run();
}
