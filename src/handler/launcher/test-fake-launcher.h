/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-launcher: a Cmd service on a loop of its own, which answers as a test says. Included by
 * test-*.c only.
 */

#pragma once

#include "cmd-info.pb-c.h"
#include "cmd.pb-c.h"
#include "lib/grpc/client.h"
#include "lib/grpc/server.h"

#include <pthread.h>
#include <sys/socket.h>

typedef struct {
    ChLoop *loop;
    ChGrpcServer *server;

    pthread_mutex_t lock; /* guards what follows: the test's thread writes, the loop's reads */
    ChGrpcStatus status;  /* not OK: every call ends with it, and `text` */
    const char *text;     /* with OK: of a refusal; NULL: success */
    const char *only;     /* (nullable): the one method that all this is about, "Kill" */
    bool is_hanging;      /* calls are never answered */
    bool is_leaving;      /* it ends with the next call, and is not there any more */
    bool has_left;
    int fd; /* the server's end of the newest connection */
    uint32_t versions[2];
    gsize n_versions;
    const char *domain, *guest_info;
    GString *calls;     /* " Ping" each; a VMI's call with its JSON: " Kill({})" */
    bool saw_options;   /* the last VMI's call had the options member */
    GPtrArray *hanging; /* ChGrpcServerCall; loop thread only */
} FakeLauncher;

/* Returns: whether the call was dealt with. Lock held. */
static inline bool
fake_misbehave(FakeLauncher *fake, ChGrpcServerCall *call)
{
    if (fake->is_hanging || fake->is_leaving)
        g_ptr_array_add(fake->hanging, call);
    else if (fake->status != CH_GRPC_OK)
        ch_grpc_server_call_fail(call, fake->status, fake->text);
    else
        return false;
    if (fake->is_leaving) {
        fake->has_left = true;
        (void)shutdown(fake->fd, SHUT_RDWR);
    }
    return true;
}

/* Whether this method does as it should whatever is set. Lock held. */
static inline bool
fake_is_well(const FakeLauncher *fake, const char *method)
{
    return fake->only != NULL && !g_str_equal(fake->only, method);
}

static inline Kubevirt__Cmd__V1__Response
fake_response(const FakeLauncher *fake)
{
    Kubevirt__Cmd__V1__Response response = KUBEVIRT__CMD__V1__RESPONSE__INIT;

    response.success = fake->text == NULL;
    response.message = (char *)(fake->text != NULL ? fake->text : "");
    return response;
}

static inline void
fake_handle_info(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    FakeLauncher *fake = data;
    Kubevirt__Cmd__Info__CmdInfoResponse response = KUBEVIRT__CMD__INFO__CMD_INFO_RESPONSE__INIT;

    pthread_mutex_lock(&fake->lock);
    g_string_append(fake->calls, " Info");
    if (fake_is_well(fake, "Info") || !fake_misbehave(fake, call)) {
        response.n_supported_cmd_versions = fake->n_versions;
        response.supported_cmd_versions = fake->versions;
        ch_grpc_server_call_reply(call, &response.base);
    }
    pthread_mutex_unlock(&fake->lock);
}

static inline void
fake_handle_ping(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    FakeLauncher *fake = data;

    pthread_mutex_lock(&fake->lock);
    g_string_append(fake->calls, " Ping");
    if (fake_is_well(fake, "Ping") || !fake_misbehave(fake, call)) {
        Kubevirt__Cmd__V1__Response response = fake_response(fake);

        response.success |= fake_is_well(fake, "Ping");
        ch_grpc_server_call_reply(call, &response.base);
    }
    pthread_mutex_unlock(&fake->lock);
}

static inline void
fake_handle_vmi(FakeLauncher *fake,
                ChGrpcServerCall *call,
                const char *method,
                const ProtobufCMessage *message)
{
    const Kubevirt__Cmd__V1__VMIRequest *request = (const void *)message;

    pthread_mutex_lock(&fake->lock);
    fake->saw_options = request->options != NULL;
    g_string_append_printf(fake->calls,
                           " %s(%.*s)",
                           method,
                           (int)request->vmi->vmi_json.len,
                           (const char *)request->vmi->vmi_json.data);
    if (fake_is_well(fake, method) || !fake_misbehave(fake, call)) {
        Kubevirt__Cmd__V1__Response response = fake_response(fake);

        response.success |= fake_is_well(fake, method);
        ch_grpc_server_call_reply(call, &response.base);
    }
    pthread_mutex_unlock(&fake->lock);
}

#define FAKE_VMI_HANDLER(function, method)                                                         \
    static inline void function(                                                                   \
        ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)                    \
    {                                                                                              \
        fake_handle_vmi(data, call, method, request);                                              \
    }

FAKE_VMI_HANDLER(fake_handle_sync, "Sync")
FAKE_VMI_HANDLER(fake_handle_shutdown, "Shutdown")
FAKE_VMI_HANDLER(fake_handle_kill, "Kill")
FAKE_VMI_HANDLER(fake_handle_delete, "Delete")
FAKE_VMI_HANDLER(fake_handle_host_devices, "HotplugHostDevices")

static inline void
fake_handle_dump(ChGrpcServerCall *call, const ProtobufCMessage *message, gpointer data)
{
    const Kubevirt__Cmd__V1__MemoryDumpRequest *request = (const void *)message;
    FakeLauncher *fake = data;

    pthread_mutex_lock(&fake->lock);
    g_string_append_printf(fake->calls, " Dump:%s", request->dump_path);
    if (fake_is_well(fake, "Dump") || !fake_misbehave(fake, call)) {
        Kubevirt__Cmd__V1__Response response = fake_response(fake);

        response.success |= fake_is_well(fake, "Dump");
        ch_grpc_server_call_reply(call, &response.base);
    }
    pthread_mutex_unlock(&fake->lock);
}

static inline void
fake_handle_domain(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    FakeLauncher *fake = data;
    Kubevirt__Cmd__V1__DomainResponse response = KUBEVIRT__CMD__V1__DOMAIN_RESPONSE__INIT;

    pthread_mutex_lock(&fake->lock);
    if (!fake_misbehave(fake, call)) {
        Kubevirt__Cmd__V1__Response inner = fake_response(fake);

        response.response = &inner;
        response.domain = (char *)(fake->domain != NULL ? fake->domain : "");
        ch_grpc_server_call_reply(call, &response.base);
    }
    pthread_mutex_unlock(&fake->lock);
}

/* Without an inner response: that counts as success. */
static inline void
fake_handle_guest_info(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    FakeLauncher *fake = data;
    Kubevirt__Cmd__V1__GuestInfoResponse response = KUBEVIRT__CMD__V1__GUEST_INFO_RESPONSE__INIT;

    pthread_mutex_lock(&fake->lock);
    if (!fake_misbehave(fake, call)) {
        response.guest_info_response = (char *)fake->guest_info;
        ch_grpc_server_call_reply(call, &response.base);
    }
    pthread_mutex_unlock(&fake->lock);
}

#define FAKE_CMD(method) "/kubevirt.cmd.v1.Cmd/" method

static const ChGrpcMethod fake_methods[] = {
    {"/kubevirt.cmd.info.CmdInfo/Info",
     &kubevirt__cmd__info__cmd_info_request__descriptor,
     fake_handle_info},
    {FAKE_CMD("Ping"), &kubevirt__cmd__v1__empty_request__descriptor, fake_handle_ping},
    {FAKE_CMD("SyncVirtualMachine"), &kubevirt__cmd__v1__vmirequest__descriptor, fake_handle_sync},
    {FAKE_CMD("ShutdownVirtualMachine"),
     &kubevirt__cmd__v1__vmirequest__descriptor,
     fake_handle_shutdown},
    {FAKE_CMD("KillVirtualMachine"), &kubevirt__cmd__v1__vmirequest__descriptor, fake_handle_kill},
    {FAKE_CMD("DeleteVirtualMachine"),
     &kubevirt__cmd__v1__vmirequest__descriptor,
     fake_handle_delete},
    {FAKE_CMD("HotplugHostDevices"),
     &kubevirt__cmd__v1__vmirequest__descriptor,
     fake_handle_host_devices},
    {FAKE_CMD("VirtualMachineMemoryDump"),
     &kubevirt__cmd__v1__memory_dump_request__descriptor,
     fake_handle_dump},
    {FAKE_CMD("GetDomain"), &kubevirt__cmd__v1__empty_request__descriptor, fake_handle_domain},
    {FAKE_CMD("GetGuestInfo"),
     &kubevirt__cmd__v1__empty_request__descriptor,
     fake_handle_guest_info},
};

/* A server without methods, on a loop that does not turn yet. */
static inline void
fake_launcher_open(FakeLauncher *fake)
{
    *fake = (FakeLauncher){.versions = {1}, .n_versions = 1, .fd = -EBADF};
    pthread_mutex_init(&fake->lock, NULL);
    fake->calls = g_string_new(NULL);
    fake->hanging = g_ptr_array_new();
    fake->loop = ch_loop_new();
    fake->server = ch_grpc_server_new(fake->loop, NULL);
}

static inline void
fake_launcher_start(FakeLauncher *fake)
{
    fake_launcher_open(fake);
    ch_grpc_server_add(fake->server, fake_methods, G_N_ELEMENTS(fake_methods), fake);
    ch_loop_start(fake->loop, "fake-launcher");
}

static inline void
fake_launcher_stop(FakeLauncher *fake)
{
    ch_loop_stop(fake->loop);
    ch_loop_join(fake->loop);
    for (guint i = 0; i < fake->hanging->len; i++)
        ch_grpc_server_call_finish(fake->hanging->pdata[i]);
    ch_grpc_server_free(fake->server);
    ch_loop_free(fake->loop);
    g_ptr_array_unref(fake->hanging);
    g_string_free(fake->calls, TRUE);
    pthread_mutex_destroy(&fake->lock);
}

typedef struct {
    FakeLauncher *fake;
    int fd;
} FakeConnection;

static inline void
fake_accept(gpointer data)
{
    const FakeConnection *connection = data;

    ch_grpc_server_accept(connection->fake->server, connection->fd, NULL, NULL);
}

/* Returns: a socket that is connected to it */
static inline int
fake_launcher_connect(FakeLauncher *fake)
{
    FakeConnection *connection = g_new(FakeConnection, 1);
    int fds[2];

    g_assert_no_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    *connection = (FakeConnection){fake, fds[0]};
    pthread_mutex_lock(&fake->lock);
    fake->fd = fds[0];
    pthread_mutex_unlock(&fake->lock);
    ch_loop_post(fake->loop, fake_accept, connection, g_free);
    return fds[1];
}

/* What it was asked since the last look. (transfer full) */
static inline char *
fake_launcher_take_calls(FakeLauncher *fake)
{
    char *calls;

    pthread_mutex_lock(&fake->lock);
    calls = g_strdup(fake->calls->str);
    g_string_truncate(fake->calls, 0);
    pthread_mutex_unlock(&fake->lock);
    return calls;
}

static inline void
fake_launcher_answer(FakeLauncher *fake, ChGrpcStatus status, const char *text)
{
    pthread_mutex_lock(&fake->lock);
    fake->status = status;
    fake->text = text;
    pthread_mutex_unlock(&fake->lock);
}
